#include "studies/shard_status.hpp"

#include <fmt/format.h>

#include "report/table.hpp"

namespace ganymede::studies {
namespace {

/// Entries that a message lists before it says how many more there are.
constexpr std::size_t kListed = 10;

std::string share_done(std::size_t part, std::size_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

ShardStatus::ShardStatus(const ShardFolder& folder) : folder_(folder) {
  const std::uint64_t count = folder.shards();
  for (std::size_t run = 0; run < folder.work().size(); ++run) {
    Counts ignored;
    Counts& shard = count == 0 ? ignored : shards_[folder.work().shard_of(run, count).index];
    ++shard.runs;
    const auto kind = folder.kind(run);
    if (kind == RowKind::failure) ++shard.failed;
    if (kind) continue;
    ++shard.missing;
    ++missing_;
    if (labels_.size() < kListed) labels_.push_back(folder.work().label(run));
  }
}

/// The shards that lack runs, as flags: "--shard 3/64, 17/64 and 2 more".
std::string ShardStatus::shards_to_do() const {
  std::string out;
  std::size_t listed = 0, more = 0;
  for (const auto& [index, shard] : shards_) {
    if (shard.missing == 0) continue;
    if (listed++ < kListed)
      out += fmt::format("{}{}/{}", out.empty() ? "--shard " : ", ", index, folder_.shards());
    else
      ++more;
  }
  return more == 0 ? out : fmt::format("{} and {} more", out, more);
}

std::string ShardStatus::missing_text() const {
  std::string text =
      fmt::format("{} of {} runs are missing: {}", missing_, folder_.work().size(), fmt::join(labels_, "; "));
  if (missing_ > labels_.size()) text += fmt::format("; and {} more", missing_ - labels_.size());
  if (folder_.shards() > 0) text += fmt::format(" ({})", shards_to_do());
  return text;
}

std::string ShardStatus::text(std::size_t width) const {
  const ShardedWork& work = folder_.work();
  const std::size_t done = work.size() - missing_;
  std::size_t failed = 0, whole = 0, listed = 0, lacking = 0;
  report::Table table({"shard", ">runs", ">done", ">failed", ">missing"});
  for (const auto& [index, shard] : shards_) {
    failed += shard.failed;
    whole += shard.missing == 0 ? 1 : 0;
    if (shard.missing == 0 || ++lacking > 2 * kListed) continue;
    ++listed;
    table.add({fmt::format("{}/{}", index, folder_.shards()), std::to_string(shard.runs),
               std::to_string(shard.runs - shard.missing), std::to_string(shard.failed),
               std::to_string(shard.missing)});
  }
  std::string text =
      fmt::format("{} ({}, version {}): {} of {} runs are done ({}), {} failed, {} missing\n", work.name, work.command,
                  work.program, done, work.size(), share_done(done, work.size()), failed, missing_);
  if (folder_.shards() == 0) return text + "no shard has begun\n";
  text += fmt::format("{} of {} shards are complete; rows are in {} files\n",
                      whole + (folder_.shards() - shards_.size()), folder_.shards(), folder_.files().size());
  if (listed > 0) text += "\n" + table.text(width);
  if (lacking > listed) text += fmt::format("… and {} more shards\n", lacking - listed);
  return text;
}

}  // namespace ganymede::studies

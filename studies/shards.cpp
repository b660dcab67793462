#include "studies/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"
#include "common/row_file.hpp"
#include "studies/shard_folder.hpp"

namespace ganymede::studies {
namespace {

/// Spreads a hash over all bits (the finalizer of SplitMix64), because the last bits of FNV-1a depend on little of what
/// was hashed and decide the shard.
std::uint64_t spread(std::uint64_t hash) {
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

/// Makes the folder and its `shards.json`, or checks that what is there is of the same work.
void prepare_folder(const ShardedWork& work, const std::filesystem::path& folder) {
  const auto file = folder / "shards.json";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  if (!std::filesystem::exists(file)) create_file(file, work_text(work));
  // Read again, because another process may have created its own in the meantime.
  require_same_work(work, read_work(folder), folder.string());
}

/// True if a shard has runs of another one with another count.
bool overlap(const Shard& one, const Shard& other) {
  const std::uint64_t common = std::gcd(one.count, other.count);
  return one.index % common == other.index % common;
}

/// One shard at work.
class ShardRun {
 public:
  ShardRun(const ShardedWork& work, const Shard& shard, const std::filesystem::path& folder, const ShardRuns& runs,
           const ShardOptions& options)
      : work_(work),
        shard_(shard),
        folder_(folder),
        runs_(runs),
        options_(options),
        hash_(fnv1a(work_text(work))),
        writer_(shard_path(folder, shard)) {
    if (writer_.unlocked() && options.remark)
      options.remark(
          fmt::format("{}: the file system has no locks, so that a second writer of this shard would not be "
                      "noticed",
                      shard_path(folder, shard).string()));
  }

  ShardOutcome run() {
    find_own();
    skip_done();
    const auto progress = options_.show ? options_.show(outcome_.runs) : nullptr;
    run_children(
        own_.size(), options_.jobs, [&](std::size_t i) { return runs_.work(own_[i].second); },
        [&](std::size_t done) {
          if (progress) progress(outcome_.earlier + done);
        },
        options_.use, [&](std::size_t i, ChildOutcome& outcome) { land(own_[i].second, own_[i].first, outcome); },
        options_.stopped);
    writer_.sync();
    if (wrong_) rethrow(wrong_->second, work_.label(wrong_->first) + ": ");
    return outcome_;
  }

 private:
  /// The runs of this shard by key; of runs with the same content, the first.
  void find_own() {
    for (std::size_t run = 0; run < work_.size(); ++run)
      if (work_.shard_of(run, shard_.count).index == shard_.index) own_.emplace_back(work_.key(run), run);
    std::sort(own_.begin(), own_.end());
    own_.erase(std::unique(own_.begin(), own_.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
               own_.end());
    outcome_.runs = own_.size();
  }

  /// Leaves out the runs that a shard of the folder has done already, and puts the others in the study's order.
  void skip_done() {
    std::vector<bool> done(own_.size(), false);
    const auto take = [&](const ShardRow& row, std::uint64_t /*offset*/) {
      const auto of = std::lower_bound(own_.begin(), own_.end(), std::pair(row.key, std::size_t{0}));
      if (of == own_.end() || of->first != row.key || row.kind == RowKind::failure) return;
      done[static_cast<std::size_t>(of - own_.begin())] = true;
    };
    std::vector<std::string> damage;
    const auto damaged = [&](const std::string& what) { damage.push_back(what); };
    const std::uint64_t end = read_shard_file(shard_path(folder_, shard_), work_, hash_, take, damaged);
    writer_.cut(end);
    if (end == 0) writer_.append(head_text(hash_, work_));
    // Other shards of the same count have other runs, and need not be read.
    for (const ShardFile& file : shard_files(folder_))
      if (file.shard.count != shard_.count && overlap(file.shard, shard_))
        (void)read_shard_file(file.path, work_, hash_, take, damaged);
    std::vector<std::pair<std::uint64_t, std::size_t>> left;
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (!done[i]) left.push_back(own_[i]);
    // If every run is there, what was damaged has been done again.
    if (!left.empty() && options_.remark) std::for_each(damage.begin(), damage.end(), options_.remark);
    outcome_.earlier = own_.size() - left.size();
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    own_ = std::move(left);
  }

  void land(std::size_t run, std::uint64_t key, ChildOutcome& outcome) {
    using Kind = ChildOutcome::Kind;
    const std::string text = std::move(outcome.text);
    outcome.text.clear();
    if (outcome.kind == Kind::ok) {
      writer_.append(row_text(hash_, {key, RowKind::result, text}));
      ++outcome_.done;
      return;
    }
    // A run that fails now may have been stopped by the signal that stops this process.
    if (outcome.kind == Kind::failure && options_.stopped && options_.stopped()) return;
    outcome.text = text;
    if (outcome.kind == Kind::config_error || outcome.kind == Kind::budget_exceeded || !runs_.failed_row) {
      if (!wrong_) wrong_ = {run, outcome};
      return;
    }
    const bool endless = outcome.kind == Kind::infeasible;
    writer_.append(
        row_text(hash_, {key, endless ? RowKind::endless : RowKind::failure, runs_.failed_row(run, outcome)}));
    ++(endless ? outcome_.done : outcome_.failed);
    if (!endless && outcome_.first_reason.empty()) outcome_.first_reason = work_.label(run) + ": " + text;
  }

  const ShardedWork& work_;
  const Shard shard_;
  const std::filesystem::path& folder_;
  const ShardRuns& runs_;
  const ShardOptions& options_;
  const std::uint64_t hash_;
  RowWriter writer_;
  std::vector<std::pair<std::uint64_t, std::size_t>> own_;  ///< key and run
  std::optional<std::pair<std::size_t, ChildOutcome>> wrong_;
  ShardOutcome outcome_;
};

}  // namespace

std::string ShardedWork::label(std::size_t run) const {
  if (seeds.empty()) return parts[run].label;
  return fmt::format("{}, seed {}", parts[run / seeds.size()].label, seeds[run % seeds.size()]);
}

std::uint64_t ShardedWork::key(std::size_t run) const {
  if (seeds.empty()) return fnv1a(parts[run].content);
  return fnv1a(fmt::format("{} {}", parts[run / seeds.size()].content, seeds[run % seeds.size()]));
}

Shard ShardedWork::shard_of(std::size_t run, std::uint64_t count) const { return {spread(key(run)) % count, count}; }

ShardOutcome run_shard(const ShardedWork& work, const Shard& shard, const std::filesystem::path& folder,
                       const ShardRuns& runs, const ShardOptions& options) {
  prepare_folder(work, folder);
  return ShardRun(work, shard, folder, runs, options).run();
}

}  // namespace ganymede::studies

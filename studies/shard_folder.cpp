#include "studies/shard_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <tuple>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/row_file.hpp"
#include "report/table.hpp"

namespace ganymede::studies {
namespace {

/// The pointer of the first value that one of two different documents has otherwise.
std::string first_difference(const Json& one, const Json& other) {
  if (one.is_array() && other.is_array()) {
    for (std::size_t i = 0; i < one.size() && i < other.size(); ++i)
      if (one[i] != other[i]) return fmt::format("/{}{}", i, first_difference(one[i], other[i]));
    return fmt::format("/{}", std::min(one.size(), other.size()));
  }
  if (!one.is_object() || !other.is_object()) return "";
  for (const auto& [key, value] : one.items()) {
    const std::string step = (JsonPointer() / key).to_string();
    if (!other.contains(key)) return step;
    if (other[key] != value) return step + first_difference(value, other[key]);
  }
  for (const auto& [key, value] : other.items())
    if (!one.contains(key)) return (JsonPointer() / key).to_string();
  return "";
}
constexpr const char* kWorkFile = "shards.json";
constexpr char kHeadKind = 'h';

/// Seeds that count up are written as {"first", "count"}, because there may be a million.
OrderedJson seeds_member(const std::vector<std::uint64_t>& seeds) {
  for (std::size_t i = 1; i < seeds.size(); ++i)
    if (seeds[i] != seeds[0] + i) return seeds;
  if (seeds.empty()) return OrderedJson::array();
  return {{"first", seeds.front()}, {"count", seeds.size()}};
}

std::vector<std::uint64_t> read_seeds_member(const JsonNode& node) {
  std::vector<std::uint64_t> seeds;
  if (!node.is_object()) {
    for (const JsonNode& seed : node.as_array()) seeds.push_back(seed.as_seed());
    return seeds;
  }
  JsonObject in(node);
  const std::uint64_t first = in.required("first").as_seed();
  const std::int64_t count = in.required("count").as_integer(1, 1'000'000);
  in.finish();
  for (std::int64_t i = 0; i < count; ++i) seeds.push_back(first + static_cast<std::uint64_t>(i));
  return seeds;
}

OrderedJson work_json(const ShardedWork& work) {
  OrderedJson out = {{"schema", "ganymede.shards/1"},
                     {"command", work.command},
                     {"program", work.program},
                     {"name", work.name},
                     {"parts", OrderedJson::array()}};
  for (const auto& part : work.parts) out["parts"].push_back({{"label", part.label}, {"content", part.content}});
  out["seeds"] = seeds_member(work.seeds);
  if (!work.asked.is_null()) out["asked"] = work.asked;
  return out;
}

ShardedWork work_of(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, "ganymede.shards/1");
  ShardedWork work;
  work.command = in.required("command").as_string();
  work.program = in.required("program").as_string();
  work.name = in.required("name").as_string();
  for (const JsonNode& entry : in.required("parts").as_array()) {
    JsonObject part(entry);
    work.parts.push_back({part.required("label").as_string(), part.required("content").as_string()});
    part.finish();
  }
  work.seeds = read_seeds_member(in.required("seeds"));
  if (const auto asked = in.optional("asked")) work.asked = asked->value();
  in.finish();
  if (work.size() > kMaxRuns)
    node.fail(fmt::format("found {} runs ({} parts of {} seeds), expected at most {}", work.size(), work.parts.size(),
                          work.seeds.size(), kMaxRuns));
  return work;
}

/// The next cell of a line of cells separated by tabs.
std::string_view next_cell(std::string_view& text) {
  const std::size_t tab = std::min(text.find('\t'), text.size());
  const std::string_view found = text.substr(0, tab);
  text.remove_prefix(std::min(tab + 1, text.size()));
  return found;
}

std::uint64_t hexadecimal(std::string_view cell) {
  std::uint64_t value = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), value, 16);
  return value;
}

}  // namespace

std::string work_text(const ShardedWork& work) { return work_json(work).dump(1) + "\n"; }

ShardedWork read_work(const std::filesystem::path& folder) {
  if (!std::filesystem::is_regular_file(folder / kWorkFile))
    throw ConfigError(
        fmt::format("{}: has no {}; expected a folder that `--shard` has written", folder.string(), kWorkFile));
  return work_of(JsonNode::load(folder / kWorkFile));
}

void require_same_work(const ShardedWork& work, const ShardedWork& other, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: {}; write to another folder, or remove what is there", where, what));
  };
  if (other.command != work.command)
    refuse(fmt::format("holds shards of `{}`, expected `{}`", other.command, work.command));
  if (other.name != work.name)
    refuse(fmt::format("holds shards of the study \"{}\", expected \"{}\"", other.name, work.name));
  if (other.program != work.program)
    refuse(fmt::format("holds shards of version {}, expected {}", other.program, work.program));
  if (other.asked != work.asked)
    refuse(fmt::format("holds shards of another question: {} differs", first_difference(work.asked, other.asked)));
  if (other.seeds != work.seeds)
    refuse(fmt::format("holds shards with other seeds: {}, expected {}", seeds_member(other.seeds).dump(),
                       seeds_member(work.seeds).dump()));
  for (std::size_t i = 0; i < std::max(work.parts.size(), other.parts.size()); ++i) {
    if (i >= work.parts.size()) refuse(fmt::format("holds shards of more: {}", other.parts[i].label));
    if (i >= other.parts.size()) refuse(fmt::format("holds shards of less: it lacks {}", work.parts[i].label));
    if (other.parts[i].label != work.parts[i].label)
      refuse(fmt::format("holds shards of {}, expected {}", other.parts[i].label, work.parts[i].label));
    if (other.parts[i].content != work.parts[i].content)
      refuse(fmt::format("holds shards of another version of the study: {} differs", work.parts[i].label));
  }
}

std::filesystem::path shard_path(const std::filesystem::path& folder, const Shard& shard) {
  return folder / fmt::format("shard-{}-of-{}.rows", shard.index, shard.count);
}

std::vector<ShardFile> shard_files(const std::filesystem::path& folder) {
  std::vector<ShardFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    Shard shard;
    const std::size_t index = std::strlen("shard-"), middle = name.find("-of-");
    if (!name.starts_with("shard-") || middle == std::string::npos) continue;
    std::from_chars(name.data() + index, name.data() + middle, shard.index);
    std::from_chars(name.data() + middle + std::strlen("-of-"), name.data() + name.size(), shard.count);
    if (shard.count > 0 && entry.path().filename() == shard_path("", shard)) files.push_back({shard, entry.path()});
  }
  std::sort(files.begin(), files.end(), [](const ShardFile& a, const ShardFile& b) {
    return std::tie(a.shard.count, a.shard.index) < std::tie(b.shard.count, b.shard.index);
  });
  return files;
}

std::string row_text(std::uint64_t work, const ShardRow& row) {
  return fmt::format("{:016x}\t{:016x}\t{}\t{}", work, row.key, static_cast<char>(row.kind), row.text);
}

std::string head_text(std::uint64_t work, const ShardedWork& whole) {
  OrderedJson head = work_json(whole);
  head.erase("asked");
  // The label of the first part is enough to tell people what it is, and a study may have thousands of parts.
  head["parts"] = OrderedJson::array();
  if (!whole.parts.empty())
    head["parts"].push_back({{"label", whole.parts[0].label}, {"content", whole.parts[0].content}});
  return fmt::format("{:016x}\t{:016x}\t{}\t{}", work, 0, kHeadKind, head.dump());
}

std::uint64_t read_shard_file(const std::filesystem::path& file, const ShardedWork& work, std::uint64_t hash,
                              const std::function<void(const ShardRow&, std::uint64_t)>& take,
                              const std::function<void(const std::string&)>& remark, std::uint64_t from) {
  RowReader rows(
      file,
      [&](const std::string& where) {
        if (remark) remark(where + ": is damaged and left out (its checksum does not fit)");
      },
      from);
  while (rows.next()) {
    std::string_view rest = rows.text();
    const std::uint64_t of = hexadecimal(next_cell(rest));
    ShardRow row{.key = hexadecimal(next_cell(rest)), .text = {}};
    const std::string_view kind = next_cell(rest);
    row.text = rest;
    if (of != hash) {
      if (kind == std::string_view(&kHeadKind, 1)) {
        const ShardedWork other = work_of(JsonNode::parse(rest, file.string()));
        ShardedWork mine = work;
        mine.parts.resize(std::min<std::size_t>(mine.parts.size(), 1));
        mine.asked = nullptr;
        require_same_work(mine, other, file.string());
      }
      throw ConfigError(fmt::format("{}: holds runs of other work than {}; remove it or merge it from its own folder",
                                    file.string(), (file.parent_path() / kWorkFile).string()));
    }
    if (kind.size() != 1 || kind[0] == kHeadKind) continue;
    row.kind = static_cast<RowKind>(kind[0]);
    take(row, rows.offset() + (rows.text().size() - rest.size()));
  }
  return rows.end();
}

ShardFolder::ShardFolder(std::filesystem::path folder) : folder_(std::move(folder)), work_(read_work(folder_)) {}

ShardFolder::~ShardFolder() {
  for (const std::size_t file : opened_) ::close(open_[file]);
}

void ShardFolder::scan(const Take& take, const Remark& remark) {
  const std::uint64_t hash = fnv1a(work_text(work_));
  files_ = shard_files(folder_);
  open_.assign(files_.size(), -1);
  places_.assign(work_.size(), {});
  std::vector<std::pair<std::uint64_t, std::uint32_t>> runs(work_.size());  // by key
  for (std::size_t run = 0; run < runs.size(); ++run) runs[run] = {work_.key(run), static_cast<std::uint32_t>(run)};
  std::sort(runs.begin(), runs.end());
  std::vector<std::pair<std::size_t, std::string>> damage;  // by file
  for (std::size_t f = 0; f < files_.size(); ++f)
    read_shard_file(
        files_[f].path, work_, hash,
        [&](const ShardRow& row, std::uint64_t offset) {
          auto of = std::lower_bound(runs.begin(), runs.end(), std::pair(row.key, std::uint32_t{0}));
          if ((of == runs.end() || of->first != row.key) && remark)
            remark(fmt::format("{}: holds a run ({:016x}) that the study does not have; it is left out",
                               files_[f].path.string(), row.key));
          for (; of != runs.end() && of->first == row.key; ++of) {
            Place& place = places_[of->second];
            const auto known = static_cast<RowKind>(place.kind);
            if (place.kind != 0 && (known != RowKind::failure || row.kind == RowKind::failure)) continue;
            place = {offset, static_cast<std::uint32_t>(f), static_cast<std::uint32_t>(row.text.size()),
                     static_cast<std::uint8_t>(row.kind)};
            if (take)
              read_row_at(files_[f].path, offset, work_.label(of->second),
                          [&] { take(of->second, row.kind, row.text); });
          }
        },
        [&](const std::string& what) { damage.emplace_back(f, what); });
  if (remark) report_damage(damage, remark);
}

/// Reports the damaged rows of files whose shard lacks runs; elsewhere the run was done again.
void ShardFolder::report_damage(const std::vector<std::pair<std::size_t, std::string>>& damage,
                                const Remark& remark) const {
  std::map<std::size_t, bool> lacks;  // by file
  for (const auto& [file, what] : damage) {
    const auto [known, is_new] = lacks.try_emplace(file, false);
    const Shard shard = files_[file].shard;
    for (std::size_t run = 0; is_new && run < work_.size() && !known->second; ++run)
      known->second = (places_[run].kind == 0 || kind(run) == RowKind::failure) &&
                      work_.shard_of(run, shard.count).index == shard.index;
    if (known->second) remark(what);
  }
}

std::optional<RowKind> ShardFolder::kind(std::size_t run) const {
  if (places_[run].kind == 0) return std::nullopt;
  return static_cast<RowKind>(places_[run].kind);
}

int ShardFolder::open_file(std::size_t file) const {
  if (open_[file] >= 0) return open_[file];
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  if (!opened_.empty() && opened_.size() + 32 > most.rlim_cur) {
    ::close(std::exchange(open_[opened_.front()], -1));
    opened_.pop_front();
  }
  open_[file] = ::open(files_[file].path.c_str(), O_RDONLY | O_CLOEXEC);
  if (open_[file] < 0)
    throw ConfigError(fmt::format("{}: cannot be read: {}", files_[file].path.string(), std::strerror(errno)));
  opened_.push_back(file);
  return open_[file];
}

void ShardFolder::read(std::size_t run, const std::function<void(const std::string& text)>& read) const {
  const Place& place = places_[run];
  read_row_at(files_[place.file].path, place.offset, work_.label(run), [&, row = text(run)] { read(row); });
}

std::string ShardFolder::text(std::size_t run) const {
  const Place& place = places_[run];
  std::string text(place.size, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const auto at = static_cast<off_t>(place.offset + done);
    const ssize_t got = ::pread(open_file(place.file), text.data() + done, text.size() - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Failure(files_[place.file].path.string() + ": has changed while it was read");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

std::uint64_t ShardFolder::shards() const {
  std::map<std::uint64_t, std::size_t> files;
  for (const ShardFile& file : files_) ++files[file.shard.count];
  std::pair<std::size_t, std::uint64_t> most;
  for (const auto& [count, number] : files) most = std::max(most, {number, count});
  return most.second;
}

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

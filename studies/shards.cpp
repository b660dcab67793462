#include "studies/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/plain_text.hpp"
#include "common/random.hpp"
#include "common/row_file.hpp"
#include "common/storage.hpp"
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
  if (const std::error_code error = storage::make_folders(folder))
    throw ConfigError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
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

std::string row_holding(const ShardedWork& work, std::size_t run, Json held) {
  return Json{{"run", work.label(run)}, {"key", work.key(run)}, {"held", std::move(held)}}.dump();
}

JsonNode held_by_row(const ShardedWork& work, std::size_t run, std::string_view text) {
  JsonObject row(JsonNode::parse(text, "its text"));
  const auto label = row.optional("run");
  if (!label)
    throw ConfigError("does not say its run, as rows of earlier builds; remove the folder and do its shards again");
  if (row.required("key").as_seed() != work.key(run))
    throw ConfigError("found the row of another run, " + label->as_string());
  const JsonNode held = row.required("held");
  row.finish();
  return held;
}

void read_row_at(const std::filesystem::path& file, std::uint64_t offset, const std::string& label,
                 const std::function<void()>& read) {
  const auto refuse = [&](const std::exception& why) {
    throw ConfigError(fmt::format("{}: the row of {}, from byte {} on: {}", file.string(), label, offset, why.what()));
  };
  try {
    read();
  } catch (const ConfigError& error) {
    refuse(error);
  } catch (const JsonError& error) {  // its checksum fits: whoever wrote the row made both
    refuse(error);
  }
}

ShardOutcome run_shard(const ShardedWork& work, const Shard& shard, const std::filesystem::path& folder,
                       const ShardRuns& runs, const ShardOptions& options) {
  prepare_folder(work, folder);
  return ShardRun(work, shard, folder, runs, options).run();
}

namespace {

constexpr std::uint64_t kMaxShards = 1'000'000;

/// The number in an environment variable. Throws ConfigError if it is set to something else.
std::optional<std::uint64_t> variable_number(const ReadVariable& variable, const char* name) {
  const char* text = variable(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto value = parse_number<std::uint64_t>(text);
  if (!value || *value > std::numeric_limits<std::uint32_t>::max())
    throw ConfigError(fmt::format("--shard auto: {} is \"{}\", expected a whole number", name, text));
  return value;
}

/// A place among processes or jobs that a scheduler has started, as the environment says it.
struct Rank {
  const char* name = "";        ///< of the variable that holds the index
  const char* count_name = "";  ///< of the variable that should hold the count
  std::uint64_t index = 0;
  std::optional<std::uint64_t> count;
};

/// The place in an array of jobs. Its indices may begin anywhere and be spaced: 1-64, 0-63, 10-100:10.
std::optional<Rank> array_rank(const ReadVariable& variable, bool count_given) {
  if (const auto index = variable_number(variable, "JOB_COMPLETION_INDEX"))
    return Rank{"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", *index, variable_number(variable, "JOB_COMPLETIONS")};
  const auto id = variable_number(variable, "SLURM_ARRAY_TASK_ID");
  if (!id) return std::nullopt;
  Rank rank{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", *id, variable_number(variable, "SLURM_ARRAY_TASK_COUNT")};
  // If the count is given, only some indices of the array may run again: an index is then a shard as it stands.
  if (count_given) return rank;
  const std::uint64_t least = variable_number(variable, "SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::uint64_t step = std::max<std::uint64_t>(variable_number(variable, "SLURM_ARRAY_TASK_STEP").value_or(1), 1);
  if (rank.count && (*id < least || (*id - least) % step != 0 || (*id - least) / step > *rank.count))
    throw ConfigError(
        fmt::format("--shard auto: index {} of the array is not one of {} in steps of {} from {}; an array "
                    "with gaps needs the count of all shards: --shard auto/64",
                    *id, *rank.count, step, least));
  rank.index = (*id - least) / step;
  return rank;
}

/// The rank among the processes that mpirun or srun has started.
std::optional<Rank> process_rank(const ReadVariable& variable) {
  // mpirun starts its helpers by srun, so that its own variables come first.
  constexpr std::pair<const char*, const char*> kOfMpi[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                            {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [name, count_name] : kOfMpi)
    if (const auto index = variable_number(variable, name))
      return Rank{name, count_name, *index, variable_number(variable, count_name)};
  const auto index = variable_number(variable, "SLURM_PROCID");
  // The script of a batch job has a SLURM_PROCID too, of 0, and is one process, however many tasks srun may start.
  const bool is_script = variable("SLURM_JOB_ID") != nullptr && variable("SLURM_STEP_ID") == nullptr;
  if (!index || is_script) return std::nullopt;
  const auto tasks = variable_number(variable, "SLURM_STEP_NUM_TASKS");
  return Rank{"SLURM_PROCID", "SLURM_NTASKS", *index, tasks ? tasks : variable_number(variable, "SLURM_NTASKS")};
}

/// Throws ConfigError unless the index counts from 0 or from 1.
std::uint64_t checked_index(std::uint64_t index, std::uint64_t count, const std::string& where) {
  if (index > count)
    throw ConfigError(fmt::format("{}: index {} is beyond the count of {}; expected 0 to {}, or 1 to {}", where, index,
                                  count, count - 1, count));
  return index % count;
}

Shard automatic_shard(std::optional<std::uint64_t> given, const ReadVariable& variable) {
  const auto process = process_rank(variable);
  auto array = array_rank(variable, given.has_value());
  if (!process && !array) {
    if (variable("SLURM_JOB_ID") != nullptr && !given) return {0, 1};  // a batch script is the only process of its job
    throw ConfigError(
        "--shard auto: none of SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK and "
        "JOB_COMPLETION_INDEX is set; say it, as in --shard 3/64");
  }
  const auto missing = [](const Rank& rank) {
    return ConfigError(fmt::format("--shard auto: {} is set, but not {}; give the count, as in --shard auto/64",
                                   rank.name, rank.count_name));
  };
  if (process && !process->count && (array || !given)) throw missing(*process);
  const std::uint64_t processes = process ? process->count.value_or(given.value_or(1)) : 1;
  if (processes == 0) throw ConfigError(fmt::format("--shard auto: {} is 0", process->count_name));
  if (given && (array ? *given % processes != 0 : *given != processes))
    throw ConfigError(fmt::format("--shard auto/{}: {} is {}, expected {}", *given, process->count_name, processes,
                                  array ? "a divisor of the count" : "the same"));
  if (array && given) array->count = *given / processes;
  if (array && !array->count) throw missing(*array);
  if (array && *array->count == 0) throw ConfigError(fmt::format("--shard auto: {} is 0", array->count_name));
  const std::uint64_t jobs = array ? *array->count : 1;
  const std::uint64_t job = array ? checked_index(array->index, jobs, fmt::format("--shard auto: {}", array->name)) : 0;
  const std::uint64_t rank =
      process ? checked_index(process->index, processes, fmt::format("--shard auto: {}", process->name)) : 0;
  return {job * processes + rank, jobs * processes};
}

}  // namespace

Shard read_shard(const std::string& text, const ReadVariable& variable) {
  const std::size_t slash = text.find('/');
  const std::string index = text.substr(0, slash);
  std::optional<std::uint64_t> count;
  if (slash != std::string::npos) count = parse_number<std::uint64_t>(std::string_view(text).substr(slash + 1));
  const bool valid_count = count && *count >= 1 && *count <= kMaxShards;
  if (index == "auto" && (slash == std::string::npos || valid_count)) return automatic_shard(count, variable);
  const auto number = parse_number<std::uint64_t>(index);
  if (!number || !valid_count)
    throw ConfigError(fmt::format(
        "--shard: found \"{}\", expected auto, auto/N or I/N with N from 1 to {}, such as 3/64", text, kMaxShards));
  return {checked_index(*number, *count, "--shard " + text), *count};
}

}  // namespace ganymede::studies

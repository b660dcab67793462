#include "studies/shard_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "common/errors.hpp"
#include "common/plain_text.hpp"

namespace ganymede::studies {
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

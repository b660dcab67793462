#pragma once
// Work that is split among processes which share nothing but a folder: shards. Each run of the work belongs to one
// shard by a hash of its content, and each shard appends finished runs to a file of its own, so that shards may be
// lost, repeated and added in any number. docs/shards.md describes the folder.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "common/process.hpp"

namespace ganymede::studies {

/// Shard `index` of `count`: the runs whose hash leaves the rest `index` when divided by `count`.
struct Shard {
  std::uint64_t index = 0, count = 1;  ///< index < count
};

/// The most runs of a study, in a file or in a folder of shards: each takes some 200 bytes of memory.
inline constexpr std::size_t kMaxRuns = 10'000'000;

/// The work that is split: every part with every seed.
struct ShardedWork {
  struct Part {
    std::string label;    ///< for people: "aws us-east-1, 2 x V100, ring"
    std::string content;  ///< hash of all that its results depend on, apart from the seed
  };
  std::string command;  ///< that the shards run: "sweep"
  std::string program;  ///< its version
  std::string name;     ///< of the study
  std::vector<Part> parts;
  std::vector<std::uint64_t> seeds;  ///< empty: each part is one run without a seed
  /// The data that `merge` needs besides the rows, in the command's own form; null: nothing.
  Json asked{};

  std::size_t size() const { return parts.size() * std::max<std::size_t>(seeds.size(), 1); }
  /// "aws us-east-1, 2 x V100, ring, seed 1". Runs are ordered by part, then by seed.
  std::string label(std::size_t run) const;
  /// Hash of the run's content. Runs of the same content have the same one, and the same result.
  std::uint64_t key(std::size_t run) const;
  Shard shard_of(std::size_t run, std::uint64_t count) const;
};

/// The outcome of a run.
enum class RowKind : char {
  result = 'r',
  endless = 'e',  ///< the run would never finish; this is as final as a result
  failure = 'f'   ///< the run failed; its shard tries it again when it is started again
};

struct ShardOptions {
  int jobs = 1;  ///< child processes at once
  ChildUse use = ChildUse::reused;
  std::function<bool()> stopped{};  ///< true: ends early, with everything written that is done
  std::function<void(const std::string& what)> remark{};
  /// Begins to show the progress of `count` runs; what it returns gets the number of runs that are done.
  std::function<std::function<void(std::size_t done)>(std::size_t count)> show{};
};

/// How the runs of a shard are done.
struct ShardRuns {
  /// Does a run in a child process; what it returns is kept, in one line.
  std::function<std::string(std::size_t run)> work;
  /// The line that is kept of a run that failed or would never finish. Empty: such a run ends the shard's command.
  std::function<std::string(std::size_t run, const ChildOutcome& outcome)> failed_row{};
};

/// The work that a shard has done.
struct ShardOutcome {
  std::size_t runs = 0;     ///< runs of the shard
  std::size_t earlier = 0;  ///< of these, runs that some shard of the folder had done before
  std::size_t done = 0;     ///< runs that were done now and have a result or never finish
  std::size_t failed = 0;
  std::string first_reason;  ///< why the first of them failed
  bool complete() const { return earlier + done + failed == runs; }
};

/// Does the runs of one shard that no shard of the folder has done yet. Makes the folder if it is missing. Throws
/// ConfigError if the folder holds shards of other work, if another process does the same shard, or if the input of a
/// run is wrong; Failure if the disk is full.
ShardOutcome run_shard(const ShardedWork& work, const Shard& shard, const std::filesystem::path& folder,
                       const ShardRuns& runs, const ShardOptions& options);

// The shard that a process does, as --shard and the program that started it say.

/// The value of an environment variable; null if it is not set.
using ReadVariable = std::function<const char*(const char* name)>;

/// Reads "3/64", "auto" or "auto/64". `auto` takes the place that Slurm, mpirun or Kubernetes says in the environment:
/// in an array of jobs, among the ranks of a job, or both together. Indices may count from 0 or from 1: the last of 64
/// shards is 63/64, and 64/64 is 0/64. Throws ConfigError for an index beyond the count, and if the environment says
/// too little.
Shard read_shard(const std::string& text, const ReadVariable& variable);

}  // namespace ganymede::studies

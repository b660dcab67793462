#pragma once
// --shard: which part of some work this process does.

#include <functional>
#include <string>

#include "cli/command.hpp"
#include "studies/shards.hpp"

namespace ganymede::cli {

/// Declares --shard.
void add_shard(Parser command, std::string& shard);

/// The value of an environment variable; null if it is not set.
using ReadVariable = std::function<const char*(const char* name)>;

/// Reads "3/64", "auto" or "auto/64". `auto` takes what Slurm, mpirun or Kubernetes says in the environment: the place
/// in an array of jobs, the rank in a job, or both together. Indices may count from 0 or from 1: the last of 64 shards
/// is 63/64, and 64/64 is 0/64. Throws ConfigError for an index beyond the count, and if the environment says too
/// little.
studies::Shard read_shard(const std::string& text, const ReadVariable& variable);

/// What shards of all commands have in common: children, progress, remarks, and an early end on SIGTERM.
studies::ShardOptions shard_options(const Shared& shared, const std::string& what);

/// Says what the shard has done, and sets the exit code if it was stopped early. Throws Failure if runs failed.
void report_shard(Shared& shared, const studies::Shard& shard, const studies::ShardOutcome& outcome);

/// Throws ConfigError unless -o names the folder of the shards.
void require_folder(const Shared& shared);

}  // namespace ganymede::cli

#pragma once
// --shard: which part of some work this process does.

#include <string>

#include "cli/command.hpp"
#include "studies/shard_place.hpp"

namespace ganymede::cli {

using studies::read_shard;

/// Declares --shard.
void add_shard(Parser command, std::string& shard);

/// The options that shards of all commands share: children, progress, remarks, and an early end on SIGTERM.
studies::ShardOptions shard_options(const Shared& shared, const std::string& what);

/// Says what the shard has done, and sets the exit code if it was stopped early. Throws Failure if runs failed.
void report_shard(Shared& shared, const studies::Shard& shard, const studies::ShardOutcome& outcome);

/// Throws ConfigError unless -o names the folder of the shards.
void require_folder(const Shared& shared);

}  // namespace ganymede::cli

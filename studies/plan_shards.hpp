#pragma once
// A plan split into shards (shards.hpp): each run is a unit of the plan's search (plan::Search).

#include <filesystem>
#include <string>

#include "plan/planner.hpp"
#include "studies/shard_folder.hpp"
#include "studies/shards.hpp"

namespace ganymede::studies {

/// Evaluates one shard of a plan's units. Before each of them it reads what all shards of the folder have found, so
/// that it leaves out what these beat. Throws ConfigError if the deadline is a time and the request does not say from
/// when it counts, because each shard would count from another moment.
ShardOutcome run_plan_shard(const plan::Request& request, bool exhaustive, const std::string& program,
                            const Shard& shard, const std::filesystem::path& folder, const ShardOptions& options);

/// A plan that shards have evaluated.
struct MergedPlan {
  plan::Request request;
  plan::Plan plan;
};

/// Makes the plan of a folder after ShardFolder::scan(): the one that a single process makes. Units that are missing
/// are evaluated here, by `jobs` processes. Throws ConfigError if `program` or a file that the request names is not the
/// one that the shards have used.
MergedPlan merge_plan(const ShardFolder& folder, const std::filesystem::path& path, const std::string& program,
                      int jobs);

}  // namespace ganymede::studies

#pragma once
// The training of a table split into shards (shards.hpp): each run is one of plan::LearnOptions::learners.

#include <filesystem>
#include <string>
#include <vector>

#include "plan/learn.hpp"
#include "studies/shard_folder.hpp"
#include "studies/shards.hpp"

namespace ganymede::studies {

/// The learning task, as a user states it.
struct LearnQuestion {
  std::filesystem::path scenario;
  std::vector<JsonOverride> overrides;
  plan::LearnOptions options;
};

ShardOutcome run_learn_shard(const LearnQuestion& question, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, const ShardOptions& options);

/// The table of a folder after ShardFolder::scan(), all of whose runs must be there: the one of a single process.
struct MergedTable {
  plan::LearnOptions options;
  plan::LearnedTable table;
};
/// Throws ConfigError if `program` or the scenario is not the one that the shards have used.
MergedTable merge_table(const ShardFolder& folder, const std::filesystem::path& path, const std::string& program);

}  // namespace ganymede::studies

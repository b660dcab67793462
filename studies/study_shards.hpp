#pragma once
// Studies, plans and lessons split into shards (shards.hpp): the work of a shard, and how a folder of shards becomes
// one sweep, plan or table.

#include <filesystem>
#include <string>
#include <vector>

#include "plan/learn.hpp"
#include "plan/planner.hpp"
#include "studies/run_study.hpp"
#include "studies/shard_folder.hpp"
#include "studies/shards.hpp"
#include "studies/study.hpp"
#include "studies/summary.hpp"

namespace ganymede::studies {

/// The runs of a study as work to split. `program` is the version that simulates.
ShardedWork sharded(const Study& study, const std::string& program);

/// Simulates one shard of a study.
ShardOutcome run_study_shard(const Study& study, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, ShardOptions options);

/// The runs that a folder of shards holds, after ShardFolder::scan().
class MergedStudy {
 public:
  /// Scans the folder, whose command must be `kSweepShards`. Memory grows with the number of runs by some 300 bytes
  /// each, and not with the size of their results.
  MergedStudy(ShardFolder& folder, const ShardFolder::Remark& remark);

  /// Counts of runs without a result and why the first has none; texts are empty.
  const StudyOutcome& outcome() const { return outcome_; }
  /// Number of runs that are there, with a result or without.
  std::size_t runs() const { return facts_.size() + outcome_.failed + outcome_.endless; }
  /// Writes the `ganymede.sweep/1` of all runs that are there: if all are, the bytes of `sweep --format json`.
  void write(const ContentSink& sink) const;

 private:
  const ShardFolder& folder_;
  StudyOutcome outcome_;
  std::vector<RunFacts> facts_;  ///< of the runs that have a result, in the study's order
};

// A plan split into shards (shards.hpp): each run is a unit of the plan's search (plan::Search).

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

// The training of a table split into shards (shards.hpp): each run is one of plan::LearnOptions::learners.

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

#pragma once
// A study split into shards (shards.hpp): what a shard does, and how a folder of shards becomes one sweep.

#include <string>

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

}  // namespace ganymede::studies

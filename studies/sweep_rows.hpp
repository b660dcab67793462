#pragma once
// Rows of a sweep: what a child process sends of a run, what files keep of it, and how rows become a
// `ganymede.sweep/1`.

#include <map>
#include <string>
#include <string_view>

#include "common/file.hpp"
#include "common/process.hpp"
#include "sim/steps/step_distribution_cache.hpp"
#include "studies/study.hpp"
#include "studies/summary.hpp"

namespace ganymede::studies {

/// A run that is done: its result as one line of JSON, and what the summary needs of it.
struct FinishedRun {
  std::string line;
  RunFacts facts;
};

/// Each result begins so.
inline constexpr std::string_view kResultBegin = R"({"schema":"ganymede.result/1")";

/// Simulates runs of one study. Child processes fork a copy, which keeps what runs have in common.
class StudySimulator {
 public:
  explicit StudySimulator(const Study& study) : study_(study) {}

  /// Simulates a run and returns its row: the facts (facts_line()), a tab and the result as one line of JSON.
  std::string row(std::size_t run);
  /// A run in the fidelity `message` needs a process of its own.
  ChildUse use() const;

 private:
  const Study& study_;
  sim::StepDistributionCache cache_;
  /// Each scenario is copied once, and then only its seed changes.
  std::map<const sim::Scenario*, sim::Scenario> copies_;
};

/// Reads what StudySimulator::row() wrote.
FinishedRun read_row(std::string_view row);

/// The entry of a sweep's "failed" for a run that failed or would never finish, as one line of JSON.
std::string failed_row(const StudyRun& run, const ChildOutcome& outcome);

/// Writes a `ganymede.sweep/1` piece by piece: every result, then every failed run, then the end.
class SweepWriter {
 public:
  SweepWriter(const ContentSink& sink, const std::string& study);
  void add_result(std::string_view line);
  void add_failed(std::string_view line);
  void finish(const Summary& summary);

 private:
  void end_results();

  const ContentSink& sink_;
  std::size_t results_ = 0, failed_ = 0;
};

}  // namespace ganymede::studies

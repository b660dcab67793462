#pragma once
// Trainings of any kind of log as the model of quality takes them.

#include <string>
#include <vector>

#include "calibration/quality/fit.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::plan {

struct RecordedRuns {
  std::vector<calibration::RecordedRun> runs;
  std::vector<std::string> notes;  ///< of the reading
};

/// Reads a log as traces::read_quality_logs() does, or a ganymede.run-log/1. `given` are facts that flags state; they
/// fill in what a file leaves out, and replace what it says, but for the dataset and the reference: ConfigError.
RecordedRuns read_recorded_runs(const std::string& file, const traces::QualityLogOptions& options,
                                const traces::QualityLog& given);
/// The run of that name, or the only one if the name is empty. Throws ConfigError with the nearest name; `file` is for
/// the message.
const calibration::RecordedRun& chosen_run(const std::vector<calibration::RecordedRun>& runs, const std::string& name,
                                           const std::string& file);

/// Adds the networks and the loss of a model of this program, where they are not stated.
void add_facts_of_model(const std::string& model, traces::QualityLog& facts);
/// The kind of training that facts state.
calibration::QualityKind kind_of(const traces::QualityLog& facts);

}  // namespace ganymede::plan

#pragma once
// Trainings of any kind of log as the model of quality takes them.

#include <string>
#include <vector>

#include "calibration/quality/fit.hpp"
#include "cli/options.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::cli {

struct QualityLogs {
  std::vector<calibration::RecordedRun> runs;
  std::vector<std::string> notes;  ///< of the reading
};

/// Reads a log as traces::read_quality_logs() does, or a ganymede.run-log/1. `given` are facts that flags state; they
/// fill in what a file leaves out, and replace what it says, but for the dataset and the reference: ConfigError.
QualityLogs read_recorded_runs(const std::string& file, const traces::QualityLogOptions& options,
                               const traces::QualityLog& given);

/// Adds the networks and the loss of a model of this program, where they are not stated.
void add_facts_of_model(const std::string& model, traces::QualityLog& facts);
/// The kind of training that facts state.
calibration::QualityKind kind_of(const traces::QualityLog& facts);

/// Declares --dataset, --reference, --backbone, …, --batch, which fill `given`.
void add_quality_facts(Parser command, traces::QualityLog& given);
/// Declares --runs, --images-per-step and --tag.
void add_quality_log_options(Parser command, traces::QualityLogOptions& options);

}  // namespace ganymede::cli

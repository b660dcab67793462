#pragma once
// Inputs that are kept from one scenario for the next: a search reads thousands of scenarios that name the same trace.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "calibration/quality/goal.hpp"
#include "common/json_fwd.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::sim {

/// Parsed traces and hashes of embedded texts. A caller that reads several scenarios (a plan, a study) owns one cache
/// and passes it to read_scenario(); the scenarios do not depend on it. Not thread-safe; each forked child process has
/// its own copy.
class ScenarioInputCache {
 public:
  /// A parsed trace, and the hash of its text.
  struct KnownTrace {
    std::shared_ptr<const traces::StepTrace> trace;
    std::uint64_t hash;
  };
  /// The trace that `at` names: a recorded one or a file. The file is read each time, but parsed only if its content is
  /// new. Throws ConfigError as trace_text() and read_step_trace() do.
  KnownTrace trace(const JsonNode& at) { return trace(at, nullptr); }
  /// The same with a step that the user measured, "measured" of the workload, in place of the recorded ones
  /// (calibration/stated_step.hpp). The hash is still that of the trace's text.
  KnownTrace trace(const JsonNode& at, const JsonNode* measured);

  /// The goal of a workload's "quality" for a model of this name, and the hash of the file with its curve (0: none).
  /// The reference is valid as long as this object.
  struct KnownGoal {
    const calibration::QualityGoal& goal;
    std::uint64_t hash;
  };
  KnownGoal quality(const JsonNode& at, const std::string& model);

  /// The hash of `text`, which is built into the program under `name`.
  std::uint64_t embedded_hash(const std::string& name, std::string_view text);

 private:
  std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<const traces::StepTrace>>
      traces_;                                             // by name and hash of the text
  std::map<std::string, calibration::QualityGoal> goals_;  // by what they depend on
  std::map<std::string, std::uint64_t> hashes_;            // by name of the embedded text
};

}  // namespace ganymede::sim

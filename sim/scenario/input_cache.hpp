#pragma once
// What reading one scenario leaves for the next: a search reads thousands of scenarios that name the same trace.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/json.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::sim {

/// Parsed traces and hashes of embedded texts. Whoever reads several scenarios (a plan, a study) owns one and passes it
/// to read_scenario; what is read does not depend on it. Not for concurrent use: child processes fork a copy each.
class ScenarioInputCache {
 public:
  /// A trace as its text gave it, with the hash of the text.
  struct KnownTrace {
    const traces::StepTrace& trace;
    std::uint64_t hash;
  };
  /// The trace that `at` names: a recorded one or a file. The file is read each time and parsed when its content is
  /// new. The reference lives as long as this. Throws ConfigError as trace_text() and read_step_trace() do.
  KnownTrace trace(const JsonNode& at);

  /// The hash of `text`, which is built into the program under `name`.
  std::uint64_t embedded_hash(const std::string& name, std::string_view text);

 private:
  std::map<std::pair<std::string, std::uint64_t>, traces::StepTrace> traces_;  // by name and hash of the text
  std::map<std::string, std::uint64_t> hashes_;                                // by name of the embedded text
};

}  // namespace ganymede::sim

#pragma once
// A scenario with its files in a folder of its own: a made-up trace, the made-up platform and a scenario that names
// both.

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "sim/scenario/scenario.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::sim {

class ScenarioFiles {
 public:
  explicit ScenarioFiles(const traces::StepTrace& trace = constant_trace(40)) {
    folder_.add("traces/t.json", traces::write_step_trace(trace));
    folder_.add("lab.json", made_up_platform());
  }

  /// Two one-GPU nodes, ring, 1000 steps. Tests change the values that they are about.
  static Json basic() {
    return Json::parse(R"({ "schema": "ganymede.scenario/1",
      "workload": { "trace": "traces/t.json", "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 },
                    "batch_per_gpu": 64, "steps": 1000 },
      "platform": { "catalog": "lab.json", "region": "room-1", "instance": "one", "nodes": 2 },
      "synchronization": { "scheme": "ring" },
      "seed": 1 })");
  }

  Scenario load(const Json& content, const std::vector<JsonOverride>& overrides = {}) const {
    return load_scenario(folder_.add("scenario.json", content.dump()), overrides);
  }
  /// basic() with one value replaced or added.
  Scenario load_with(const char* pointer, const Json& value) const { return load(with(pointer, value)); }
  static Json with(const char* pointer, const Json& value) {
    Json content = basic();
    content[JsonPointer(pointer)] = value;
    return content;
  }

  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace ganymede::sim

#pragma once
// A study like studies/first-look.json, with its files in a temporary folder.

#include <filesystem>
#include <vector>

#include "common/json_value.hpp"
#include "studies/study.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::studies {

class StudyFiles {
 public:
  StudyFiles() {
    folder_.add("traces/t.json", traces::write_step_trace(constant_trace(40)));
    folder_.add("studies/lab.json", made_up_platform());
  }

  /// A study of three GPU counts, two schemes and one seed on the made-up platform.
  static Json basic() {
    return Json::parse(R"({ "schema": "ganymede.study/1", "name": "small",
      "workload": { "trace": "../traces/t.json",
                    "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 },
                    "batch_per_gpu": 64, "epochs": 2 },
      "platforms": [ { "catalog": "lab.json", "region": "room-1", "gpu": "X" } ],
      "gpus": [1, 2, 4],
      "schemes": ["ring", "reduce-to-one"],
      "seeds": [1] })");
  }
  static Json with(const char* pointer, const Json& value) {
    Json content = basic();
    content[JsonPointer(pointer)] = value;
    return content;
  }

  std::filesystem::path file() const { return folder_ / "studies/study.json"; }
  Study load(const Json& content, const std::vector<JsonOverride>& overrides = {}) const {
    return load_study(folder_.add("studies/study.json", content.dump()), overrides);
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace ganymede::studies

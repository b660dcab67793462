#pragma once
// Requests over the made-up platform and trace, for the planner's tests.

#include <gtest/gtest.h>

#include <string>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "plan/planner.hpp"
#include "support/errors.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::plan {
inline constexpr const char* kNow = "2026-11-20T12:00:00Z";

/// Writes the made-up platform ("lab") and trace into a temporary folder, for requests that name them.
class Plans : public testing::Test {
 protected:
  Plans() {
    Json platform = Json::parse(made_up_platform());
    for (Json& price : platform["instances"]["one"]["prices"])
      if (price["market"] == "spot") price["interrupted_per_month"] = 0;
    folder_.add("lab.json", platform.dump());
    folder_.add("t.json", traces::write_step_trace(constant_trace(40)));
    content = Json::parse(R"({ "schema": "ganymede.request/1",
      "workload": { "trace": "t.json", "images": 23040000 },
      "search": { "catalogs": ["lab.json"], "schemes": ["ring"], "max_gpus": 8, "seeds": 2 } })");
  }
  Request request() const { return read_request(JsonNode::load(folder_.add("request.json", content.dump())), kNow); }
  Plan plan(bool exhaustive = false, int jobs = 2) const {
    const Request of = request();
    PlanOptions options;
    options.jobs = jobs;
    if (exhaustive) options.effort = Effort::exhaustive;
    return make_plan(of, options);
  }
  Json json(int jobs = 2) const {
    const Request of = request();
    PlanOptions options;
    options.jobs = jobs;
    return Json::parse(plan_json(of, make_plan(of, options), folder_.path()));
  }
  std::string error() const {
    return message_of<ConfigError>([&] { request(); });
  }

  Json content;
  TemporaryFolder folder_;
};

}  // namespace ganymede::plan

#pragma once
// Services for the tests: documents with a few members replaced.

#include <string>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "sim/service/service.hpp"

namespace ganymede::sim {

/// One V100 that serves an image in 20 ms, with these members replaced: {"arrivals": {"per_second": 40}}.
inline Json service_document(const char* more) {
  Json document = Json::parse(R"({"schema": "ganymede.service/1", "generator": {"measured": {"1": "20ms"}},
    "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge"},
    "arrivals": {"per_second": 10}, "timeout": "1h", "queue": 1000000, "duration": "1h", "seed": 1})");
  document.merge_patch(Json::parse(more));
  return document;
}

inline Service service_of(const char* more) {
  return read_service(JsonNode::wrap(service_document(more), "service.json", "."));
}

}  // namespace ganymede::sim

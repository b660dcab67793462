#pragma once
// Platforms for tests of the engine, read from JSON as a user writes it.

#include <fmt/format.h>

#include <string>

#include "common/json.hpp"
#include "platforms/platform.hpp"

namespace ganymede::sim {

/// A memory so fast that adding a gigabyte takes 30 ns.
inline constexpr const char* kFreeAdding = R"("memory_bandwidth": "100000000GB/s")";

/// One-GPU nodes on a non-blocking switch, and others; `nic` and `fabric` are latencies such as "5us".
inline platforms::Platform star_platform(const std::string& bandwidth, const std::string& nic,
                                         const std::string& fabric, const std::string& more = "",
                                         const std::string& gpu = R"("memory_bandwidth": "900GB/s")") {
  return platforms::read_platform(
      JsonNode::parse(fmt::format(R"({{ "schema": "ganymede.platform/1", "provider": "private", "name": "star",
        "gpus": {{ "X": {{ "memory": "16GiB", "fp32": "10Tflop/s", {4} }} }},
        "instances": {{
          "one": {{ "gpu": "X", "gpus": 1, "nic": {{ "bandwidth": "{0}", "latency": "{1}" }} }},
          "staged": {{ "gpu": "X", "gpus": 1, "host_link": {{ "bandwidth": "12GB/s", "latency": "2us" }},
                       "nic": {{ "bandwidth": "{0}", "latency": "{1}", "rendezvous": "3us", "gpu_direct": false }} }},
          "four": {{ "gpu": "X", "gpus": 4, "gpu_links": {{ "kind": "nvlink", "bandwidth": "80GB/s", "latency": "1us" }},
                     "nic": {{ "bandwidth": "{0}", "latency": "{1}" }} }},
          "pcie": {{ "gpu": "X", "gpus": 2, "host_link": {{ "bandwidth": "12GB/s", "latency": "2us" }} }} }},
        "fabric": {{ "kind": "switch", "latency": "{2}" {3} }} }})",
                                  bandwidth, nic, fabric, more, gpu),
                      "star.json"));
}

/// A platform of which only the instance "node" and the fabric matter.
inline platforms::Platform platform_of(const std::string& node, const std::string& fabric = R"({"kind": "switch"})",
                                       const std::string& gpu = R"("memory_bandwidth": "900GB/s")") {
  return platforms::read_platform(JsonNode::parse(
      R"({"schema": "ganymede.platform/1",
          "gpus": {"X": {"memory": "16GiB", "fp32": "10Tflop/s", )" +
          gpu + R"(}},
          "instances": {"node": {"gpu": "X", )" +
          node + R"(}}, "fabric": )" + fabric + "}",
      "lab.json"));
}

}  // namespace ganymede::sim

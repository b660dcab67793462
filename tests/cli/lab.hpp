#pragma once
// A platform of hosts on one switch, and a training on it, for tests that rehearse it or let a policy steer it.

#include <string>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {

/// A price of the platform's hosts, such as "1USD/h".
inline Json lab_price(const char* market, const char* per_hour) {
  return {
      {"region", "room"}, {"market", market}, {"per_hour", per_hour}, {"as_of", "2026-11-01"}, {"source", "a test"}};
}

/// Writes the platform as `lab.json`, with `platform_changes`, and a scenario of 64 images a step on it, with
/// `changes`; both changes are JSON merge patches. Returns the scenario's file.
inline std::string write_lab(const Scratch& scratch, const Json& platform_changes, const Json& changes) {
  Json platform = {{"schema", "ganymede.platform/1"},
                   {"provider", "private"},
                   {"name", "lab"},
                   {"gpus",
                    {{"AMD EPYC, 2 threads",
                      {{"kind", "cpu"}, {"memory", "16GiB"}, {"fp32", "100Gflop/s"}, {"memory_bandwidth", "10GB/s"}}}}},
                   {"instances",
                    {{"host",
                      {{"gpu", "AMD EPYC, 2 threads"},
                       {"gpus", 1},
                       {"nic", {{"bandwidth", "1Gbit/s"}, {"latency", "250us"}}},
                       {"prices", Json::array({lab_price("on-demand", "1USD/h")})}}}}},
                   {"regions", {{"room", Json::object()}}},
                   {"fabric", {{"kind", "switch"}, {"latency", "0us"}, {"oversubscription", 1}}}};
  platform.merge_patch(platform_changes);
  scratch.write("lab.json", platform.dump());
  Json scenario = {
      {"schema", "ganymede.scenario/1"},
      {"workload",
       {{"trace", "recorded:dcgan-28-cpu"},
        {"dataset", {{"name", "mnist"}, {"images", 60000}, {"bytes_per_image", 784}}},
        {"batch_per_gpu", 64},
        {"steps", 1000}}},
      {"platform",
       {{"catalog", "lab.json"}, {"region", "room"}, {"instance", "host"}, {"nodes", 2}, {"market", "on-demand"}}},
      {"synchronization", {{"scheme", "ring"}}},
      {"seed", 1}};
  scenario.merge_patch(changes);
  return scratch.write("scenario.json", scenario.dump());
}

/// A disk for checkpoints, and nodes that take so long to be ready, as changes of the platform.
inline Json lab_provisioning(const char* boot, const char* image_pull, const char* framework_start,
                             const char* communicator_start) {
  return {{"storage",
           {{"disk", {{"read", "100MB/s"}, {"write", "100MB/s"}, {"per_gb_month", "0USD"}, {"source", "a test"}}}}},
          {"provisioning",
           {{"boot", boot},
            {"image_pull", image_pull},
            {"framework_start", framework_start},
            {"communicator_start", communicator_start},
            {"source", "a test"}}}};
}

}  // namespace ganymede::cli

#pragma once
// Small clusters, as JSON, and what comes out of them.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/cluster/cluster_simulation.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::sim {

using nlohmann::json;

/// Two nodes of four GPUs for 10.80 USD/h each.
inline json cluster_of(const json& jobs, const json& scheduler = {{"name", "fifo-backfill"}}) {
  return {{"schema", "ganymede.cluster/1"},
          {"platform", {{"catalog", json::parse(made_up_platform())}, {"instance", "four"}, {"nodes", 2}}},
          {"jobs", jobs},
          {"scheduler", scheduler},
          {"preemption", {{"save", "10s"}, {"restore", "30s"}}},
          {"seed", 1U}};
}

/// A job that runs for so many seconds on the GPUs that it asks for.
inline json timed(const char* name, double arrival_s, int gpus, double seconds) {
  return {{"name", name},
          {"arrival", fmt::format("{}s", arrival_s)},
          {"gpus", gpus},
          {"duration", fmt::format("{}s", seconds)}};
}

inline Cluster read(const json& document, const std::filesystem::path& folder = ".") {
  return read_cluster(JsonNode::wrap(document, "cluster.json", folder));
}
inline json result_of(const json& document) {
  const Cluster cluster = read(document);
  return json::parse(cluster_result_json(cluster, simulate_cluster(cluster)));
}
inline double start_of(const json& result, std::size_t job) { return result["jobs"][job]["start_s"]; }
inline double end_of(const json& result, std::size_t job) { return result["jobs"][job]["end_s"]; }

/// Two jobs of one GPU on each of two nodes, which share NICs, and a scenario's steps.
inline json trained(const TemporaryFolder& folder) {
  folder.add("trace.json", traces::write_step_trace(constant_trace(1)));
  json document = cluster_of(
      {{{"name", "a"}, {"gpus", 2}, {"workload", "gan"}}, {{"name", "b"}, {"gpus", 2}, {"workload", "gan"}}});
  document["workloads"] = {{"gan",
                            {{"workload",
                              {{"trace", (folder / "trace.json").string()},
                               {"dataset", {{"name", "x"}, {"images", 1000}}},
                               {"batch_per_gpu", 64},
                               {"steps", 1000}}},
                             {"synchronization", {{"scheme", "ring"}, {"overlap", false}}}}}};
  document["placement"] = "spread";
  return document;
}

/// Jobs of one GPU with 1,000 steps of 10 ms, one for each entry: what a step's 64 images have in kB, read from
/// `store`.
inline json reading(const TemporaryFolder& folder, const std::vector<int>& kilobytes, const char* store,
                    const char* cache) {
  json document = trained(folder);
  document["placement"] = "consolidate";
  const json workload = document["workloads"]["gan"];
  document["jobs"] = json::array();
  for (std::size_t i = 0; i < kilobytes.size(); ++i) {
    const std::string name = fmt::format("gan-{}", i);
    document["jobs"].push_back({{"name", name}, {"gpus", 1}, {"workload", name}});
    json& own = document["workloads"][name] = workload;
    own["workload"]["dataset"] = {{"name", "x"}, {"images", 12800}, {"bytes_per_image", kilobytes[i] * 1000 / 64.0}};
    own["storage"] = {{"dataset", store}, {"cache", cache}};
  }
  return document;
}

/// Seconds: the pipeline of the steps that are simulated fills once.
constexpr double kFill = 0.01;

}  // namespace ganymede::sim

#pragma once
// Small clusters, as JSON, and what comes out of them.

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "sim/cluster/cluster_simulation.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::sim {

/// Two nodes of four GPUs for 10.80 USD/h each.
inline Json cluster_of(const Json& jobs, const Json& scheduler = {{"name", "fifo-backfill"}}) {
  return {{"schema", "ganymede.cluster/1"},
          {"platform", {{"catalog", Json::parse(made_up_platform())}, {"instance", "four"}, {"nodes", 2}}},
          {"jobs", jobs},
          {"scheduler", scheduler},
          {"preemption", {{"save", "10s"}, {"restore", "30s"}}},
          {"seed", 1U}};
}

/// A job that runs for so many seconds on the GPUs that it asks for.
inline Json timed(const char* name, double arrival_s, int gpus, double seconds) {
  return {{"name", name},
          {"arrival", fmt::format("{}s", arrival_s)},
          {"gpus", gpus},
          {"duration", fmt::format("{}s", seconds)}};
}

inline Cluster read(const Json& document, const std::filesystem::path& folder = ".") {
  return read_cluster(JsonNode::wrap(document, "cluster.json", folder));
}
inline Json result_of(const Json& document) {
  const Cluster cluster = read(document);
  return Json::parse(cluster_result_json(cluster, simulate_cluster(cluster)));
}
inline double start_of(const Json& result, std::size_t job) { return result["jobs"][job]["start_s"].get<double>(); }
inline double end_of(const Json& result, std::size_t job) { return result["jobs"][job]["end_s"].get<double>(); }

/// Two jobs of one GPU on each of two nodes, which share NICs, and a scenario's steps.
inline Json trained(const TemporaryFolder& folder) {
  folder.add("trace.json", traces::write_step_trace(constant_trace(1)));
  Json document = cluster_of(
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
inline Json reading(const TemporaryFolder& folder, const std::vector<int>& kilobytes, const char* store,
                    const char* cache) {
  Json document = trained(folder);
  document["placement"] = "consolidate";
  const Json workload = document["workloads"]["gan"];
  document["jobs"] = Json::array();
  for (std::size_t i = 0; i < kilobytes.size(); ++i) {
    const std::string name = fmt::format("gan-{}", i);
    document["jobs"].push_back({{"name", name}, {"gpus", 1}, {"workload", name}});
    Json& own = document["workloads"][name] = workload;
    own["workload"]["dataset"] = {{"name", "x"}, {"images", 12800}, {"bytes_per_image", kilobytes[i] * 1000 / 64.0}};
    own["storage"] = {{"dataset", store}, {"cache", cache}};
  }
  return document;
}

/// Seconds: the pipeline of the steps that are simulated fills once.
constexpr double kFill = 0.01;

}  // namespace ganymede::sim

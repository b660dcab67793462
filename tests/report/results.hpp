#pragma once
// Small documents of the kinds that simulate, sweep and plan write.

#include <deque>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "report/candidates.hpp"
#include "report/documents.hpp"
#include "report/runs.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::report {

/// 2 x p3.8xlarge with 4 V100 each; 1000 steps of 8 x 64 images.
inline Json a_result() {
  const Json pool = {{"provider", "aws"}, {"region", "us-east-1"},    {"zone", ""},
                     {"market", "spot"},  {"instance", "p3.8xlarge"}, {"nodes", 2},
                     {"gpu", "V100"},     {"gpus_per_node", 4}};
  return {
      {"schema", "ganymede.result/1"},
      {"run",
       {{"platform", "aws us-east-1"},
        {"market", "spot"},
        {"allocation", "2 x p3.8xlarge"},
        {"gpu", "V100"},
        {"gpus", 8},
        {"scheme", "ring"},
        {"mode", "all-reduce"},
        {"placement", "data-parallel"},
        {"policy", "fixed"}}},
      {"launch",
       {{"model", "dcgan-64"},
        {"precision", "fp32"},
        {"dataset", "celeba"},
        {"batch_per_gpu", 64},
        {"pools", Json::array({pool})}}},
      {"time",
       {{"total_s", 3600}, {"steps", 1000}, {"images", 512000}, {"step_mean_s", 3.5}, {"interval_s", {3500, 3700}}}},
      {"utilization", {{"gpu_busy", 0.9}, {"cpu", nullptr}}},
      {"gpu_seconds", {{"compute", 20000.5}, {"total", 28800.0}}},
      {"gpu_hours", 8.0},
      {"cost", {{"total_usd", "7.35"}, {"interval_usd", {"7.00", "8.00"}}, {"items", Json::array()}}},
      {"energy", {{"kwh", 3.5}, {"kg_co2e", 1.25}, {"grid", "somewhere"}}},
      {"events", Json::array()},
      {"life", {{"losses", 1}, {"checkpoints", 9}, {"lost_training_s", 12.5}}},
      {"goals", {{"deadline_s", 7200}, {"budget_usd", "10.00"}, {"met", true}}},
      {"provenance",
       {{"tool", "ganymede 0.0.0"},
        {"scenario_hash", "0123456789abcdef"},
        {"seed", 7},
        {"inputs", "measured"},
        {"warnings", {"first warning", "second warning"}}}}};
}

inline Json a_sweep(const Json& runs) { return {{"schema", "ganymede.sweep/1"}, {"study", "a-study"}, {"runs", runs}}; }

inline Json a_plan() {
  Json chosen = {{"provider", "gcp"},
                 {"region", "us-central1"},
                 {"market", "on-demand"},
                 {"instance", "n1-standard-32+4xV100"},
                 {"nodes", 1},
                 {"gpu", "V100"},
                 {"gpus", 4},
                 {"scheme", "nccl"},
                 {"policy", "fixed"},
                 {"checkpoint", "10min"},
                 {"verdict", "meets"},
                 {"time_s", {{"median", 6000.0}, {"interval", {5900.0, 6100.0}}}},
                 {"usd", {{"median", 12.5}, {"interval", {12.0, 13.0}}}},
                 {"kg_co2e", nullptr},
                 {"gpu_busy", 0.5},
                 {"met_share", 1.0},
                 {"chosen", true}};
  Json plan = {{"schema", "ganymede.plan/1"},
               {"request", {{"model", "dcgan-64"}, {"batch_per_gpu", 128}, {"images", 1000000}, {"seed", 1}}},
               {"chosen", chosen},
               {"best_of_each", Json::array({chosen})},
               {"pareto", Json::array({chosen})},
               {"simulated", Json::array({chosen})},
               {"provenance", {{"tool", "ganymede 0.0.0"}}}};
  return plan;
}

/// The candidates of a document, with the runs that they point to.
inline std::vector<ReportCandidate> candidates_in(const Json& document) {
  if (document.at("schema") == documents::kPlanSchema) return candidates_of(documents::plan_in(document));
  static std::deque<std::vector<documents::Result>> kept;
  std::vector<documents::Result>& runs = kept.emplace_back();
  if (document.contains("runs")) return candidates_of(runs = runs_of(document));
  runs.push_back(documents::result_in(document));
  return candidate_of(runs.front());
}

/// The document as it is read from a file of that name.
inline Document document_of(const Json& content, const std::string& name = "result.json") {
  const TemporaryFolder folder;
  return load_document(folder.add(name, content.dump()));
}

/// Text that does harm wherever it is not quoted: in a shell, in YAML, in the filter of a query, on a terminal, in a
/// label.
inline const std::string kHostile = "x'\"`touch PWNED`$(touch PWNED)\n- PWNED: true\n\x1b[2J${PWNED}\\ é\u2028#";

}  // namespace ganymede::report

#pragma once
// A request, `ganymede.request/1`: what to train, until when and for how much, and where to look for something to rent.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "platforms/price_doubt.hpp"
#include "policies/policy.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

enum class Objective { cost, time, carbon };
std::string_view to_string(Objective objective);

/// A policy of a search, as a scenario's "policy".
struct RequestPolicy {
  nlohmann::json content;
  const Policy* policy = nullptr;
  std::string name() const { return content["name"].get<std::string>(); }
};

struct Request {
  std::string file;
  // What all candidates have in common, as members of a scenario: workload, storage, billing, …
  nlohmann::json common;
  StepTrace trace;
  /// Images a GPU and step to try, ascending.
  struct Batch {
    int per_gpu = 0;
    std::vector<std::size_t> stages;  ///< entries of trace.batches
  };
  std::vector<Batch> batches;
  std::vector<double> stage_shares;  ///< of the images
  double stage_variation = 0;
  std::int64_t images = 0;
  std::string trace_choice;  ///< which trace, and why where the request names none

  std::optional<Seconds> deadline;  ///< from the request on
  std::string start;                ///< "2026-12-01T09:00:00Z" where the deadline is a time; else empty
  std::string deadline_text;        ///< as it was stated
  std::optional<MicroUsd> budget;
  Objective objective = Objective::cost;

  struct Catalog {
    std::string name;  ///< as a scenario names it
    Platform platform;
  };
  std::vector<Catalog> catalogs;
  std::vector<std::string> gpus, instances, regions;  ///< empty: all
  std::vector<Market> markets;
  int min_gpus = 1, max_gpus = 16;
  std::vector<std::string> schemes;
  std::vector<RequestPolicy> on_demand_policies, spot_policies;
  std::vector<RequestPolicy> mixed_policies;  ///< for some nodes on spot beside others on demand; empty: none is tried
  std::vector<std::string> checkpoints;       ///< intervals to try where nodes may be lost
  PriceAge price_age;                         ///< of prices that are believed as they stand
  /// Runs of a candidate that nothing random happens to but delays, and of one whose nodes may be lost.
  int seeds = 5, seeds_at_risk = 20;
  double certainty = 0.9;  ///< share of the seeds that must meet the goals
  bool sure = false;       ///< the upper ends of their intervals must, with all stated error
  std::uint64_t seed = 0;
};

/// ConfigError with file and pointer for what is wrong or contradicts itself. `now`: UTC, for a deadline that is a time
/// where the request states no "start".
Request read_request(const JsonNode& node, const std::string& now);

}  // namespace ganymede

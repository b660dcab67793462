#pragma once
// What to rent to serve a generator at a rate within a latency: `ganymede plan --serve`.

#include <string>
#include <vector>

#include "common/json.hpp"
#include "documents/service_result.hpp"
#include "platforms/platform.hpp"

namespace ganymede::plan {

struct ServiceQuestion {
  JsonNode generator;  ///< as a service's "generator"
  double per_second = 1;
  Seconds p95{1};
  std::vector<std::string> catalogs = {}, gpus = {}, regions = {}, instances = {};  ///< empty: all
  std::vector<platforms::Market> markets = {platforms::Market::on_demand};
  std::uint64_t seed = 0;
};

/// The share of requests that may fail.
inline constexpr double kMostFailed = 0.001;

/// For GPUs of each kind the cheapest nodes that serve Poisson arrivals with at most kMostFailed failing and the 95th
/// percentile within `p95`, both at the upper end of the interval of the generator's times. Batches of 1, 2, 4, ... 64
/// images are tried, which begin as soon as a GPU is free. An offer whose fewest nodes (those whose GPUs would always
/// be busy) cost no less than what was found is not simulated. Throws ConfigError for names that no catalog has.
documents::ServicePlan plan_service(const ServiceQuestion& question);

}  // namespace ganymede::plan

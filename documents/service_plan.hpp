#pragma once
// What to rent to serve a generator, `ganymede.service-plan/1`.

#include <string>
#include <string_view>
#include <vector>

#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kServicePlanSchema = "ganymede.service-plan/1";

/// The cheapest way to serve on GPUs of one kind.
struct ServiceOffer {
  std::string gpu, provider, region, market, instance, prices_of;
  int nodes = 0, largest_batch = 1;
  double usd_per_hour = 0, usd_per_1000 = 0, p95 = 0, utilization = 0;
  Interval p95_interval;
};

struct ServicePlan {
  std::string generator;
  double per_second = 0, p95 = 0, simulated_s = 0;
  std::int64_t offers_searched = 0, simulated = 0;
  std::vector<ServiceOffer> offers;
  JsonText service;
  std::vector<std::string> notes;
};

void describe(Walk& walk, ServicePlan& plan);
std::string service_plan_text(const ServicePlan& plan);

}  // namespace ganymede::documents

#pragma once
// The outcome of a service, `ganymede.service-result/1`.

#include <string>
#include <string_view>
#include <vector>

#include "documents/bill.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

// Offers to rent for serving a generator, `ganymede.service-plan/1`.

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

inline constexpr std::string_view kServiceResultSchema = "ganymede.service-result/1";

struct ServiceRequests {
  std::int64_t arrived = 0, served = 0, refused = 0, timed_out = 0, lost = 0;
  double failed = 0;  ///< share of those that arrived
};

struct ServiceLatency {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, most = 0;
  Interval p95_interval;
};

struct ServiceReplicas {
  double mean = 0;
  int first = 0, most = 0, starts = 0, reclaims = 0;
};

struct ServiceGoals {
  bool met = true;
  std::vector<std::string> missed;
};

struct ServiceResult {
  std::string hash;
  std::uint64_t seed = 0;
  std::string provider, region, market, instance, gpu;
  int gpus_per_replica = 0, largest_batch = 1;
  double duration = 0;
  double batch_1_s = 0, largest_batch_s = 0;
  std::string times;
  ServiceRequests requests;
  ServiceLatency latency;
  double images_per_s = 0, mean_batch = 0, utilization = 0;
  ServiceReplicas replicas;
  std::vector<BillItem> bill;
  MicroUsd total;
  double usd_per_1000 = 0;
  ServiceGoals goals;
  std::vector<std::string> warnings;
};

void describe(Walk& walk, ServiceResult& result);
std::string service_result_text(const ServiceResult& result);

}  // namespace ganymede::documents

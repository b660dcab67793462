#include "documents/service_result.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, ServiceOffer& offer) {
  walk.member("gpu", offer.gpu);
  walk.member("provider", offer.provider);
  walk.member("region", offer.region);
  walk.member("market", offer.market);
  walk.member("instance", offer.instance);
  walk.member("nodes", offer.nodes, {.low = 1});
  walk.member("largest_batch", offer.largest_batch, {.low = 1});
  walk.member("usd_per_hour", offer.usd_per_hour, kCount);
  walk.member("usd_per_1000_images", offer.usd_per_1000, kCount);
  walk.member("p95_s", offer.p95, kCount);
  walk.member("p95_interval_s", offer.p95_interval, {.says = "90 %, by the generator's times"});
  walk.member("utilization", offer.utilization, kShare);
  walk.member("prices_of", offer.prices_of);
}

void describe(Walk& walk, ServicePlan& plan) {
  walk.constant("schema", kServicePlanSchema, kRequired);
  walk.member("generator", plan.generator, {.says = "where the times of the cheapest offer's GPU come from"});
  walk.member("per_second", plan.per_second, kCount);
  walk.member("p95_s", plan.p95, {.says = "the goal", .low = 0});
  walk.member("simulated_s", plan.simulated_s, {.says = "of each service that was tried", .low = 0});
  walk.member("offers_searched", plan.offers_searched, kCount);
  walk.member("simulated", plan.simulated, {.says = "services that were tried", .low = 0});
  walk.member("offers", plan.offers, {.says = "the cheapest of each GPU, cheapest first"});
  walk.member_unless("service", plan.service, JsonText{}, {.says = "the first of them, as ganymede.service/1"});
  walk.member("notes", plan.notes);
}

std::string service_plan_text(const ServicePlan& plan) { return written(described(plan)).dump(2) + "\n"; }

void describe(Walk& walk, ServiceRequests& requests) {
  walk.member("arrived", requests.arrived, kCount);
  walk.member("served", requests.served, kCount);
  walk.member("refused", requests.refused, {.says = "because the queue was full", .low = 0});
  walk.member("timed_out", requests.timed_out, {.says = "because they waited too long", .low = 0});
  walk.member("lost", requests.lost, {.says = "because their replica was taken back", .low = 0});
  walk.member("failed_share", requests.failed, {.says = "of those that arrived", .low = 0, .high = 1});
}

void describe(Walk& walk, ServiceLatency& latency) {
  const About kMaybe = {.low = 0, .unknown_is_null = true};  // where nothing was served
  walk.member("mean_s", latency.mean, kMaybe);
  walk.member("p50_s", latency.p50, kMaybe);
  walk.member("p95_s", latency.p95, kMaybe);
  walk.member("p99_s", latency.p99, kMaybe);
  walk.member("max_s", latency.most, kMaybe);
  walk.member("p95_interval_s", latency.p95_interval,
              {.says = "with the generator's times at the ends of their 90 % interval", .unknown_is_null = true});
}

void describe(Walk& walk, ServiceReplicas& replicas) {
  walk.member("mean", replicas.mean, {.says = "that are ready", .low = 0});
  walk.member("first", replicas.first, {.says = "ready when the service begins", .low = 0});
  walk.member("max", replicas.most, kCount);
  walk.member("starts", replicas.starts, {.says = "beyond the first ones", .low = 0});
  walk.member("reclaims", replicas.reclaims, {.says = "that the provider took back", .low = 0});
}

void describe(Walk& walk, ServiceGoals& goals) {
  walk.member("met", goals.met);
  walk.member("missed", goals.missed);
}

void describe(Walk& walk, ServiceResult& result) {
  walk.constant("schema", kServiceResultSchema, kRequired);
  walk.member("hash", result.hash, {.says = "of the service and the files that it names"});
  walk.member("seed", result.seed);
  walk.member("provider", result.provider);
  walk.member("region", result.region);
  walk.member("market", result.market);
  walk.member("instance", result.instance);
  walk.member("gpu", result.gpu);
  walk.member("gpus_per_replica", result.gpus_per_replica, {.low = 1});
  walk.member("largest_batch", result.largest_batch, {.low = 1});
  walk.member("duration_s", result.duration, kCount);
  walk.member("one_image_s", result.batch_1_s, {.says = "of the generator, for a batch of one", .low = 0});
  walk.member("largest_batch_s", result.largest_batch_s, kCount);
  walk.member("times", result.times, {.says = "where the generator's times come from"});
  walk.member("requests", result.requests);
  walk.member("latency", result.latency, {.says = "of requests that were served"});
  walk.member("images_per_second", result.images_per_s, kCount);
  walk.member("mean_batch", result.mean_batch, kCount);
  walk.member("utilization", result.utilization, {.says = "share of the time of ready GPUs", .low = 0, .high = 1});
  walk.member("replicas", result.replicas);
  walk.member("bill", result.bill);
  walk.member("total_usd", result.total);
  walk.number_of("total_usd_number", result.total);
  walk.member("usd_per_1000_images", result.usd_per_1000, {.low = 0, .unknown_is_null = true});
  walk.member("goals", result.goals);
  walk.member("warnings", result.warnings);
}

std::string service_result_text(const ServiceResult& result) { return written(described(result)).dump(2) + "\n"; }

}  // namespace ganymede::documents

#include "documents/service_plan.hpp"

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

}  // namespace ganymede::documents

#include "plan/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "common/json.hpp"
#include "common/units.hpp"

namespace ganymede::plan {
namespace {

/// The boot time that the request states for all platforms, if it states one.
const Json* stated_boot(const Request& request) {
  const JsonPointer boot("/provisioning/boot");
  return request.common.contains(boot) ? &request.common.at(boot) : nullptr;
}

/// Gives the request another version of the chosen candidate's catalog.
void change_catalog(Request& request, const PlanCandidate& chosen,
                    const std::function<void(platforms::Platform& platform)>& change) {
  auto& platform = request.catalogs[chosen.catalog].platform;
  auto changed = std::make_shared<platforms::Platform>(*platform);
  change(*changed);
  platform = std::move(changed);
}

void raise_prices(Request& request, const PlanCandidate& chosen, double factor, bool everywhere) {
  change_catalog(request, chosen, [&](platforms::Platform& platform) {
    for (platforms::Instance& instance : platform.instances)
      for (platforms::Price& price : instance.prices)
        if (instance.name == chosen.instance->name && (everywhere || price.region == chosen.region) &&
            price.market == chosen.market && price.zone.empty())
          price.per_hour.value = std::llround(factor * static_cast<double>(price.per_hour.value));
  });
}

void add_boot(Request& request, const PlanCandidate& chosen, double seconds) {
  if (const Json* stated = stated_boot(request)) {
    const double median = platforms::read_delay(JsonNode::wrap(*stated, request.file, "")).median.si + seconds;
    Json& boot = request.common["provisioning"]["boot"];
    (boot.is_object() ? boot["median"] : boot) = fmt::format("{}s", median);
    return;
  }
  change_catalog(request, chosen, [&](platforms::Platform& platform) {
    platform.provisioning.boot.median += Seconds{seconds};
    for (platforms::Instance& instance : platform.instances)
      if (instance.boot) *instance.boot += Seconds{seconds};
  });
}

}  // namespace

std::string_view to_string(Assumption assumption) {
  constexpr std::string_view kNames[] = {"price", "prices", "step_time", "interruptions", "boot"};
  return kNames[static_cast<std::size_t>(assumption)];
}

double value_of(const Request& request, const PlanCandidate& chosen, Assumption assumption) {
  switch (assumption) {
    case Assumption::price:
    case Assumption::prices:
      return static_cast<double>(
                 platforms::find_price(*chosen.instance, chosen.region, chosen.market)->per_hour.value) /
             1e6;
    case Assumption::boot:
      if (const Json* stated = stated_boot(request))
        return platforms::read_delay(JsonNode::wrap(*stated, request.file, "")).median.si;
      return request.catalogs[chosen.catalog].platform->boot(*chosen.instance).median.si;
    default:
      return 1;
  }
}

Request with_assumption(const Request& request, const PlanCandidate& chosen, Assumption assumption, double value) {
  Request changed = request;
  switch (assumption) {
    case Assumption::price:
    case Assumption::prices:
      raise_prices(changed, chosen, value / value_of(request, chosen, assumption), assumption == Assumption::prices);
      break;
    case Assumption::step_time:
      changed.what_if.gpu = request.catalogs[chosen.catalog].platform->gpu_of(*chosen.instance).name;
      changed.what_if.step_factor = value;
      break;
    case Assumption::interruptions:
      changed.what_if.instance = chosen.instance->name;
      changed.what_if.region = chosen.region;
      changed.what_if.loss_factor = value;
      break;
    case Assumption::boot:
      add_boot(changed, chosen, value - value_of(request, chosen, assumption));
      break;
  }
  return changed;
}

bool is_affected(const Request& request, const PlanCandidate& chosen, const PlanCandidate& candidate,
                 Assumption assumption) {
  const bool same_instance = candidate.catalog == chosen.catalog && candidate.instance->name == chosen.instance->name;
  const policies::Policy& policy = *candidate.policy->policy;
  const bool here = candidate.region == chosen.region || policy.other_regions;
  switch (assumption) {
    case Assumption::price:
    case Assumption::prices:
      return same_instance && (here || assumption == Assumption::prices) &&
             (candidate.market == chosen.market || candidate.on_demand_nodes > 0 || policy.other_market ||
              chosen.market == platforms::Market::on_demand);  // spot is never assumed to rise above on demand
    case Assumption::step_time:
      return request.catalogs[candidate.catalog].platform->gpu_of(*candidate.instance).name ==
             request.catalogs[chosen.catalog].platform->gpu_of(*chosen.instance).name;
    case Assumption::interruptions:
      return same_instance && here && candidate.at_risk();
    case Assumption::boot:
      return stated_boot(request) != nullptr || candidate.catalog == chosen.catalog;
  }
  return true;
}

void apply_what_if(const Request& request, sim::Scenario& scenario) {
  const WhatIf& what = request.what_if;
  for (sim::ScenarioPool& pool : scenario.pools) {
    pool.step_factor = step_factor(request, pool.gpu());
    if (pool.pool.market != platforms::Market::spot || pool.pool.instance != what.instance ||
        pool.pool.region != what.region)
      continue;
    pool.kept_factor = 1 / what.loss_factor;
    if (pool.lifetimes) {
      pool.lifetimes->mean = Seconds{pool.lifetimes->mean.si / what.loss_factor};
      pool.lifetimes->longest = Seconds{pool.lifetimes->longest.si / what.loss_factor};
    }
  }
}

double step_factor(const Request& request, const platforms::Gpu& gpu) {
  return gpu.name == request.what_if.gpu ? request.what_if.step_factor : 1;
}

}  // namespace ganymede::plan

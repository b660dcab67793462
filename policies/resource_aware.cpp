#include <algorithm>
#include <cmath>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kResourceAwareSettings[] = {
    {"low", 0.55, 0, 1, "below this share of useful GPU time the nodes are halved"},
    {"high", 0.85, 0, 1, "above it they are doubled"},
    {"cooldown_s", 900, 0, 1e9, "seconds between two changes"}};

/// True within `cooldown` seconds of the last change, which must first save what its restart cost.
bool is_too_early(const PolicyCall& call, double cooldown) {
  const auto last = call.memory.find("changed_at");
  return last != call.memory.end() && call.observation.now.si - last->second < cooldown;
}

/// Share of processors or memory to reserve: 1.5 times the used share, rounded up to eighths; from 1/8 to 1.
double reserve(double used) { return std::clamp(std::ceil(1.5 * used * 8) / 8, 0.125, 1.0); }

/// If training waits for input for a larger share of its time than this, all processors are reserved.
constexpr double kMaxInputStall = 0.02;

/// Halves the nodes if the useful share is below the setting `low`, and doubles them if it is above the setting `high`.
Decision decide_nodes(const PolicyCall& call) {
  const Observation& observation = call.observation;
  const int now = first_pool_nodes(observation);
  if (is_unsettled(observation) || is_too_early(call, call.settings[2])) return resize_first_pool(observation, now);
  // Near the end a change would not save what its restart costs.
  if (seconds_left(observation, observation.rate) < 10 * (observation.restart + observation.boot).si)
    return resize_first_pool(observation, now);
  if (useful_share(observation) < call.settings[0] && now > 1) {
    call.memory["too_many"] = now;
    call.memory.erase("step_s");
    return resize_and_remember(call, std::max(1, now / 2));
  }
  // A number of nodes that proved too large is not tried again until the time of a step changes by more than 15 %, for
  // example because the model grows.
  const double step_s = call.memory.try_emplace("step_s", observation.step_s).first->second;
  if (std::abs(observation.step_s / step_s - 1) > 0.15) {
    call.memory.erase("too_many");
    call.memory["step_s"] = observation.step_s;
  }
  const auto too_many = call.memory.find("too_many");
  const int more = std::min(observation.pools[0].most, now * 2);
  const bool known = too_many != call.memory.end() && more >= too_many->second;
  if (useful_share(observation) > call.settings[1] && more > now && !known) {
    call.memory.erase("step_s");
    return resize_and_remember(call, more);
  }
  return resize_first_pool(observation, now);
}

Decision decide_resource_aware(const PolicyCall& call) {
  const Observation& observation = call.observation;
  Decision decision = decide_nodes(call);
  // The last reservation holds until there is a new measurement.
  const auto recall = [&](const char* name) { return call.memory.try_emplace(name, 1).first->second; };
  decision.cpus = recall("cpus");
  decision.memory = recall("memory");
  if (is_unsettled(observation)) return decision;
  decision.cpus = call.memory["cpus"] = observation.input_stall > kMaxInputStall ? 1 : reserve(observation.cpu);
  decision.memory = call.memory["memory"] = observation.host_memory > 0 ? reserve(observation.host_memory) : 1;
  return decision;
}

}  // namespace

Policy resource_aware_policy() {
  return {.name = "resource-aware",
          .summary = "halves or doubles the nodes by the share of useful GPU time, as the model grows",
          .source = "Resource-Aware GAN Training on Cloud Infrastructure, IJPREMS 2025; thresholds are our own",
          .settings = kResourceAwareSettings,
          .decide = decide_resource_aware};
}

}  // namespace ganymede::policies

#include "policies/policy_helpers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ganymede::policies {

std::vector<int> requested_nodes(const Observation& observation) {
  std::vector<int> nodes;
  for (const PoolView& pool : observation.pools) nodes.push_back(pool.requested);
  return nodes;
}

std::vector<int> current_nodes(const Observation& observation) {
  std::vector<int> nodes;
  for (const PoolView& pool : observation.pools) nodes.push_back(pool.held() + pool.waiting);
  return nodes;
}

double seconds_left(const Observation& observation, double rate) {
  return rate > 0 ? observation.left / rate : std::numeric_limits<double>::infinity();
}

int total_requested_nodes(const Observation& observation) {
  int nodes = 0;
  for (const PoolView& pool : observation.pools) nodes += pool.requested;
  return std::max(1, nodes);
}

Decision rent_in_one_pool(const Observation& observation, int pool, int nodes) {
  Decision decision{.nodes = std::vector<int>(observation.pools.size(), 0)};
  if (pool >= 0)
    decision.nodes[static_cast<std::size_t>(pool)] =
        std::min(nodes, observation.pools[static_cast<std::size_t>(pool)].most);
  return decision;
}

int first_pool_nodes(const Observation& observation) {
  const PoolView& pool = observation.pools[0];
  const int now = pool.held() + pool.waiting;
  return now > 0 ? now : pool.requested;
}

Decision resize_first_pool(const Observation& observation, int nodes) {
  Decision decision{.nodes = requested_nodes(observation)};
  decision.nodes[0] = std::clamp(nodes, 1, std::max(1, observation.pools[0].most));
  return decision;
}

Decision resize_and_remember(const PolicyCall& call, int nodes) {
  if (nodes != first_pool_nodes(call.observation)) call.memory["changed_at"] = call.observation.now.si;
  return resize_first_pool(call.observation, nodes);
}

bool is_unsettled(const Observation& observation) {
  const PoolView& pool = observation.pools[0];
  return !observation.training || pool.starting + pool.waiting > 0 ||
         observation.training_gpus != pool.ready * pool.gpus_per_node;
}

double useful_share(const Observation& observation) {
  return std::max(0.0, 1 - observation.exposed - observation.straggler - observation.input_stall);
}

int cheapest_pool(const Observation& observation, bool spot) {
  int best = -1;
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    if ((observation.pools[i].market == platforms::Market::spot) != spot) continue;
    if (best < 0 || observation.pools[i].usd_per_hour < observation.pools[static_cast<std::size_t>(best)].usd_per_hour)
      best = static_cast<int>(i);
  }
  return best;
}

std::size_t current_pool(const Observation& observation) {
  std::size_t best = 0;
  int most = 0;
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    const int nodes = observation.pools[i].held() + observation.pools[i].waiting;
    if (nodes > most) best = i, most = nodes;
  }
  return best;
}

bool is_refusing(const PoolView& pool) { return pool.waiting > 0 && pool.refused_for.si > 600; }

bool refused_recently(const PolicyCall& call, int pool) {
  constexpr double kRetry_s = 3600;
  if (is_refusing(call.observation.pools[static_cast<std::size_t>(pool)]))
    call.memory["refused_at"] = call.observation.now.si;
  const auto at = call.memory.find("refused_at");
  return at != call.memory.end() && call.observation.now.si - at->second < kRetry_s;
}

namespace {

/// If the speed of the same number of GPUs changes by more than this share, the stage or the machine has changed.
constexpr double kSameSpeed = 0.15;

double recall(const PolicyMemory& memory, std::string_view name, double default_value) {
  const auto found = memory.find(name);
  return found == memory.end() ? default_value : found->second;
}

}  // namespace

// A step of n GPUs takes t (1 + c (n - 1)). Two points (n, rate) of the same stage determine t and c. With one point, c
// follows from the share w of the step that is spent waiting: w = c (n - 1) / (1 + c (n - 1)). A single GPU never
// waits; c is then the last known time in seconds that each further GPU adds to a step, divided by the time of a step.
void learn_rate(const Observation& observation, PolicyMemory& memory) {
  if (!observation.training || observation.rate <= 0 || observation.training_gpus == 0) return;
  const double gpus = observation.training_gpus;
  const double known_gpus = recall(memory, "rate/gpus", 0);
  if (known_gpus == gpus) {
    if (std::abs(observation.rate / memory["rate/rate"] - 1) > kSameSpeed) memory.erase("rate/other_gpus");
  } else if (known_gpus > 0) {
    memory["rate/other_gpus"] = known_gpus;
    memory["rate/other_rate"] = memory["rate/rate"];
  }
  memory["rate/gpus"] = gpus;
  memory["rate/rate"] = observation.rate;
  memory["rate/step_s"] = observation.step_s;
  memory["rate/pause_s"] = observation.pause_s;
  memory["rate/evaluation_s"] = observation.evaluation.si;
  const double waiting = std::min(0.95, observation.exposed + observation.straggler);
  double c = gpus > 1 ? waiting / ((1 - waiting) * (gpus - 1)) : 0;
  if (const double other = recall(memory, "rate/other_gpus", 0); other > 0 && other != gpus) {
    const double a = gpus / observation.rate, b = other / memory["rate/other_rate"];
    const double denominator = a * (other - 1) - b * (gpus - 1);
    if (denominator != 0) c = std::max(0.0, (b - a) / denominator);
  } else if (gpus == 1) {
    c = recall(memory, "rate/overhead_s", 0) / observation.step_s;
  }
  memory["rate/c"] = c;
  memory["rate/overhead_s"] = c * observation.step_s / (1 + c * (gpus - 1));
}

double predicted_rate(const PolicyMemory& memory, double gpus) {
  const double known = recall(memory, "rate/gpus", 0);
  if (known <= 0) return 0;
  const double rate = recall(memory, "rate/rate", 0);
  if (gpus == known) return rate;
  const double c = recall(memory, "rate/c", 0);
  const double one = rate * (1 + c * (known - 1)) / known;
  return gpus < 1 ? one * gpus : one * gpus / (1 + c * (gpus - 1));
}

double predicted_seconds(const PolicyCall& call, double gpus) {
  const double rate = predicted_rate(call.memory, gpus);
  // A mean pause for each unit does not say on which side of the next evaluation the present is.
  return seconds_left(call.observation, rate) + call.observation.left * recall(call.memory, "rate/pause_s", 0) +
         recall(call.memory, "rate/evaluation_s", 0);
}

double growth(const PolicyCall& call, double rate) {
  /// Least share of the work over which the slope of a slowdown is taken; over a smaller share it would be partly
  /// noise.
  constexpr double kMinWorkForSlope = 0.1;
  double& fastest = call.memory.try_emplace("fastest", rate).first->second;
  fastest = std::max(fastest, rate);
  const double done = call.observation.done / (call.observation.done + call.observation.left);
  // Growth of a unit's time, relative to its time now, over the whole work at the pace so far.
  const double slope = (1 - rate / fastest) / std::max(kMinWorkForSlope, done);
  return 1 + slope * (1 - done) / 2;
}

}  // namespace ganymede::policies

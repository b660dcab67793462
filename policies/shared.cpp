#include <algorithm>
#include <cmath>
#include <limits>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

/// A speed that differs by more than this at the same number of GPUs is that of another stage, or of another machine.
constexpr double kSameSpeed = 0.15;

double recall(const PolicyMemory& memory, std::string_view name, double otherwise) {
  const auto found = memory.find(name);
  return found == memory.end() ? otherwise : found->second;
}

}  // namespace

std::vector<int> requested_nodes(const Observation& seen) {
  std::vector<int> nodes;
  for (const PoolView& pool : seen.pools) nodes.push_back(pool.requested);
  return nodes;
}

std::vector<int> current_nodes(const Observation& seen) {
  std::vector<int> nodes;
  for (const PoolView& pool : seen.pools) nodes.push_back(pool.held() + pool.waiting);
  return nodes;
}

double time_left(const Observation& seen, double rate) {
  return rate > 0 ? seen.left / rate : std::numeric_limits<double>::infinity();
}

double hourly(const Observation& seen, std::span<const int> nodes) {
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) sum += nodes[i] * seen.pools[i].usd_per_hour;
  return sum;
}

double weighted_gpus(const Observation& seen, std::span<const int> nodes) {
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) sum += nodes[i] * seen.pools[i].gpus_per_node * seen.pools[i].speed;
  return sum;
}

// A step of n GPUs takes t (1 + c (n - 1)), so their speed is n / (1 + c (n - 1)) times that of one. Two points of the
// same stage determine t and c; with one point, the share of it that was spent waiting says c; with a single GPU, which
// waits for nobody, what a further GPU cost in seconds of a step when that was last known.
void learn_rate(const Observation& seen, PolicyMemory& memory) {
  if (!seen.training || seen.rate <= 0 || seen.training_gpus == 0) return;
  const double gpus = seen.training_gpus;
  const double known_gpus = recall(memory, "rate/gpus", 0);
  if (known_gpus == gpus) {
    if (std::abs(seen.rate / memory["rate/rate"] - 1) > kSameSpeed) memory.erase("rate/other_gpus");
  } else if (known_gpus > 0) {
    memory["rate/other_gpus"] = known_gpus;
    memory["rate/other_rate"] = memory["rate/rate"];
  }
  memory["rate/gpus"] = gpus;
  memory["rate/rate"] = seen.rate;
  memory["rate/step_s"] = seen.step_s;
  const double waiting = std::min(0.95, seen.exposed + seen.straggler);
  double c = gpus > 1 ? waiting / ((1 - waiting) * (gpus - 1)) : 0;
  if (const double other = recall(memory, "rate/other_gpus", 0); other > 0 && other != gpus) {
    const double a = gpus / seen.rate, b = other / memory["rate/other_rate"];
    const double denominator = a * (other - 1) - b * (gpus - 1);
    if (denominator != 0) c = std::max(0.0, (b - a) / denominator);
  } else if (gpus == 1) {
    c = recall(memory, "rate/overhead_s", 0) / seen.step_s;
  }
  memory["rate/c"] = c;
  memory["rate/overhead_s"] = c * seen.step_s / (1 + c * (gpus - 1));
}

double predicted_rate(const Observation&, const PolicyMemory& memory, double gpus) {
  const double known = recall(memory, "rate/gpus", 0);
  if (known <= 0) return 0;
  const double rate = recall(memory, "rate/rate", 0);
  if (gpus == known) return rate;
  const double c = recall(memory, "rate/c", 0);
  const double one = rate * (1 + c * (known - 1)) / known;
  return gpus < 1 ? one * gpus : one * gpus / (1 + c * (gpus - 1));
}

}  // namespace ganymede

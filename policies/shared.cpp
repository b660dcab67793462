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

// Two points of the same stage determine the speed of one GPU and c; with one point the share of exposed communication
// and straggling that was measured with it says c.
void learn_rate(const Observation& seen, PolicyMemory& memory) {
  if (!seen.training || seen.rate <= 0 || seen.training_gpus == 0) return;
  const double gpus = seen.training_gpus;
  const double known_gpus = recall(memory, "rate/gpus", 0);
  if (known_gpus == gpus) {
    const double known = memory["rate/rate"];
    if (std::abs(seen.rate / known - 1) > kSameSpeed) memory.erase("rate/other_gpus");
  } else if (known_gpus > 0) {
    memory["rate/other_gpus"] = known_gpus;
    memory["rate/other_rate"] = memory["rate/rate"];
  }
  memory["rate/gpus"] = gpus;
  memory["rate/rate"] = seen.rate;
  memory["rate/waiting"] = std::min(0.95, seen.exposed + seen.straggler);
}

double predicted_rate(const Observation&, const PolicyMemory& memory, double gpus) {
  const double known = recall(memory, "rate/gpus", 0);
  if (known <= 0) return 0;
  const double rate = recall(memory, "rate/rate", 0);
  if (gpus == known) return rate;
  // rate(n) = r n / (1 + c (n - 1)).
  double c = 0;
  if (const double waiting = recall(memory, "rate/waiting", 0); known > 1) c = waiting / ((1 - waiting) * (known - 1));
  if (const double other = recall(memory, "rate/other_gpus", 0); other > 0 && other != known) {
    const double other_rate = recall(memory, "rate/other_rate", 0);
    // known / rate (…): (1 + c (n-1)) = r n / rate for both points.
    const double a = known / rate, b = other / other_rate;
    const double denominator = a * (other - 1) - b * (known - 1);
    if (denominator != 0) {
      const double fitted = (b - a) / denominator;
      c = std::max(0.0, fitted);
    }
  }
  const double one = rate * (1 + c * (known - 1)) / known;
  return gpus < 1 ? one * gpus : one * gpus / (1 + c * (gpus - 1));
}

}  // namespace ganymede

#include "plan/cheapest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <tuple>

namespace ganymede {
namespace {

int divide_up(int amount, int by) { return (amount + by - 1) / by; }

bool wanted(const Gpu& gpu, std::span<const std::string> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == gpu.name || name == gpu.family; });
}

int node_limit(const Instance& instance, int max_nodes) {
  const int available = instance.available.value_or(std::numeric_limits<int>::max());
  return max_nodes > 0 ? std::min(available, max_nodes) : available;
}

std::optional<InstanceSet> set_of(const Instance& instance, int count, const Price& price, int max_nodes) {
  const int nodes = divide_up(count, instance.gpus);
  if (nodes > node_limit(instance, max_nodes)) return std::nullopt;
  if (nodes > 1 && !instance.nic) return std::nullopt;  // nothing joins them
  return InstanceSet{&instance, nodes, divide_up(count, nodes), nodes * price.per_hour};
}

/// What there is of these GPUs, for the message: "p3.2xlarge (1 x V100, at most 4 nodes)".
std::string describe(const Instance& instance, int max_nodes) {
  const int limit = node_limit(instance, max_nodes);
  const std::string nodes = limit == std::numeric_limits<int>::max() ? "" : fmt::format(", at most {} nodes", limit);
  return fmt::format("{} ({} x {}{})", instance.name, instance.gpus, instance.gpu, nodes);
}

[[noreturn]] void fail(const Platform& platform, std::span<const std::string> gpus, int count, std::string_view region,
                       Market market, int max_nodes) {
  std::vector<std::string> priced;
  std::vector<std::string> elsewhere;
  std::vector<std::string> families;
  for (const Instance& instance : platform.instances) {
    const Gpu& gpu = platform.gpu_of(instance);
    if (std::find(families.begin(), families.end(), gpu.family) == families.end()) families.push_back(gpu.family);
    if (!wanted(gpu, gpus)) continue;
    (find_price(instance, region, market) != nullptr ? priced : elsewhere).push_back(describe(instance, max_nodes));
  }
  const std::string what = fmt::format("the catalog {} holds no {} x {} in {} on the {} market", platform.name, count,
                                       list_of({gpus.begin(), gpus.end()}), region, to_string(market));
  if (!priced.empty()) throw Infeasible(fmt::format("{}; there is {}", what, fmt::join(priced, ", ")));
  if (!elsewhere.empty())
    throw Infeasible(fmt::format("{}; it has no price there for {}", what, fmt::join(elsewhere, ", ")));
  throw Infeasible(fmt::format("{}; its GPUs are {}", what, fmt::join(families, ", ")));
}

}  // namespace

InstanceSet cheapest_instances(const Platform& platform, std::span<const std::string> gpus, int count,
                               std::string_view region, Market market, int max_nodes) {
  assert(count > 0);
  std::optional<InstanceSet> best;
  for (const Instance& instance : platform.instances) {
    const Price* price = find_price(instance, region, market);
    if (price == nullptr || !wanted(platform.gpu_of(instance), gpus)) continue;
    const auto found = set_of(instance, count, *price, max_nodes);
    if (!found) continue;
    if (!best || std::tie(found->price.value, found->nodes) < std::tie(best->price.value, best->nodes)) best = found;
  }
  if (!best) fail(platform, gpus, count, region, market, max_nodes);
  return *best;
}

}  // namespace ganymede

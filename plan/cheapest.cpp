#include "plan/cheapest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>

namespace ganymede {
namespace {

int divide_up(int amount, int by) { return (amount + by - 1) / by; }

bool wanted(const Gpu& gpu, std::span<const std::string> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == gpu.name || name == gpu.family; });
}

/// What holds that many GPUs, on as few nodes of this type as possible.
int nodes_for(const Instance& instance, int count) { return divide_up(count, instance.gpus); }

std::optional<InstanceSet> set_of(const Instance& instance, int count, const Price& price) {
  const int nodes = nodes_for(instance, count);
  if (instance.available && nodes > *instance.available) return std::nullopt;
  if (nodes > 1 && !instance.nic) return std::nullopt;  // nothing joins them
  if (count % nodes != 0) return std::nullopt;          // a run uses as many GPUs on each node
  return InstanceSet{&instance, nodes, count / nodes, nodes * price.per_hour};
}

/// What there is of these GPUs, for the message: "p3.2xlarge (1 x V100, at most 4 nodes)".
std::string describe(const Instance& instance) {
  const std::string nodes = instance.available ? fmt::format(", at most {} nodes", *instance.available) : "";
  return fmt::format("{} ({} x {}{})", instance.name, instance.gpus, instance.gpu, nodes);
}

[[noreturn]] void fail(const Platform& platform, std::span<const std::string> gpus, int count, std::string_view region,
                       Market market) {
  std::vector<std::string> priced;
  std::vector<std::string> elsewhere;
  std::vector<std::string> families;
  bool uneven = false;
  for (const Instance& instance : platform.instances) {
    const Gpu& gpu = platform.gpu_of(instance);
    if (std::find(families.begin(), families.end(), gpu.family) == families.end()) families.push_back(gpu.family);
    if (!wanted(gpu, gpus)) continue;
    const bool has_price = find_price(instance, region, market) != nullptr;
    (has_price ? priced : elsewhere).push_back(describe(instance));
    uneven |= has_price && count % nodes_for(instance, count) != 0;
  }
  const std::string what = fmt::format("the catalog {} holds no {} x {} in {} on the {} market", platform.name, count,
                                       list_of({gpus.begin(), gpus.end()}), region, to_string(market));
  if (!priced.empty())
    throw Infeasible(fmt::format("{}; there is {}{}", what, fmt::join(priced, ", "),
                                 uneven ? "; a run uses as many GPUs on each node" : ""));
  if (!elsewhere.empty())
    throw Infeasible(fmt::format("{}; it has no price there for {}", what, fmt::join(elsewhere, ", ")));
  throw Infeasible(fmt::format("{}; its GPUs are {}", what, fmt::join(families, ", ")));
}

}  // namespace

InstanceSet cheapest_instances(const Platform& platform, std::span<const std::string> gpus, int count,
                               std::string_view region, Market market) {
  assert(count > 0);
  std::optional<InstanceSet> best;
  for (const Instance& instance : platform.instances) {
    const Price* price = find_price(instance, region, market);
    if (price == nullptr || !wanted(platform.gpu_of(instance), gpus)) continue;
    const auto found = set_of(instance, count, *price);
    if (!found) continue;
    if (!best || std::tie(found->price.value, found->nodes) < std::tie(best->price.value, best->nodes)) best = found;
  }
  if (!best) fail(platform, gpus, count, region, market);
  return *best;
}

}  // namespace ganymede

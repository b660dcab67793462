#include "plan/cheapest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>

#include "common/errors.hpp"
#include "common/text.hpp"

namespace ganymede::plan {
namespace {

int divide_up(int amount, int by) { return (amount + by - 1) / by; }

/// True if the GPU's name or family is in `names`.
bool is_named(const platforms::Gpu& gpu, std::span<const std::string> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == gpu.name || name == gpu.family; });
}

/// The least number of nodes of this type that hold `count` GPUs.
int nodes_for(const platforms::Instance& instance, int count) { return divide_up(count, instance.gpus); }

/// The nodes of this type that hold `count` GPUs; nothing if the catalog has too few of them, no network joins them, or
/// the GPUs cannot be divided evenly.
std::optional<InstanceSet> set_of(const platforms::Instance& instance, int count, const platforms::Price& price) {
  const int nodes = nodes_for(instance, count);
  if (instance.available && nodes > *instance.available) return std::nullopt;
  if (nodes > 1 && !instance.nic) return std::nullopt;  // no network joins them
  if (count % nodes != 0) return std::nullopt;          // a run uses the same number of GPUs on each node
  return InstanceSet{&instance, nodes, count / nodes, nodes * price.per_hour};
}

/// An instance for the error message, such as "p3.2xlarge (1 x V100, at most 4 nodes)".
std::string describe(const platforms::Instance& instance) {
  const std::string nodes = instance.available ? fmt::format(", at most {} nodes", *instance.available) : "";
  return fmt::format("{} ({} x {}{})", instance.name, instance.gpus, instance.gpu, nodes);
}

/// Throws Infeasible with what the catalog has instead.
[[noreturn]] void throw_nothing_fits(const platforms::Platform& platform, std::span<const std::string> gpus, int count,
                                     std::string_view region, platforms::Market market) {
  std::vector<std::string> priced;
  std::vector<std::string> elsewhere;
  std::vector<std::string> families;
  bool uneven = false;
  for (const platforms::Instance& instance : platform.instances) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    if (std::find(families.begin(), families.end(), gpu.family) == families.end()) families.push_back(gpu.family);
    if (!is_named(gpu, gpus)) continue;
    const bool has_price = platforms::find_price(instance, region, market) != nullptr;
    (has_price ? priced : elsewhere).push_back(describe(instance));
    uneven |= has_price && count % nodes_for(instance, count) != 0;
  }
  const std::string what = fmt::format("the catalog {} holds no {} x {} in {} on the {} market", platform.name, count,
                                       list_of({gpus.begin(), gpus.end()}), region, platforms::to_string(market));
  if (!priced.empty())
    throw Infeasible(fmt::format("{}; there is {}{}", what, fmt::join(priced, ", "),
                                 uneven ? "; a run uses the same number of GPUs on each node" : ""));
  if (!elsewhere.empty())
    throw Infeasible(fmt::format("{}; it has no price there for {}", what, fmt::join(elsewhere, ", ")));
  throw Infeasible(fmt::format("{}; its GPUs are {}", what, fmt::join(families, ", ")));
}

}  // namespace

InstanceSet cheapest_instances(const platforms::Platform& platform, std::span<const std::string> gpus, int count,
                               std::string_view region, platforms::Market market) {
  assert(count > 0);
  std::optional<InstanceSet> best;
  for (const platforms::Instance& instance : platform.instances) {
    const platforms::Price* price = platforms::find_price(instance, region, market);
    if (price == nullptr || !is_named(platform.gpu_of(instance), gpus)) continue;
    const auto found = set_of(instance, count, *price);
    if (!found) continue;
    if (!best || std::tie(found->price.value, found->nodes) < std::tie(best->price.value, best->nodes)) best = found;
  }
  if (!best) throw_nothing_fits(platform, gpus, count, region, market);
  return *best;
}

}  // namespace ganymede::plan

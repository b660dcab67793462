#pragma once
// The cheapest way to rent a number of GPUs, before any simulation.

#include <span>
#include <string>
#include <string_view>

#include "platforms/platform.hpp"

namespace ganymede::plan {

/// `nodes` instances of one type, each using `gpus_per_node` of its GPUs. Unused GPUs are paid for.
struct InstanceSet {
  const platforms::Instance* instance = nullptr;  ///< belongs to the platform that was searched
  int nodes = 0;
  int gpus_per_node = 0;
  MicroUsdPerHour price;  ///< of all nodes together
};

/// Returns the cheapest set of instances of one type that holds `count` GPUs in `region` on `market`, on as few nodes
/// as possible. `gpus` lists names or families ("V100" covers V100 and V100-PCIE-16GB). Among equal prices it takes the
/// set with fewer nodes, then the first in the catalog. All nodes use the same number of GPUs, as a run needs it: 6
/// GPUs on two nodes of 4 GPUs are 3 on each, and 5 GPUs do not fit there. Throws Infeasible, with what the catalog
/// has, if nothing fits. `count` must be greater than 0.
InstanceSet cheapest_instances(const platforms::Platform& platform, std::span<const std::string> gpus, int count,
                               std::string_view region, platforms::Market market);

}  // namespace ganymede::plan

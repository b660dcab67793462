#pragma once
// The cheapest way to rent a number of GPUs, before any simulation.

#include <span>
#include <string>
#include <string_view>

#include "platforms/platform.hpp"

namespace ganymede {

/// `nodes` instances of one type, each using `gpus_per_node` of its GPUs. Unused GPUs are paid for.
struct InstanceSet {
  const Instance* instance = nullptr;  ///< belongs to the platform that was searched
  int nodes = 0;
  int gpus_per_node = 0;
  MicroUsdPerHour price;  ///< of all nodes
};

/// The cheapest homogeneous set that holds `count` GPUs, each of a name or family in `gpus` ("V100" holds V100 and
/// V100-PCIE-16GB), in `region` on `market`, on as few nodes of its type as hold them. Equal prices: fewer nodes, then
/// the first name. Spread evenly, as a run needs it: 6 GPUs on two 4-GPU nodes are 3 a node, and 5 do not fit there.
/// Nothing fits: Infeasible, naming what there is. Precondition: count > 0.
InstanceSet cheapest_instances(const Platform& platform, std::span<const std::string> gpus, int count,
                               std::string_view region, Market market);

}  // namespace ganymede

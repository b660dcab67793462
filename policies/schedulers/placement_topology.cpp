#include <algorithm>

#include "policies/schedulers/placement.hpp"

namespace ganymede::policies {
namespace {

/// Nodes below one switch of the lowest level, and their free GPUs.
struct SwitchGroup {
  int first, last, free;
};

/// Below one switch if possible: that with the least free GPUs that hold the job. Else the emptiest switches first.
std::vector<NodeShare> place_by_switch(const FreeNodes& nodes, int gpus) {
  const int count = static_cast<int>(nodes.free.size());
  const int size = nodes.group > 0 ? nodes.group : count;
  std::vector<SwitchGroup> groups;
  for (int first = 0; first < count; first += size) {
    SwitchGroup group{first, std::min(first + size, count), 0};
    for (int node = group.first; node < group.last; ++node) group.free += nodes.free[static_cast<std::size_t>(node)];
    groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const SwitchGroup& a, const SwitchGroup& b) { return a.free > b.free; });
  std::vector<NodeShare> taken;
  for (std::size_t i = 0; i < groups.size() && gpus > 0; ++i) {
    std::size_t best = i;
    if (groups[i].free >= gpus)
      while (best + 1 < groups.size() && groups[best + 1].free >= gpus) ++best;
    const int part = std::min(gpus, groups[best].free);
    const auto shares = fewest_nodes(nodes, groups[best].first, groups[best].last, part);
    taken.insert(taken.end(), shares.begin(), shares.end());
    gpus -= part;
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace

PlacementRule topology_placement() {
  return {"topology", "below one switch of the lowest level if possible, there on as few nodes as possible",
          "Slurm's topology/tree plugin and Kueue's topology-aware scheduling", place_by_switch};
}

}  // namespace ganymede::policies

#include <algorithm>

#include "policies/schedulers/placement.hpp"

namespace ganymede::policies {
namespace {

std::vector<NodeShare> place_together(const FreeNodes& nodes, int gpus) {
  return fewest_nodes(nodes, 0, static_cast<int>(nodes.free.size()), gpus);
}

}  // namespace

std::vector<NodeShare> fewest_nodes(const FreeNodes& nodes, int first, int last, int gpus) {
  std::vector<NodeShare> by_free;
  for (int node = first; node < last; ++node)
    if (nodes.free[static_cast<std::size_t>(node)] > 0)
      by_free.push_back({node, nodes.free[static_cast<std::size_t>(node)]});
  std::stable_sort(by_free.begin(), by_free.end(),
                   [](const NodeShare& a, const NodeShare& b) { return a.gpus > b.gpus; });
  std::vector<NodeShare> taken;
  for (std::size_t i = 0; i < by_free.size() && gpus > 0; ++i) {
    NodeShare share = by_free[i];
    if (share.gpus >= gpus) {
      // The last share: of the nodes that can hold it, the one that has least to spare.
      std::size_t best = i;
      while (best + 1 < by_free.size() && by_free[best + 1].gpus >= gpus) ++best;
      while (best > i && by_free[best - 1].gpus == by_free[best].gpus) --best;
      share = {by_free[best].node, gpus};
    }
    taken.push_back(share);
    gpus -= share.gpus;
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

PlacementRule consolidate_placement() {
  return {"consolidate", "on as few nodes as possible, in the node that a job fills best",
          "consolidation of Tiresias (NSDI 2019) and best fit of Slurm's select/cons_tres", place_together};
}

}  // namespace ganymede::policies

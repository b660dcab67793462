#include <algorithm>
#include <map>

#include "policies/schedulers/placement.hpp"

namespace ganymede::policies {
namespace {

/// GPU by GPU from the node that then has most.
std::vector<NodeShare> place_apart(const FreeNodes& nodes, int gpus) {
  std::vector<int> free(nodes.free.begin(), nodes.free.end());
  std::map<int, int> taken;
  for (; gpus > 0; --gpus) {
    const auto most = std::max_element(free.begin(), free.end());
    --*most;
    ++taken[static_cast<int>(most - free.begin())];
  }
  std::vector<NodeShare> shares;
  for (const auto& [node, count] : taken) shares.push_back({node, count});
  return shares;
}

}  // namespace

PlacementRule spread_placement() {
  return {"spread", "GPU by GPU on the node that has most free", "LeastAllocated scoring of the Kubernetes scheduler",
          place_apart};
}

}  // namespace ganymede::policies

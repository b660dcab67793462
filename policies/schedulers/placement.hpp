#pragma once
// Where the GPUs of a job come from, once a scheduler has granted them: which nodes of the pool.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::policies {

/// The free GPUs of a pool.
struct FreeNodes {
  std::span<const int> free;  ///< by node
  int gpus_per_node = 1;
  int group = 0;  ///< nodes below one switch of the lowest level; 0: the network has no levels
};

/// So many GPUs of one node.
struct NodeShare {
  int node = 0;
  int gpus = 0;
  auto operator<=>(const NodeShare&) const = default;
};

struct PlacementRule {
  std::string_view name, summary, source;
  /// Returns shares that sum to `gpus`, sorted by node. Precondition: so many are free.
  std::vector<NodeShare> (*place)(const FreeNodes& nodes, int gpus) = nullptr;
};

/// The register; the first is the default.
std::span<const PlacementRule> placements();
const PlacementRule* find_placement(std::string_view name);
std::vector<std::string> placement_names();

/// The fewest nodes of [first, last): whole ones first; the rest goes to the node that it fills best.
std::vector<NodeShare> fewest_nodes(const FreeNodes& nodes, int first, int last, int gpus);

}  // namespace ganymede::policies

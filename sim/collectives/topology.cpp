#include "sim/collectives/topology.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace ganymede::sim {

int Topology::nodes() const {
  return node_sizes.empty() ? (ranks + gpus_per_node - 1) / gpus_per_node : static_cast<int>(node_sizes.size());
}

int Topology::node_of(int rank) const {
  assert(0 <= rank && rank < ranks);
  if (node_sizes.empty()) return rank / gpus_per_node;
  int node = 0;
  for (int end = node_sizes[0]; rank >= end; end += node_sizes[static_cast<std::size_t>(node)]) ++node;
  return node;
}

int Topology::first_of(int node) const {
  if (node_sizes.empty()) return node * gpus_per_node;
  return std::accumulate(node_sizes.begin(), node_sizes.begin() + node, 0);
}

int Topology::size_of(int node) const {
  if (node_sizes.empty()) return std::min(gpus_per_node, ranks - node * gpus_per_node);
  return node_sizes[static_cast<std::size_t>(node)];
}

Topology flat(int ranks) { return clustered(ranks, 1); }

Topology clustered(int ranks, int gpus_per_node) {
  Topology topology;
  topology.ranks = ranks;
  topology.gpus_per_node = gpus_per_node;
  return topology;
}

}  // namespace ganymede::sim

#pragma once
// What a plan may know of where its ranks are. Bandwidths and latencies are the fabric's business.

namespace ganymede {

/// Ranks in the order of nodes: node 0 holds ranks 0 … gpus_per_node - 1, and so on; the last node may hold fewer.
struct Topology {
  int ranks = 1;
  int gpus_per_node = 1;

  int node_of(int rank) const { return rank / gpus_per_node; }
  int nodes() const { return (ranks + gpus_per_node - 1) / gpus_per_node; }
  bool operator==(const Topology&) const = default;
};

/// One GPU a node.
constexpr Topology flat(int ranks) { return {ranks, 1}; }

}  // namespace ganymede

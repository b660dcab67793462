#pragma once
// What a plan may know of where its ranks are: counts and shapes. Times are the fabric's business, except for `nccl`,
// which chooses by the figures that NCCL itself detects.

#include <array>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// What NCCL's tuner reads off the machine. A rate of zero: there is no such link.
struct NcclMachine {
  enum class Generation { older, volta, ampere, hopper, blackwell };
  enum class Inside { none, pcie, nvlink_mesh, nvlink_switch };
  Generation generation = Generation::older;
  Inside inside = Inside::none;
  BytesPerSecond inside_bandwidth{0};   ///< of one GPU, one way, over all of its links inside the node
  BytesPerSecond between_bandwidth{0};  ///< of one node, one way, over all of its NICs
  int nics = 1;                         ///< of one node
  Seconds network_latency{0};           ///< of a small message between nodes, all on its way included
  bool gpu_direct = true;               ///< false: what leaves the node is staged through host memory
  BytesPerSecond staging_bandwidth{0};  ///< then, of a GPU's host link
  bool peer_to_peer = true;             ///< false: messages inside the node are staged through host memory
  bool sockets = false;                 ///< the network is TCP
  bool efa = false;                     ///< the network is AWS' EFA
  bool operator==(const NcclMachine&) const = default;
};

/// Ranks in the order of nodes: node 0 holds the first of them, and so on. Behind the ranks come the switches that can
/// reduce: endpoint `ranks + k`.
struct Topology {
  int ranks = 1;
  int gpus_per_node = 1;  ///< of every node but, perhaps, the last; the largest where `node_sizes` is given
  /// Ranks of each node where they differ by more than a smaller last node; empty otherwise.
  std::vector<int> node_sizes;
  int rails = 1;  ///< NICs of a node: so many rings can cross nodes without sharing one
  /// Link-disjoint cyclic orders of the `gpus_per_node` GPUs of a node, for rings that use all links; empty: only the
  /// natural order is known.
  std::vector<std::vector<int>> rings;
  std::vector<int> torus;      ///< lengths of a torus' dimensions, whose product is `ranks`; empty: none
  bool node_switch = false;    ///< endpoint ranks + k is the switch inside node k, which can reduce
  bool fabric_switch = false;  ///< the last endpoint is the switch between the nodes, which can reduce
  NcclMachine nccl;

  int node_of(int rank) const;
  int nodes() const;
  int first_of(int node) const;  ///< the lowest rank of a node
  int size_of(int node) const;
  int endpoints() const { return ranks + (node_switch ? nodes() : 0) + (fabric_switch ? 1 : 0); }
  bool operator==(const Topology&) const = default;
};

/// One GPU a node.
Topology flat(int ranks);
/// `ranks` on nodes of `gpus_per_node`; the last may hold fewer.
Topology clustered(int ranks, int gpus_per_node);

}  // namespace ganymede

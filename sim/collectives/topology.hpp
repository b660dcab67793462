#pragma once
// A plan knows counts and shapes of the placement of its ranks. Times belong to the fabric (sim/engine).
// Only `nccl` uses bandwidths and latencies, since NCCL itself detects them and chooses by them.

#include <array>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// The machine as NCCL's tuner detects it. A bandwidth of zero means that there is no such link.
struct NcclMachine {
  enum class Generation { older, volta, ampere, hopper, blackwell };
  enum class Inside { none, pcie, nvlink_mesh, nvlink_switch };
  Generation generation = Generation::older;
  Inside inside = Inside::none;
  BytesPerSecond inside_bandwidth{0};   ///< rate of one GPU in one direction, over all of its links inside the node
  BytesPerSecond between_bandwidth{0};  ///< rate of one node in one direction, over all of its NICs
  int nics = 1;                         ///< number of NICs of one node
  Seconds network_latency{0};           ///< total latency of a small message between GPUs of different nodes
  bool gpu_direct = true;               ///< false: messages between nodes are staged through host memory
  BytesPerSecond staging_bandwidth{0};  ///< rate of a GPU's host link, where messages are staged
  bool peer_to_peer = true;             ///< false: messages inside the node are staged through host memory
  bool inside_measured = false;         ///< the bandwidth inside was measured with NCCL, so hosts limit it no further
  bool sockets = false;                 ///< the network is TCP
  int socket_connections = 0;           ///< over which NCCL splits a message over TCP; 0: hosts do not limit it
  bool efa = false;                     ///< the network is AWS' EFA
  Seconds inside_latency{0};            ///< of a message between two GPUs of a node
  Seconds rendezvous{0};                ///< what only messages that wait for their receiver add between nodes
  bool rendezvous_in_tuner = false;     ///< NCCL's tuner counts it; true only for networks with a tuner of their own
  int minor = 0;                        ///< of the version 2.x that a scheme without one means; 0: not stated
  bool operator==(const NcclMachine&) const = default;
};

/// Where ranks are. Ranks are numbered node by node: node 0 holds the first ones. Switches that can reduce are
/// endpoints too, numbered after the ranks.
struct Topology {
  int ranks = 1;
  /// The same for all nodes, except that the last may have fewer; the maximum if `node_sizes` is set.
  int gpus_per_node = 1;
  /// The ranks of each node, if sizes differ by more than a smaller last node; else empty.
  std::vector<int> node_sizes;
  int rails = 1;  ///< NICs of a node that are used: as many rings can cross nodes without sharing a NIC
  /// Link-disjoint cyclic orders of the `gpus_per_node` GPUs of a node, for rings that use all links. Empty: only the
  /// natural order is known.
  std::vector<std::vector<int>> rings;
  std::vector<int> torus;      ///< lengths of the dimensions of a torus, with product `ranks`; empty: not a torus
  bool node_switch = false;    ///< endpoint ranks + k is the switch inside node k, which can reduce
  bool fabric_switch = false;  ///< the last endpoint is the switch between the nodes, which can reduce
  NcclMachine nccl;

  int node_of(int rank) const;   ///< the node of a rank
  int nodes() const;             ///< the number of nodes
  int first_of(int node) const;  ///< the lowest rank of a node
  int size_of(int node) const;   ///< the number of ranks of a node
  int endpoints() const { return ranks + (node_switch ? nodes() : 0) + (fabric_switch ? 1 : 0); }
  bool operator==(const Topology&) const = default;
};

/// `ranks` nodes of one GPU.
Topology flat(int ranks);
/// `ranks` GPUs on nodes of `gpus_per_node`; the last node may have fewer.
Topology clustered(int ranks, int gpus_per_node);

}  // namespace ganymede::sim

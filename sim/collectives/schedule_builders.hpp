#pragma once
// Rings, trees and pairwise exchanges: what the schedules of several schemes are built from.

#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {

/// True for one rank or no bytes: then nothing is sent.
inline bool is_trivial(const PlanRequest& request) { return request.topology.ranks == 1 || request.bytes == 0; }
/// The schedule without rounds that serves a trivial request.
Schedule empty_schedule(const PlanRequest& request);

// ---- rings ----

/// {0, 1, ..., count - 1}.
std::vector<int> natural_order(int count);

/// Cyclic orders of the GPUs of a node that share no link. If none are known, or if nodes differ in size: only {0, 1,
/// ...}.
std::vector<std::vector<int>> node_cycles(const Topology& topology);

/// The order of a ring over all ranks: node after node, the GPUs of each in the order of `cycle`, starting at the GPU
/// that owns NIC `nic` (taken modulo the number of NICs).
std::vector<int> ring_over_nodes(const Topology& topology, const std::vector<int>& cycle, int nic);

/// Appends one round (0 <= round < n - 1) of the reduce-scatter (`reduce`) or the all-gather of a ring. The n members
/// in `order` divide the bytes [offset, offset + n x chunk) into n chunks. After the reduce-scatter, and before the
/// all-gather, the member at place p holds chunk (p + 1) % n.
void append_ring_round(const std::vector<int>& order, std::int64_t offset, std::int64_t chunk, bool reduce,
                       std::int64_t round, std::vector<Transfer>& transfers);

/// The orders of several rings that work at the same time: inside one node each cycle of node_cycles() in both
/// directions; over several nodes one ring for each NIC of a node, or, with one NIC, the ring in both directions. With
/// `in_lanes` one NIC gets one ring only, since both directions would share its links. `count` is the number of rings;
/// 0: as many as stated here.
std::vector<std::vector<int>> parallel_ring_orders(const Topology& topology, bool in_lanes, int count);

/// The schedule of rings in those orders, each on an equal share of the bytes; in common rounds, or, with `in_lanes`,
/// each in a lane of its own. The bytes go in `passes` equal parts, one after the other.
Schedule parallel_rings(const PlanRequest& request, const std::vector<std::vector<int>>& orders, bool in_lanes,
                        std::int64_t passes);

// ---- trees ----

/// A tree over endpoints: sums flow up to the root and the total flows back down, chunk after chunk.
struct Tree {
  static constexpr int kRoot = -1;
  static constexpr int kNotInTree = -2;
  std::vector<int> parent;  ///< the parent of each endpoint, kRoot or kNotInTree
  std::int64_t offset = 0;  ///< first byte of the tree's part of the buffer
  std::int64_t chunk = 0;   ///< bytes of one chunk
  int lane = 0;             ///< the lane of all transfers of the tree
};
enum class TreeFlow { up, down, both };

/// The stages of trees that work at the same time, each on `chunks` chunks. With D the greatest depth of a tree, the
/// members at depth d send chunk c up in round c + D - d and receive it from above in round c + D + d - 1; if chunks
/// only flow down, in round c + d - 1.
std::vector<Stage> tree_stages(std::vector<Tree> trees, std::int64_t chunks, TreeFlow flow);

/// The schedule of trees on equal shares of the bytes, in pipelined chunks: an all-reduce, or, for a broadcast, only
/// the way down, and for a reduce only the way up. Sets the offset and the chunk of each tree.
Schedule pipelined_trees(const PlanRequest& request, std::vector<Tree> trees);

/// Returns the parent of a node in a tree over nodes; Tree::kRoot for the root.
using ParentNode = std::function<int(int node)>;

/// The two trees over `nodes` nodes in which each node that is inner in one is a leaf of the other (Sanders, Speck,
/// Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009).
ParentNode first_of_two_trees(int nodes);
ParentNode second_of_two_trees(int nodes);

/// A tree over all ranks: `over_nodes` joins one GPU of each node, to which the others of the node form a chain. That
/// GPU is the last of its node if `head_is_last`, else the first.
Tree tree_with_chains(const Topology& topology, const ParentNode& over_nodes, bool head_is_last);

/// For each NIC of a node a double binary tree over the nodes, each tree in a lane of its own; the GPUs of a node form
/// a chain to the one that owns the NIC. A single node has one chain and no tree.
Schedule channel_trees(const PlanRequest& request);

/// A pipelined all-reduce over the switches that reduce: ranks send to the switch of their node, or straight to that of
/// the fabric, which multicasts the sum. The topology must have such switches.
Schedule switch_tree(const PlanRequest& request);

/// For each GPU of a node (a head, in NCCL's words) a double binary tree over the nodes, each tree in a lane of its
/// own, on an equal share of the bytes: the other GPUs of the node send the share to the node's switch, which hands the
/// sum to the head and multicasts the total (NVLSTree). Needs switches inside nodes that reduce, and several nodes of
/// one size.
Schedule switch_channel_trees(const PlanRequest& request);

// ---- exchanges between ranks whose numbers differ in one bit ----

/// The greatest power of two that is at most `ranks`.
inline int power_of_two_below(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
/// log2 of a power of two.
inline int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

/// Appends the round that makes such exchanges work for any count: ranks beyond the greatest power of two hand their
/// bytes to a rank below it before the exchanges (`reduce`), and get the total back after them (Thakur, Rabenseifner,
/// Gropp, "Optimization of collective communication operations in MPICH", 2005). Appends nothing if `ranks` is a power
/// of two.
void append_surplus_round(int ranks, std::int64_t bytes, bool reduce, std::vector<Stage>& stages);

}  // namespace ganymede::sim

// Pipelined trees. Over nodes a binary tree, inside a node a chain that ends at the GPU which the tree over nodes knows
// (NCCL builds its trees so: Jeaugey, "Massively scale your deep learning training with NCCL 2.4", 2019).
//
// The double tree: each half of the bytes has a binary tree of its own, and a node that is inner in one is a leaf of
// the other, so that all nodes send and receive alike (Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009).

#include <algorithm>
#include <functional>

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

/// -1 for the root.
using ParentNode = std::function<int(int node)>;

int heap_parent(int node) { return node == 0 ? -1 : (node - 1) / 2; }

/// The binary tree whose leaves are the odd nodes: a node's height is its lowest set bit, its parent the nearest number
/// of greater height.
int in_order_parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

/// The same tree with leaves and inner nodes exchanged: mirrored, or shifted by one where the count is odd.
int exchanged_parent(int node, int nodes) {
  if (nodes % 2 == 0) {
    const int parent = in_order_parent(nodes - 1 - node, nodes);
    return parent < 0 ? -1 : nodes - 1 - parent;
  }
  const int parent = in_order_parent((node + nodes - 1) % nodes, nodes);
  return parent < 0 ? -1 : (parent + 1) % nodes;
}

/// `from_last`: the chain inside a node ends at its last GPU, not at its first.
std::vector<int> parents(const Topology& topology, const ParentNode& over_nodes, bool from_last) {
  std::vector<int> parent(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree);
  const auto head = [&](int node) { return topology.first_of(node) + (from_last ? topology.size_of(node) - 1 : 0); };
  for (int node = 0; node < topology.nodes(); ++node) {
    for (int i = 0; i < topology.size_of(node); ++i) {
      const int rank = topology.first_of(node) + i;
      parent[static_cast<std::size_t>(rank)] = from_last ? rank + 1 : rank - 1;
    }
    const int above = over_nodes(node);
    parent[static_cast<std::size_t>(head(node))] = above < 0 ? -1 : head(above);
  }
  return parent;
}

/// The chain ends at the GPU of NIC `rail`.
std::vector<int> rail_parents(const Topology& topology, const ParentNode& over_nodes, int rail) {
  std::vector<int> parent(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree);
  const std::vector<int> order = ring_over_nodes(topology, inside_cycles(topology).front(), rail);
  std::vector<int> heads;
  for (int node = 0; node < topology.nodes(); ++node)
    heads.push_back(order[static_cast<std::size_t>(topology.first_of(node))]);
  for (int node = 0; node < topology.nodes(); ++node) {
    int before = over_nodes(node) < 0 ? -1 : heads[static_cast<std::size_t>(over_nodes(node))];
    const int first = topology.first_of(node), size = topology.size_of(node);
    for (int place = first; place < first + size; ++place) {
      const int rank = order[static_cast<std::size_t>(place)];
      parent[static_cast<std::size_t>(rank)] = before;
      before = rank;
    }
  }
  return parent;
}

Schedule plan_trees(const PlanRequest& request, std::vector<Tree> trees) {
  const std::int64_t chunks = pipeline_chunks(request);
  const auto count = static_cast<std::int64_t>(trees.size());
  const std::int64_t whole = padded(request.bytes, chunks * count);
  std::int64_t offset = 0;
  for (Tree& tree : trees) {
    tree.offset = offset;
    tree.chunk = whole / count / chunks;
    offset += whole / count;
  }
  const Flow flow = request.collective == Collective::broadcast ? Flow::down : Flow::both;
  return Schedule(request.topology.ranks, request.topology.endpoints(), whole,
                  tree_stages(std::move(trees), chunks, flow));
}

}  // namespace

WhyNot tree_why_not(const PlanRequest& request) {
  if (auto why = chunks_variant(request)) return why;
  return only(request, {Collective::all_reduce, Collective::broadcast});
}

Schedule plan_tree(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  return plan_trees(request, {Tree{parents(request.topology, heap_parent, false), 0, 0}});
}

WhyNot double_binary_tree_why_not(const PlanRequest& request) {
  if (auto why = chunks_variant(request)) return why;
  return only(request, {Collective::all_reduce});  // the two trees have different roots
}

Schedule plan_double_binary_tree(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int nodes = request.topology.nodes();
  const auto first = [nodes](int node) { return in_order_parent(node, nodes); };
  const auto second = [nodes](int node) { return exchanged_parent(node, nodes); };
  return plan_trees(request, {Tree{parents(request.topology, first, false), 0, 0},
                              Tree{parents(request.topology, second, true), 0, 0}});
}

Schedule plan_channel_trees(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const Topology& topology = request.topology;
  const int nodes = topology.nodes(), rails = std::min(topology.rails, topology.gpus_per_node);
  const auto first = [nodes](int node) { return in_order_parent(node, nodes); };
  const auto second = [nodes](int node) { return exchanged_parent(node, nodes); };
  std::vector<Tree> trees;
  for (int rail = 0; rail < (nodes == 1 ? 1 : rails); ++rail) {
    // Of more NICs than GPUs, each GPU's first; one tree is enough where there are no leaves to spare.
    const int nic = rail * topology.rails / rails;
    trees.push_back({rail_parents(topology, first, nic), 0, 0, static_cast<int>(trees.size())});
    if (nodes > 1) trees.push_back({rail_parents(topology, second, nic), 0, 0, static_cast<int>(trees.size())});
  }
  const auto lanes = static_cast<int>(trees.size());
  Schedule schedule = plan_trees(request, std::move(trees));
  schedule.set_lanes(lanes);
  return schedule;
}

}  // namespace ganymede

#include "sim/collectives/schedule_builders.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

/// The edge from a member of a tree to its parent.
struct Edge {
  int child, parent;
  int depth;  // depth of the child, 1 below the root
  std::size_t tree;
};

/// Trees that work at the same time, and the rounds in which their edges carry chunks.
struct Forest {
  std::vector<Tree> trees;
  std::vector<Edge> edges;
  std::vector<int> height;  // greatest depth of each tree
  std::int64_t chunks;
  TreeFlow flow;

  std::int64_t up_start(const Edge& edge) const { return height[edge.tree] - edge.depth; }
  std::int64_t down_start(const Edge& edge) const {
    return flow == TreeFlow::down ? edge.depth - 1 : height[edge.tree] + edge.depth - 1;
  }

  void round(std::int64_t index, std::vector<Transfer>& transfers) const {
    for (const Edge& edge : edges) {
      const Tree& tree = trees[edge.tree];
      if (const std::int64_t chunk = index - up_start(edge); flow != TreeFlow::down && 0 <= chunk && chunk < chunks)
        transfers.push_back({edge.child, edge.parent, tree.offset + chunk * tree.chunk, tree.chunk, true, tree.lane});
      if (const std::int64_t chunk = index - down_start(edge); flow != TreeFlow::up && 0 <= chunk && chunk < chunks)
        transfers.push_back({edge.parent, edge.child, tree.offset + chunk * tree.chunk, tree.chunk, false, tree.lane});
    }
  }

  /// Visits each edge, up and down, with the stages in which it is busy; `starts` holds the first round of each stage.
  void each_edge(const std::vector<std::int64_t>& starts, const VisitSpan& visit) const {
    const auto stage_at = [&](std::int64_t round) {
      return static_cast<int>(std::lower_bound(starts.begin(), starts.end(), round) - starts.begin());
    };
    for (const Edge& edge : edges) {
      const Tree& tree = trees[edge.tree];
      if (const std::int64_t from = up_start(edge); flow != TreeFlow::down)
        visit({edge.child, edge.parent, tree.offset, tree.chunk, true, tree.lane}, stage_at(from),
              stage_at(from + chunks));
      if (const std::int64_t from = down_start(edge); flow != TreeFlow::up)
        visit({edge.parent, edge.child, tree.offset, tree.chunk, false, tree.lane}, stage_at(from),
              stage_at(from + chunks));
    }
  }
};

int depth_of(const std::vector<int>& parent, int endpoint) {
  int depth = 0;
  for (; parent[static_cast<std::size_t>(endpoint)] >= 0; endpoint = parent[static_cast<std::size_t>(endpoint)])
    ++depth;
  return depth;
}

/// The binary tree whose leaves are the odd nodes: a node's height is its lowest set bit, its parent the nearest number
/// of greater height.
int in_order_parent(int node, int nodes) {
  if (node == 0) return Tree::kRoot;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

/// The same tree with leaves and inner nodes exchanged: mirrored, or shifted by one if the number of nodes is odd.
int exchanged_parent(int node, int nodes) {
  if (nodes % 2 == 0) {
    const int parent = in_order_parent(nodes - 1 - node, nodes);
    return parent < 0 ? Tree::kRoot : nodes - 1 - parent;
  }
  const int parent = in_order_parent((node + nodes - 1) % nodes, nodes);
  return parent < 0 ? Tree::kRoot : (parent + 1) % nodes;
}

/// A tree over all ranks in which the GPUs of each node chain to the GPU of NIC `nic`. On a mesh the lanes take turns
/// with the rings that share no link, in both directions: two DGX-1 (NVIDIA/deepops, docs of 2019) reach 29 GB/s, more
/// than one ring's links would carry.
Tree tree_over_nic(const Topology& topology, const ParentNode& over_nodes, int nic, int lane) {
  Tree tree{std::vector<int>(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree), 0, 0, lane};
  const auto cycles = node_cycles(topology);
  std::vector<int> cycle = cycles[static_cast<std::size_t>(lane / 2) % cycles.size()];
  if (!topology.rings.empty() && lane % 2 == 1) std::reverse(cycle.begin(), cycle.end());
  const std::vector<int> order = ring_over_nodes(topology, cycle, nic);
  std::vector<int> heads;
  for (int node = 0; node < topology.nodes(); ++node)
    heads.push_back(order[static_cast<std::size_t>(topology.first_of(node))]);
  for (int node = 0; node < topology.nodes(); ++node) {
    int before = over_nodes(node) < 0 ? Tree::kRoot : heads[static_cast<std::size_t>(over_nodes(node))];
    const int first = topology.first_of(node), size = topology.size_of(node);
    for (int place = first; place < first + size; ++place) {
      const int rank = order[static_cast<std::size_t>(place)];
      tree.parent[static_cast<std::size_t>(rank)] = before;
      before = rank;
    }
  }
  return tree;
}

}  // namespace

Schedule empty_schedule(const PlanRequest& request) {
  return Schedule(request.topology.ranks, request.topology.endpoints(), request.bytes, {});
}

// ---- rings ----

std::vector<int> natural_order(int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::vector<int>> node_cycles(const Topology& topology) {
  const bool whole_nodes = topology.node_sizes.empty() && topology.ranks % topology.gpus_per_node == 0;
  if (whole_nodes && !topology.rings.empty()) return topology.rings;
  return {natural_order(topology.gpus_per_node)};
}

std::vector<int> ring_over_nodes(const Topology& topology, const std::vector<int>& cycle, int nic) {
  const int g = topology.gpus_per_node;
  const int start = nic % topology.rails * g / topology.rails;
  std::vector<int> order;
  for (int node = 0; node < topology.nodes(); ++node) {
    const int first = topology.first_of(node), size = topology.size_of(node);
    const auto from = std::find(cycle.begin(), cycle.end(), start) - cycle.begin();
    for (int i = 0; i < static_cast<int>(cycle.size()); ++i) {
      const int gpu = cycle[(static_cast<std::size_t>(from) + static_cast<std::size_t>(i)) % cycle.size()];
      if (gpu < size) order.push_back(first + gpu);
    }
  }
  return order;
}

void append_ring_round(const std::vector<int>& order, std::int64_t offset, std::int64_t chunk, bool reduce,
                       std::int64_t round, std::vector<Transfer>& transfers) {
  const auto n = static_cast<std::int64_t>(order.size());
  // Chunk c starts at place c and moves one place a round, so that after n - 1 rounds place c - 1 holds its sum. From
  // there the sum goes round once more.
  std::int64_t piece = reduce ? (n - round) % n : (n + 1 - round) % n;
  for (std::int64_t place = 0; place < n; ++place) {
    const std::int64_t next = place + 1 == n ? 0 : place + 1;
    transfers.push_back({order[static_cast<std::size_t>(place)], order[static_cast<std::size_t>(next)],
                         offset + piece * chunk, chunk, reduce});
    if (++piece == n) piece = 0;
  }
}

std::vector<std::vector<int>> parallel_ring_orders(const Topology& topology, bool in_lanes, int count) {
  const auto cycles = node_cycles(topology);
  const bool one_node = topology.nodes() == 1;
  if (count == 0)
    count = one_node ? 2 * static_cast<int>(cycles.size()) : topology.rails == 1 ? (in_lanes ? 1 : 2) : topology.rails;
  std::vector<std::vector<int>> orders;
  for (int i = 0; i < count; ++i) {
    if (one_node || topology.rails == 1) {  // each cycle in both directions
      const auto& cycle = cycles[static_cast<std::size_t>(i / 2) % cycles.size()];
      orders.push_back(ring_over_nodes(topology, cycle, 0));
      if (i % 2 == 1) std::reverse(orders.back().begin(), orders.back().end());
    } else {
      orders.push_back(ring_over_nodes(topology, cycles[static_cast<std::size_t>(i) % cycles.size()], i));
    }
  }
  return orders;
}

Schedule parallel_rings(const PlanRequest& request, const std::vector<std::vector<int>>& orders, bool in_lanes,
                        std::int64_t passes) {
  const int n = request.topology.ranks;
  const auto rings = static_cast<std::int64_t>(orders.size());
  const std::int64_t whole = padded(request.bytes, passes * rings * n), pass = whole / passes;
  const auto half = [&](std::int64_t start, bool reduce) {
    return Stage{n - 1, [orders, in_lanes, start, part = pass / rings, chunk = pass / rings / n, reduce](
                            std::int64_t round, std::vector<Transfer>& out) {
                   for (std::size_t ring = 0; ring < orders.size(); ++ring) {
                     const std::size_t first = out.size();
                     const std::int64_t offset = start + static_cast<std::int64_t>(ring) * part;
                     append_ring_round(orders[ring], offset, chunk, reduce, round, out);
                     if (in_lanes)
                       for (std::size_t i = first; i < out.size(); ++i) out[i].lane = static_cast<int>(ring);
                   }
                 }};
  };
  std::vector<Stage> stages;
  for (std::int64_t i = 0; i < passes; ++i) {
    if (request.collective != Collective::all_gather) stages.push_back(half(i * pass, true));
    if (request.collective != Collective::reduce_scatter) stages.push_back(half(i * pass, false));
  }
  Schedule schedule(n, request.topology.endpoints(), whole, std::move(stages));
  if (in_lanes) schedule.set_lanes(static_cast<int>(rings));
  return schedule;
}

// ---- trees ----

std::vector<Stage> tree_stages(std::vector<Tree> trees, std::int64_t chunks, TreeFlow flow) {
  auto forest = std::make_shared<Forest>(Forest{std::move(trees), {}, {}, chunks, flow});
  for (std::size_t tree = 0; tree < forest->trees.size(); ++tree) {
    const auto& parent = forest->trees[tree].parent;
    forest->height.push_back(0);
    for (int endpoint = 0; endpoint < static_cast<int>(parent.size()); ++endpoint) {
      if (parent[static_cast<std::size_t>(endpoint)] < 0) continue;
      const int depth = depth_of(parent, endpoint);
      forest->edges.push_back({endpoint, parent[static_cast<std::size_t>(endpoint)], depth, tree});
      forest->height.back() = std::max(forest->height.back(), depth);
    }
  }
  // A stage ends where an edge becomes busy or idle: within it all rounds are alike.
  std::set<std::int64_t> changes;
  for (const Edge& edge : forest->edges) {
    if (flow != TreeFlow::down) changes.insert({forest->up_start(edge), forest->up_start(edge) + chunks});
    if (flow != TreeFlow::up) changes.insert({forest->down_start(edge), forest->down_start(edge) + chunks});
  }
  const auto series =
      std::make_shared<const StageSeries>([forest, starts = std::vector<std::int64_t>(changes.begin(), changes.end())](
                                              const VisitSpan& visit) { forest->each_edge(starts, visit); });
  std::vector<Stage> stages;
  for (auto first = changes.begin(), last = std::next(first); last != changes.end(); first = last++) {
    stages.push_back({*last - *first,
                      [forest, from = *first](std::int64_t round, std::vector<Transfer>& transfers) {
                        forest->round(from + round, transfers);
                      },
                      series, static_cast<int>(stages.size())});
  }
  return stages;
}

Schedule pipelined_trees(const PlanRequest& request, std::vector<Tree> trees) {
  const std::int64_t chunks = pipeline_chunks(request);
  const auto count = static_cast<std::int64_t>(trees.size());
  const std::int64_t whole = padded(request.bytes, chunks * count);
  std::int64_t offset = 0;
  for (Tree& tree : trees) {
    tree.offset = offset;
    tree.chunk = whole / count / chunks;
    offset += whole / count;
  }
  const TreeFlow flow = request.collective == Collective::broadcast ? TreeFlow::down
                        : request.collective == Collective::reduce  ? TreeFlow::up
                                                                    : TreeFlow::both;
  return Schedule(request.topology.ranks, request.topology.endpoints(), whole,
                  tree_stages(std::move(trees), chunks, flow));
}

ParentNode first_of_two_trees(int nodes) {
  return [nodes](int node) { return in_order_parent(node, nodes); };
}

ParentNode second_of_two_trees(int nodes) {
  return [nodes](int node) { return exchanged_parent(node, nodes); };
}

Tree tree_with_chains(const Topology& topology, const ParentNode& over_nodes, bool head_is_last) {
  Tree tree{std::vector<int>(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree)};
  const auto head = [&](int node) { return topology.first_of(node) + (head_is_last ? topology.size_of(node) - 1 : 0); };
  for (int node = 0; node < topology.nodes(); ++node) {
    for (int i = 0; i < topology.size_of(node); ++i) {
      const int rank = topology.first_of(node) + i;
      tree.parent[static_cast<std::size_t>(rank)] = head_is_last ? rank + 1 : rank - 1;
    }
    const int above = over_nodes(node);
    tree.parent[static_cast<std::size_t>(head(node))] = above < 0 ? Tree::kRoot : head(above);
  }
  return tree;
}

Schedule channel_trees(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Topology& topology = request.topology;
  const int nodes = topology.nodes(), rails = std::min(topology.rails, topology.gpus_per_node);
  std::vector<Tree> trees;
  for (int rail = 0; rail < (nodes == 1 ? 1 : rails); ++rail) {
    // With more NICs than GPUs each GPU uses its first NIC. One node needs one tree: there are no leaves to balance.
    const int nic = rail * topology.rails / rails;
    trees.push_back(tree_over_nic(topology, first_of_two_trees(nodes), nic, static_cast<int>(trees.size())));
    if (nodes > 1)
      trees.push_back(tree_over_nic(topology, second_of_two_trees(nodes), nic, static_cast<int>(trees.size())));
  }
  const auto lanes = static_cast<int>(trees.size());
  Schedule schedule = pipelined_trees(request, std::move(trees));
  schedule.set_lanes(lanes);
  return schedule;
}

Schedule switch_tree(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Topology& topology = request.topology;
  const int root = topology.nodes() > 1 || !topology.node_switch ? topology.endpoints() - 1 : topology.ranks;
  Tree tree{std::vector<int>(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree)};
  for (int node = 0; node < topology.nodes(); ++node) {
    const int above = topology.node_switch ? topology.ranks + node : root;
    const auto first = tree.parent.begin() + topology.first_of(node);
    std::fill(first, first + topology.size_of(node), above);
    if (topology.node_switch) tree.parent[static_cast<std::size_t>(above)] = root;
  }
  tree.parent[static_cast<std::size_t>(root)] = Tree::kRoot;
  return pipelined_trees(request, {tree});
}

Schedule switch_channel_trees(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Topology& topology = request.topology;
  const int nodes = topology.nodes();
  std::vector<Tree> trees;
  for (int head = 0; head < topology.gpus_per_node; ++head) {
    for (const ParentNode& over_nodes : {first_of_two_trees(nodes), second_of_two_trees(nodes)}) {
      Tree tree{std::vector<int>(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree), 0, 0,
                static_cast<int>(trees.size())};
      const auto set_parent = [&](int endpoint, int parent) {
        tree.parent[static_cast<std::size_t>(endpoint)] = parent;
      };
      for (int node = 0; node < nodes; ++node) {
        const int first = topology.first_of(node), above = over_nodes(node), own_switch = topology.ranks + node;
        for (int gpu = 0; gpu < topology.size_of(node); ++gpu) set_parent(first + gpu, own_switch);
        set_parent(own_switch, first + head);
        set_parent(first + head, above < 0 ? Tree::kRoot : topology.first_of(above) + head);
      }
      trees.push_back(std::move(tree));
    }
  }
  const auto lanes = static_cast<int>(trees.size());
  Schedule schedule = pipelined_trees(request, std::move(trees));
  schedule.set_lanes(lanes);
  return schedule;
}

// ---- exchanges between ranks whose numbers differ in one bit ----

void append_surplus_round(int ranks, std::int64_t bytes, bool reduce, std::vector<Stage>& stages) {
  const int power = power_of_two_below(ranks);
  if (power == ranks) return;
  stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& out) {
                      for (int rank = power; rank < ranks; ++rank)
                        out.push_back({reduce ? rank : rank - power, reduce ? rank - power : rank, 0, bytes, reduce});
                    }});
}

}  // namespace ganymede::sim

// Two levels: reduce inside each node, all-reduce across nodes by a ring, broadcast inside. Inside, bytes flow along a
// chain to the node's first GPU in pipelined chunks and back. The variant "sharded" leaves each GPU of a node with a
// share, and lets all of them work across nodes at once: reduce-scatter inside, one ring for each share across,
// all-gather inside (as the hierarchical all-reduce of Horovod).

#include <algorithm>
#include <numeric>

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

bool alike(const Topology& topology) {
  for (int node = 0; node < topology.nodes(); ++node)
    if (topology.size_of(node) != topology.gpus_per_node) return false;
  return true;
}

/// Half of several rings at once, each on its own part of the buffer.
Stage rings(const std::vector<std::vector<int>>& orders, const std::vector<std::int64_t>& offsets, std::int64_t chunk,
            bool reduce) {
  const auto rounds = static_cast<std::int64_t>(orders.front().size()) - 1;
  return {rounds, [=](std::int64_t round, std::vector<Transfer>& out) {
            for (std::size_t i = 0; i < orders.size(); ++i)
              append_ring_half(orders[i], offsets[i], chunk, reduce, round, out);
          }};
}

Schedule plan_with_chains(const PlanRequest& request) {
  const Topology& topology = request.topology;
  const int nodes = topology.nodes();
  const std::int64_t chunks = pipeline_chunks(PlanRequest{topology, request.bytes, request.collective, ""});
  const std::int64_t whole = padded(request.bytes, chunks * nodes);
  std::vector<int> parent(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree), heads;
  for (int node = 0; node < nodes; ++node) {
    const int head = topology.first_of(node);
    heads.push_back(head);
    const auto first = parent.begin() + head;
    std::iota(first, first + topology.size_of(node), head - 1);
    *first = -1;
  }
  const Tree chains{parent, 0, whole / chunks};
  std::vector<Stage> stages;
  const bool inside = nodes < topology.ranks;
  if (inside) stages = tree_stages({chains}, chunks, Flow::up);
  if (nodes > 1) {
    stages.push_back(rings({heads}, {0}, whole / nodes, true));
    stages.push_back(rings({heads}, {0}, whole / nodes, false));
  }
  if (inside) {
    auto down = tree_stages({chains}, chunks, Flow::down);
    stages.insert(stages.end(), down.begin(), down.end());
  }
  return Schedule(topology.ranks, topology.endpoints(), whole, std::move(stages));
}

Schedule plan_sharded(const PlanRequest& request) {
  const Topology& topology = request.topology;
  const int nodes = topology.nodes(), g = topology.gpus_per_node;
  const std::int64_t whole = padded(request.bytes, std::int64_t{g} * nodes), shard = whole / g;
  std::vector<std::vector<int>> inside(static_cast<std::size_t>(nodes)), across(static_cast<std::size_t>(g));
  std::vector<std::int64_t> shards;
  for (int rank = 0; rank < topology.ranks; ++rank) {
    inside[static_cast<std::size_t>(rank / g)].push_back(rank);
    across[static_cast<std::size_t>(rank % g)].push_back(rank);
  }
  for (int place = 0; place < g; ++place) shards.push_back((place + 1) % g * shard);  // as append_ring_half leaves them
  const std::vector<std::int64_t> from_zero(inside.size(), 0);
  std::vector<Stage> stages;
  if (g > 1) stages.push_back(rings(inside, from_zero, shard, true));
  if (nodes > 1) {
    stages.push_back(rings(across, shards, shard / nodes, true));
    stages.push_back(rings(across, shards, shard / nodes, false));
  }
  if (g > 1) stages.push_back(rings(inside, from_zero, shard, false));
  return Schedule(topology.ranks, topology.endpoints(), whole, std::move(stages));
}

}  // namespace

WhyNot two_level_why_not(const PlanRequest& request) {
  if (!request.variant.empty() && request.variant != "sharded")
    return "found \"" + request.variant + "\", expected sharded or nothing";
  if (request.variant == "sharded" && !alike(request.topology)) return "sharded needs as many GPUs in every node";
  return only(request, {Collective::all_reduce});
}

Schedule plan_two_level(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  return request.variant == "sharded" ? plan_sharded(request) : plan_with_chains(request);
}

}  // namespace ganymede

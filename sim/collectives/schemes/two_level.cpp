// Two levels: reduce inside each node, all-reduce across the nodes by a ring, broadcast inside each node. Inside a
// node, pipelined chunks flow along a chain to its first GPU and back. The variant "sharded" leaves each GPU of a node
// with a share of the bytes, so that all of them work across nodes at once: reduce-scatter inside, one ring for each
// share across, all-gather inside, as in Horovod's hierarchical all-reduce.

#include <numeric>

#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

constexpr const char* kSharded = "sharded";

bool nodes_are_alike(const Topology& topology) {
  for (int node = 0; node < topology.nodes(); ++node)
    if (topology.size_of(node) != topology.gpus_per_node) return false;
  return true;
}

/// The reduce-scatters (`reduce`) or all-gathers of several rings of one length at once, each on its part of the
/// buffer.
Stage concurrent_rings(const std::vector<std::vector<int>>& orders, const std::vector<std::int64_t>& offsets,
                       std::int64_t chunk, bool reduce) {
  const auto rounds = static_cast<std::int64_t>(orders.front().size()) - 1;
  return {rounds, [=](std::int64_t round, std::vector<Transfer>& out) {
            for (std::size_t i = 0; i < orders.size(); ++i)
              append_ring_round(orders[i], offsets[i], chunk, reduce, round, out);
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
    *first = Tree::kRoot;
  }
  const Tree chains{parent, 0, whole / chunks};
  std::vector<Stage> stages;
  const bool inside = nodes < topology.ranks;
  if (inside) stages = tree_stages({chains}, chunks, TreeFlow::up);
  if (nodes > 1) {
    stages.push_back(concurrent_rings({heads}, {0}, whole / nodes, true));
    stages.push_back(concurrent_rings({heads}, {0}, whole / nodes, false));
  }
  if (inside) {
    auto down = tree_stages({chains}, chunks, TreeFlow::down);
    stages.insert(stages.end(), down.begin(), down.end());
  }
  return Schedule(topology.ranks, topology.endpoints(), whole, std::move(stages));
}

Schedule plan_sharded(const PlanRequest& request) {
  const Topology& topology = request.topology;
  const int nodes = topology.nodes(), g = topology.gpus_per_node;
  const std::int64_t whole = padded(request.bytes, std::int64_t{g} * nodes), shard = whole / g;
  std::vector<std::vector<int>> inside(static_cast<std::size_t>(nodes)), across(static_cast<std::size_t>(g));
  for (int rank = 0; rank < topology.ranks; ++rank) {
    inside[static_cast<std::size_t>(rank / g)].push_back(rank);
    across[static_cast<std::size_t>(rank % g)].push_back(rank);
  }
  std::vector<std::int64_t> shards;  // where append_ring_round leaves the share of each place
  for (int place = 0; place < g; ++place) shards.push_back((place + 1) % g * shard);
  const std::vector<std::int64_t> from_zero(inside.size(), 0);
  std::vector<Stage> stages;
  if (g > 1) stages.push_back(concurrent_rings(inside, from_zero, shard, true));
  if (nodes > 1) {
    stages.push_back(concurrent_rings(across, shards, shard / nodes, true));
    stages.push_back(concurrent_rings(across, shards, shard / nodes, false));
  }
  if (g > 1) stages.push_back(concurrent_rings(inside, from_zero, shard, false));
  return Schedule(topology.ranks, topology.endpoints(), whole, std::move(stages));
}

std::optional<std::string> refuse_two_level(const PlanRequest& request) {
  if (!request.variant.empty() && request.variant != kSharded)
    return "found \"" + request.variant + "\", expected sharded or nothing";
  if (request.variant == kSharded && !nodes_are_alike(request.topology))
    return "sharded needs as many GPUs in every node";
  return std::nullopt;
}

Schedule plan_two_level(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  return request.variant == kSharded ? plan_sharded(request) : plan_with_chains(request);
}

}  // namespace

extern const AllReduceScheme two_level_scheme{
    .name = "two-level",
    .summary = "reduce inside the node, ring across, broadcast inside",
    .variants = kSharded,
    .needs = "nodes of one size for `sharded`",
    .plan = plan_two_level,
    .refusal = refuse_two_level,
};

}  // namespace ganymede::sim

// For nodes of unlike GPUs: rings inside the nodes, parameter servers across them. The ring of each node reduces and
// scatters. The node's first GPU, its head, then gathers the shares and exchanges the node's sum with the other heads;
// up to 64 heads each serve an equal share of the bytes. The total returns the same way. So a slow node delays the
// exchange across nodes, but no ring of another node.

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxHeadServers = 64;  // as in parameter_server.cpp

struct Nodes {
  std::vector<std::vector<int>> members;  ///< the ranks of each node, its head first
  std::int64_t whole = 0;                 ///< bytes of the padded buffer

  /// Appends one round of the rings of all nodes whose rings still have rounds left.
  void ring_round(std::int64_t round, bool reduce, std::vector<Transfer>& out) const {
    for (const auto& node : members) {
      const auto size = static_cast<std::int64_t>(node.size());
      if (round < size - 1) append_ring_round(node, 0, whole / size, reduce, round, out);
    }
  }

  /// Appends the transfers between each head (`to_head`: towards it) and the members that hold its node's chunks after
  /// a reduce-scatter.
  void gather(bool to_head, std::vector<Transfer>& out) const {
    for (const auto& node : members) {
      const std::size_t size = node.size();
      const std::int64_t chunk = whole / static_cast<std::int64_t>(size);
      for (std::size_t place = 1; place < size; ++place) {
        const auto offset = static_cast<std::int64_t>((place + 1) % size) * chunk;
        out.push_back({to_head ? node[place] : node[0], to_head ? node[0] : node[place], offset, chunk, false});
      }
    }
  }

  /// Appends the transfers of all heads to the heads that serve (`push`), or back.
  void exchange(bool push, std::vector<Transfer>& out) const {
    const std::size_t servers = std::min(members.size(), kMaxHeadServers);
    const std::int64_t shard = whole / static_cast<std::int64_t>(servers);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < servers; ++i) {
      const auto& server = members[i * members.size() / servers];
      for (const auto& client : members)
        if (client[0] != server[0])
          out.push_back({push ? client[0] : server[0], push ? server[0] : client[0], offset, shard, push});
      offset += shard;
    }
  }
};

Schedule plan_mixed(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Topology& topology = request.topology;
  Nodes nodes;
  std::int64_t parts = std::min<std::int64_t>(topology.nodes(), kMaxHeadServers);
  std::set<std::int64_t> sizes = {1};
  for (int node = 0; node < topology.nodes(); ++node) {
    auto& members = nodes.members.emplace_back(natural_order(topology.size_of(node)));
    for (int& member : members) member += topology.first_of(node);
    sizes.insert(topology.size_of(node));
    parts = std::lcm(parts, std::int64_t{topology.size_of(node)});
  }
  nodes.whole = padded(request.bytes, parts);

  std::vector<Stage> stages;
  const auto rings = [&](bool reduce) {  // a stage ends where the ring of some node ends
    for (auto size = sizes.begin(), next = std::next(size); next != sizes.end(); size = next++)
      stages.push_back(
          {*next - *size, [nodes, reduce, first = *size - 1](std::int64_t round, std::vector<Transfer>& out) {
             nodes.ring_round(first + round, reduce, out);
           }});
  };
  const auto once = [&](auto&& work) {
    stages.push_back({1, [nodes, work](std::int64_t /*round*/, std::vector<Transfer>& out) { work(nodes, out); }});
  };
  const bool inside = *sizes.rbegin() > 1, across = nodes.members.size() > 1;
  if (inside) {
    rings(true);
    once([](const Nodes& all, std::vector<Transfer>& out) { all.gather(true, out); });
  }
  if (across) {
    once([](const Nodes& all, std::vector<Transfer>& out) { all.exchange(true, out); });
    once([](const Nodes& all, std::vector<Transfer>& out) { all.exchange(false, out); });
  }
  if (inside) {
    once([](const Nodes& all, std::vector<Transfer>& out) { all.gather(false, out); });
    rings(false);
  }
  return Schedule(topology.ranks, topology.endpoints(), nodes.whole, std::move(stages));
}

}  // namespace

extern const AllReduceScheme mixed_scheme{
    .name = "mixed",
    .summary = "for nodes of unlike GPUs: ring inside, parameter server across",
    .plan = plan_mixed,
};

}  // namespace ganymede::sim

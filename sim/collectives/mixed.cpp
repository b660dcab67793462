// For nodes of unlike GPUs: rings inside the nodes, a parameter server across them. Each node's ring reduces and
// scatters; its first GPU gathers the shares, exchanges the node's sum with the other nodes' first GPUs, up to 64 of
// which serve an equal share of the bytes each, and hands the total back the same way. So a slow node delays the
// exchange across, but no ring of another node.

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kMaxServers = 64;  // as in parameter_server.cpp

struct Nodes {
  std::vector<std::vector<int>> members;  ///< the first of each is its head
  std::int64_t whole = 0;

  /// One round of all nodes whose ring is not through yet.
  void ring_round(std::int64_t round, bool reduce, std::vector<Transfer>& out) const {
    for (const auto& node : members) {
      const auto size = static_cast<std::int64_t>(node.size());
      if (round < size - 1) append_ring_half(node, 0, whole / size, reduce, round, out);
    }
  }

  /// Between a node's head and the places that hold its chunks after a reduce-scatter.
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

  void exchange(bool push, std::vector<Transfer>& out) const {
    const std::size_t servers = std::min(members.size(), kMaxServers);
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

}  // namespace

WhyNot mixed_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  return only(request, {Collective::all_reduce});
}

Schedule plan_mixed(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const Topology& topology = request.topology;
  Nodes nodes;
  std::int64_t parts = std::min<std::int64_t>(topology.nodes(), kMaxServers);
  std::set<std::int64_t> sizes = {1};
  for (int node = 0; node < topology.nodes(); ++node) {
    auto& members = nodes.members.emplace_back(natural_order(topology.size_of(node)));
    for (int& member : members) member += topology.first_of(node);
    sizes.insert(topology.size_of(node));
    parts = std::lcm(parts, std::int64_t{topology.size_of(node)});
  }
  nodes.whole = padded(request.bytes, parts);

  std::vector<Stage> stages;
  const auto rings = [&](bool reduce) {  // a stage ends where a ring does
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

}  // namespace ganymede

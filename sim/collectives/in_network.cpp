// Reduction in the switches: ranks send their bytes up, switches add them in passing, and the total is multicast back
// (NVLink SHARP inside a node; Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", 2016, between
// nodes). A rank sends and receives its bytes once, half of what a ring asks of its link. Pipelined, so that both ways
// are busy.

#include <algorithm>

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {

WhyNot in_network_why_not(const PlanRequest& request) {
  const Topology& topology = request.topology;
  if (auto why = chunks_variant(request)) return why;
  if (!topology.node_switch && !topology.fabric_switch)
    return "needs a switch that reduces: \"reduces\": true in gpu_links or in the fabric";
  if (topology.nodes() > 1 && !topology.fabric_switch)
    return "needs a switch between the nodes that reduces: \"reduces\": true in the fabric";
  return only(request, {Collective::all_reduce});
}

Schedule plan_in_network(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const Topology& topology = request.topology;
  const int root = topology.nodes() > 1 || !topology.node_switch ? topology.endpoints() - 1 : topology.ranks;
  std::vector<int> parent(static_cast<std::size_t>(topology.endpoints()), Tree::kNotInTree);
  for (int node = 0; node < topology.nodes(); ++node) {
    const int above = topology.node_switch ? topology.ranks + node : root;
    const auto first = parent.begin() + topology.first_of(node);
    std::fill(first, first + topology.size_of(node), above);
    if (topology.node_switch) parent[static_cast<std::size_t>(above)] = root;
  }
  parent[static_cast<std::size_t>(root)] = -1;
  const std::int64_t chunks = pipeline_chunks(request), whole = padded(request.bytes, chunks);
  return Schedule(topology.ranks, topology.endpoints(), whole,
                  tree_stages({Tree{parent, 0, whole / chunks}}, chunks, Flow::both));
}

}  // namespace ganymede

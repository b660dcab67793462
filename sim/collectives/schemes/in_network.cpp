// Reduction in the switches: ranks send their bytes up, switches add them in passing, and the total is multicast back
// (NVLink SHARP inside a node; Graham et al., "Scalable Hierarchical Aggregation Protocol (SHARP)", 2016, between
// nodes). A rank sends and receives its bytes once, half of what a ring asks of its link. Chunks are pipelined, so that
// both directions are busy.

#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

std::optional<std::string> refuse_in_network(const PlanRequest& request) {
  const Topology& topology = request.topology;
  if (auto why = refuse_bad_chunks(request)) return why;
  if (!topology.node_switch && !topology.fabric_switch)
    return "needs a switch that reduces: \"reduces\": true in gpu_links or in the fabric";
  if (topology.nodes() > 1 && !topology.fabric_switch)
    return "needs a switch between the nodes that reduces: \"reduces\": true in the fabric";
  return std::nullopt;
}

}  // namespace

extern const AllReduceScheme in_network_scheme{
    .name = "in-network",
    .summary = "switches add in passing and multicast the sum",
    .variants = kChunksVariant,
    .needs = "switches with `\"reduces\": true`",
    .plan = switch_tree,
    .refusal = refuse_in_network,
};

}  // namespace ganymede::sim

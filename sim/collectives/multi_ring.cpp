// Several rings at once, each on its share of the bytes, so that all links work: inside a node on the link-disjoint
// cycles of its mesh, each in both directions (links are full duplex); over nodes one ring for each NIC of a node, that
// crosses nodes at another GPU than the others do.

#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

constexpr int kMaxRings = 64;

/// Over one NIC both ways, unless they would only share it (`in_lanes`): as many bytes cross it as of one ring.
std::vector<std::vector<int>> orders_of(const PlanRequest& request, bool in_lanes) {
  const Topology& topology = request.topology;
  const auto cycles = inside_cycles(topology);
  const bool one_node = topology.nodes() == 1;
  const int usual = one_node              ? 2 * static_cast<int>(cycles.size())
                    : topology.rails == 1 ? (in_lanes ? 1 : 2)
                                          : topology.rails;
  const int count = static_cast<int>(number_variant(request, 1, kMaxRings).value_or(usual));
  std::vector<std::vector<int>> orders;
  for (int i = 0; i < count; ++i) {
    if (one_node || topology.rails == 1) {  // each cycle both ways
      const auto& cycle = cycles[static_cast<std::size_t>(i / 2) % cycles.size()];
      orders.push_back(ring_over_nodes(topology, cycle, 0));
      if (i % 2 == 1) std::reverse(orders.back().begin(), orders.back().end());
    } else {
      orders.push_back(ring_over_nodes(topology, cycles[static_cast<std::size_t>(i) % cycles.size()], i));
    }
  }
  return orders;
}

}  // namespace

WhyNot multi_ring_why_not(const PlanRequest& request) {
  if (!request.variant.empty() && !number_variant(request, 1, kMaxRings))
    return fmt::format("found \"{}\", expected a number of rings from 1 to {}", request.variant, kMaxRings);
  return only(request, {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather});
}

Schedule plan_multi_ring(const PlanRequest& request) { return plan_rings(request, false, 1); }

Schedule plan_rings(const PlanRequest& request, bool in_lanes, std::int64_t passes) {
  if (is_trivial(request)) return nothing(request);
  const int n = request.topology.ranks;
  const auto orders = orders_of(request, in_lanes);
  const auto rings = static_cast<std::int64_t>(orders.size());
  const std::int64_t whole = padded(request.bytes, passes * rings * n), pass = whole / passes;
  const auto half = [&](std::int64_t start, bool reduce) {
    return Stage{n - 1, [orders, in_lanes, start, part = pass / rings, chunk = pass / rings / n, reduce](
                            std::int64_t round, std::vector<Transfer>& out) {
                   for (std::size_t ring = 0; ring < orders.size(); ++ring) {
                     const std::size_t first = out.size();
                     const std::int64_t offset = start + static_cast<std::int64_t>(ring) * part;
                     append_ring_half(orders[ring], offset, chunk, reduce, round, out);
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

// On a star every ring loads each link with one chunk a round, so k rings take the wire time of one ring, and its
// rounds.
Seconds multi_ring_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const auto rings = static_cast<std::int64_t>(orders_of(request, false).size());
  const std::int64_t n = request.topology.ranks;
  const std::int64_t of_all_rings = padded(request.bytes, rings * n) / n;
  const Bytes chunks{static_cast<double>(of_all_rings)};
  const double hops = static_cast<double>(n - 1);
  return 2 * hops * (chunks / star.bandwidth + star.latency) + hops * reduction(chunks, star);
}

}  // namespace ganymede

// Several rings at once, each on its share of the bytes, so that all links work. Inside a node they follow the
// link-disjoint cycles of its mesh, each in both directions (links are full duplex). Over nodes there is one ring for
// each NIC of a node, and each crosses nodes at another GPU.

#include <fmt/format.h>

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

constexpr int kMaxRings = 64;

std::vector<std::vector<int>> multi_ring_orders(const PlanRequest& request) {
  return parallel_ring_orders(request.topology, false,
                              static_cast<int>(parse_number(request.variant, 1, kMaxRings).value_or(0)));
}

std::optional<std::string> refuse_multi_ring(const PlanRequest& request) {
  if (request.variant.empty() || parse_number(request.variant, 1, kMaxRings)) return std::nullopt;
  return fmt::format("found \"{}\", expected a number of rings from 1 to {}", request.variant, kMaxRings);
}

Schedule plan_multi_ring(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  return parallel_rings(request, multi_ring_orders(request), false, 1);
}

// On a star every ring loads each link with one chunk a round, so k rings take the wire time of one ring, and its
// rounds.
Seconds multi_ring_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const auto rings = static_cast<std::int64_t>(multi_ring_orders(request).size());
  const std::int64_t n = request.topology.ranks;
  const std::int64_t share_of_all_rings = padded(request.bytes, rings * n) / n;
  const Bytes chunks{static_cast<double>(share_of_all_rings)};
  const double hops = static_cast<double>(n - 1);
  return 2 * hops * (chunks / star.bandwidth + star.latency) + hops * reduction(chunks, star);
}

}  // namespace

extern const AllReduceScheme multi_ring_scheme{
    .name = "multi-ring",
    .summary = "rings over all links at once: both directions, every NIC",
    .variants = "number of rings",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .plan = plan_multi_ring,
    .refusal = refuse_multi_ring,
    .on_star = multi_ring_on_star,
};

}  // namespace ganymede::sim

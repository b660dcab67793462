// Ring all-reduce: a reduce-scatter, then an all-gather. Each takes n - 1 rounds, in which every rank sends one chunk
// to its right neighbour (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009).

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

Schedule plan_ring(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  return parallel_rings(request, {ring_over_nodes(request.topology, node_cycles(request.topology).front(), 0)}, false,
                        1);
}

// In each of the 2 (n-1) rounds every rank sends one chunk of S/n bytes and receives one. Links are full duplex and
// carry one message in each direction, so all messages of a round take S/(n B) + L. In the first n-1 rounds each rank
// then adds the chunk.
Seconds ring_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const double hops = request.topology.ranks - 1;
  const std::int64_t share = padded(request.bytes, request.topology.ranks) / request.topology.ranks;
  const Bytes chunk{static_cast<double>(share)};
  return 2 * hops * (chunk / star.bandwidth + star.latency) + hops * reduction(chunk, star);
}

}  // namespace

extern const AllReduceScheme ring_scheme{
    .name = "ring",
    .summary = "bandwidth-optimal: 2(n-1) rounds of one n-th of the bytes",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .plan = plan_ring,
    .on_star = ring_on_star,
};

}  // namespace ganymede::sim

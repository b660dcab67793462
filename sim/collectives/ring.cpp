// Ring all-reduce: a reduce-scatter, then an all-gather, each of n - 1 rounds in which every rank sends one chunk to
// its right neighbour (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009).

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {

WhyNot ring_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  return only(request, {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather});
}

Schedule plan_ring(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int n = request.topology.ranks;
  const std::int64_t whole = padded(request.bytes, n);
  const auto order = ring_over_nodes(request.topology, inside_cycles(request.topology).front(), 0);
  const auto half = [&order, n, chunk = whole / n](bool reduce) {
    return Stage{n - 1, [order, chunk, reduce](std::int64_t round, std::vector<Transfer>& out) {
                   append_ring_half(order, 0, chunk, reduce, round, out);
                 }};
  };
  std::vector<Stage> stages;
  if (request.collective != Collective::all_gather) stages.push_back(half(true));
  if (request.collective != Collective::reduce_scatter) stages.push_back(half(false));
  return Schedule(n, request.topology.endpoints(), whole, std::move(stages));
}

// In each of the 2 (n-1) rounds every rank sends one chunk of S/n bytes and receives one. Links are full duplex and
// each carries one message each way, so a round's messages all take S/(n B) + L; in the first n-1 rounds each rank then
// adds the chunk.
Seconds ring_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const double hops = request.topology.ranks - 1;
  const std::int64_t share = padded(request.bytes, request.topology.ranks) / request.topology.ranks;
  const Bytes chunk{static_cast<double>(share)};
  return 2 * hops * (chunk / star.bandwidth + star.latency) + hops * reduction(chunk, star);
}

}  // namespace ganymede

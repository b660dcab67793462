// Reduce to one device: every rank sends all its bytes to rank 0, which adds them up and sends the sum back to every
// rank. TensorFlow's ReductionToOneDevice does the same, and a central parameter server that is also a worker.

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {

WhyNot reduce_to_one_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  return only(request, {Collective::all_reduce, Collective::broadcast});
}

Schedule plan_reduce_to_one(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int ranks = request.topology.ranks;
  const auto stage = [ranks, bytes = request.bytes](bool gather) {
    return Stage{1, [=](std::int64_t /*round*/, std::vector<Transfer>& transfers) {
                   for (int rank = 1; rank < ranks; ++rank)
                     transfers.push_back({gather ? rank : 0, gather ? 0 : rank, 0, bytes, gather});
                 }};
  };
  std::vector<Stage> stages;
  if (request.collective == Collective::all_reduce) stages.push_back(stage(true));
  stages.push_back(stage(false));
  return Schedule(ranks, request.topology.endpoints(), request.bytes, std::move(stages));
}

// n-1 messages of S bytes share rank 0's downlink equally, so all arrive (n-1) S/B after their latency; rank 0 then
// adds n-1 buffers one after the other; n-1 messages share its uplink on the way back.
Seconds reduce_to_one_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const double others = request.topology.ranks - 1;
  const Bytes buffer{static_cast<double>(request.bytes)};
  return 2 * (others * buffer / star.bandwidth + star.latency) + others * reduction(buffer, star);
}

}  // namespace ganymede

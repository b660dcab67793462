// Reduce to one device: every rank sends all its bytes to rank 0, which adds them up and sends the sum back to every
// rank. TensorFlow's ReductionToOneDevice works like this, and so does a central parameter server that is also a
// worker.

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

Schedule plan_reduce_to_one(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
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

Seconds reduce_to_one_on_star(const PlanRequest& request, const Star& star) {
  return is_trivial(request) ? Seconds{0} : reduce_to_one_time(request.topology.ranks, request.bytes, star);
}

}  // namespace

extern const AllReduceScheme reduce_to_one_scheme{
    .name = "reduce-to-one",
    .summary = "all send to rank 0, which adds up and sends the sum to all",
    .collectives = {Collective::all_reduce, Collective::broadcast},
    .plan = plan_reduce_to_one,
    .on_star = reduce_to_one_on_star,
};

}  // namespace ganymede::sim

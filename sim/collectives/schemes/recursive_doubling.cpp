// Recursive doubling: in round k every rank exchanges its whole sum with the rank whose number differs in bit k. It
// takes the fewest rounds and moves the most bytes.

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

Schedule plan_recursive_doubling(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const int n = request.topology.ranks, power = power_of_two_below(n);
  const std::int64_t bytes = request.bytes;
  std::vector<Stage> stages;
  append_surplus_round(n, bytes, true, stages);
  for (int bit = 1; bit < power; bit *= 2) {
    stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& out) {
                        for (int rank = 0; rank < power; ++rank) out.push_back({rank, rank ^ bit, 0, bytes, true});
                      }});
  }
  append_surplus_round(n, bytes, false, stages);
  return Schedule(n, request.topology.endpoints(), bytes, std::move(stages));
}

// log2(p) exchanges of S bytes, each followed by its addition. Surplus ranks need one more message before and one after
// the exchanges; the first of these two is added too.
Seconds recursive_doubling_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const int power = power_of_two_below(request.topology.ranks);
  const double rounds = log2_of(power), surplus = power == request.topology.ranks ? 0 : 1;
  const Bytes bytes{static_cast<double>(request.bytes)};
  return (rounds + 2 * surplus) * (bytes / star.bandwidth + star.latency) + (rounds + surplus) * reduction(bytes, star);
}

}  // namespace

extern const AllReduceScheme recursive_doubling_scheme{
    .name = "recursive-doubling",
    .summary = "fewest rounds, log2(n) exchanges of all bytes",
    .plan = plan_recursive_doubling,
    .on_star = recursive_doubling_on_star,
};

}  // namespace ganymede::sim

// Recursive doubling: in round k every rank exchanges its whole sum with the rank whose number differs in bit k. Fewest
// rounds, most bytes.

#include "sim/collectives/doubling.hpp"
#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {

WhyNot recursive_doubling_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  return only(request, {Collective::all_reduce});
}

Schedule plan_recursive_doubling(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int n = request.topology.ranks, power = power_below(n);
  const std::int64_t bytes = request.bytes;
  std::vector<Stage> stages;
  append_surplus(n, bytes, true, stages);
  for (int bit = 1; bit < power; bit *= 2) {
    stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& out) {
                        for (int rank = 0; rank < power; ++rank) out.push_back({rank, rank ^ bit, 0, bytes, true});
                      }});
  }
  append_surplus(n, bytes, false, stages);
  return Schedule(n, request.topology.endpoints(), bytes, std::move(stages));
}

// log2(p) exchanges of S bytes, each followed by its addition; with surplus ranks one message more at either end, the
// first of which is added too.
Seconds recursive_doubling_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const int power = power_below(request.topology.ranks);
  const double rounds = log2_of(power), surplus = power == request.topology.ranks ? 0 : 1;
  const Bytes bytes{static_cast<double>(request.bytes)};
  return (rounds + 2 * surplus) * (bytes / star.bandwidth + star.latency) + (rounds + surplus) * reduction(bytes, star);
}

}  // namespace ganymede

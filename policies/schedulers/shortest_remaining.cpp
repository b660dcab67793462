#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

double rank_by_rest(const ClusterView& view, std::span<const double> /*settings*/, const JobView& job) {
  return remaining_s(view, job);
}

JobSchedule decide_shortest(const SchedulerCall& call) {
  const auto rank = [&](const JobView& job) { return remaining_s(call.view, job); };
  return {.run = grant_in_order(call.view, rank, fastest_pool)};
}

}  // namespace

Scheduler shortest_remaining_scheduler() {
  return {.name = "shortest-remaining",
          .summary = "the job that would end first runs first; preempts; needs true run times",
          .source =
              "Schrage, \"A proof of the optimality of the shortest remaining processing time discipline\", "
              "Operations Research 16(3), 1968",
          .rank = rank_by_rest,
          .decide = decide_shortest};
}

}  // namespace ganymede::policies

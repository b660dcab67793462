#include <algorithm>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

JobSchedule decide_shortest(const SchedulerCall& call) {
  std::vector<std::pair<double, const JobView*>> by_time;
  for (const JobView* job : all_jobs(call.view)) by_time.emplace_back(remaining_s(call.view, *job), job);
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const JobView*> order;
  for (const auto& [seconds, job] : by_time) order.push_back(job);
  return {.run = grant_in_order(call.view, order, fastest_pool)};
}

}  // namespace

Scheduler shortest_remaining_scheduler() {
  return {.name = "shortest-remaining",
          .summary = "the job that would end first runs first; preempts; needs true run times",
          .source =
              "Schrage, \"A proof of the optimality of the shortest remaining processing time discipline\", "
              "Operations Research 16(3), 1968",
          .decide = decide_shortest};
}

}  // namespace ganymede::policies

#include <algorithm>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kTiresiasSettings[] = {
    {"queue_gpu_s", 12'000, 1, 1e12, "GPU-seconds after which a job falls into the second queue"},
    {"round_s", 360, 1, 1e6, "seconds between two looks at the attained service"}};

JobSchedule decide_tiresias(const SchedulerCall& call) {
  const double border = call.settings[0];
  std::vector<const JobView*> order = all_jobs(call.view);
  // Within a queue jobs are served in the order of arrival, which is that of the view.
  std::stable_partition(order.begin(), order.end(), [&](const JobView* job) { return job->attained_gpu_s < border; });
  JobSchedule schedule{.run = grant_in_order(call.view, order, emptiest_pool)};
  // Only a job that waits can gain by another one's fall.
  if (schedule.run.size() < order.size()) schedule.again_s = call.view.now_s + call.settings[1];
  return schedule;
}

}  // namespace

Scheduler tiresias_scheduler() {
  return {.name = "tiresias",
          .summary = "least attained GPU time first, in two queues; preempts; needs no run times",
          .source =
              "Gu et al., \"Tiresias: a GPU cluster manager for distributed deep learning\", NSDI 2019, "
              "discretized two-dimensional least attained service",
          .settings = kTiresiasSettings,
          .decide = decide_tiresias};
}

}  // namespace ganymede::policies

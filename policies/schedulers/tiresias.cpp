#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kTiresiasSettings[] = {
    {"queue_gpu_s", 12'000, 1, 1e12, "GPU-seconds after which a job falls into the second queue"},
    {"round_s", 360, 1, 1e6, "seconds between two looks at the attained service"}};

/// The job's queue: 0 or 1. Within a queue jobs are served in the order of arrival.
double queue_of(const ClusterView& /*view*/, std::span<const double> settings, const JobView& job) {
  return job.attained_gpu_s < settings[0] ? 0 : 1;
}

JobSchedule decide_tiresias(const SchedulerCall& call) {
  const ClusterView& view = call.view;
  const auto rank = [&](const JobView& job) { return queue_of(view, call.settings, job); };
  JobSchedule schedule{.run = grant_in_order(view, rank, emptiest_pool)};
  // Only a job that waits can gain by another one's fall.
  if (schedule.run.size() < view.running.size() + view.waiting->size())
    schedule.again_s = view.now_s + call.settings[1];
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
          .rank = queue_of,
          .decide = decide_tiresias};
}

}  // namespace ganymede::policies

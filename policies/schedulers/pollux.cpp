#include <algorithm>
#include <cmath>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kPolluxSettings[] = {
    {"round_s", 60, 1, 1e6, "seconds between two allocations"},
    {"gain", 1.1, 1, 100, "a running job is resized only if it becomes so many times as fast"}};

/// The next larger number of GPUs that is worth a try: twice as many within a node, then whole nodes.
int next_size(int gpus, int gpus_per_node) {
  if (gpus < gpus_per_node) return std::min(2 * gpus, gpus_per_node);
  return (gpus / gpus_per_node + 1) * gpus_per_node;
}

/// The job's goodput on so many GPUs, relative to its least number of GPUs in that pool.
double speedup(const ClusterView& view, const JobView& job, std::size_t pool, int gpus) {
  return view.alone_s(job, pool, job.least) / view.alone_s(job, pool, gpus);
}

/// Gives the GPUs that are left, step by step, to the job whose mean of inverse speed-ups falls most for each GPU. That
/// mean is the fitness of Pollux with its exponent p = -1; Pollux searches by a genetic algorithm.
void grow(const ClusterView& view, std::vector<std::pair<const JobView*, Grant>>& granted, FreeGpus& free) {
  for (;;) {
    Grant* best = nullptr;
    int best_size = 0;
    double best_gain = 0;
    for (auto& [job, grant] : granted) {
      const int size = std::min(next_size(grant.gpus, view.pools[grant.pool].gpus_per_node), job->most);
      const int more = size - grant.gpus;
      if (more <= 0 || more > free.free(grant.pool)) continue;
      const double gain =
          (1 / speedup(view, *job, grant.pool, grant.gpus) - 1 / speedup(view, *job, grant.pool, size)) / more;
      if (!(gain > best_gain)) continue;
      best = &grant;
      best_size = size;
      best_gain = gain;
    }
    if (best == nullptr) return;
    free.take(best->pool, best_size - best->gpus);
    best->gpus = best_size;
  }
}

/// A job whose new size is hardly better keeps its old one if there is room, because a change costs a restart.
void keep_sizes(const ClusterView& view, double gain, std::vector<std::pair<const JobView*, Grant>>& granted,
                FreeGpus& free) {
  for (auto& [job, grant] : granted) {
    const bool same_pool = job->pool == static_cast<int>(grant.pool);
    if (!same_pool || job->held == grant.gpus || job->held - grant.gpus > free.free(grant.pool)) continue;
    const double now_s = view.alone_s(*job, grant.pool, job->held), then_s = view.alone_s(*job, grant.pool, grant.gpus);
    if (now_s > gain * then_s) continue;
    free.take(grant.pool, job->held - grant.gpus);
    grant.gpus = job->held;
  }
}

JobSchedule decide_pollux(const SchedulerCall& call) {
  const ClusterView& view = call.view;
  FreeGpus free(view);
  std::vector<std::pair<const JobView*, Grant>> granted;
  const auto admit = [&](const JobView* job) {
    const bool stays = job->pool >= 0 && free.free(static_cast<std::size_t>(job->pool)) >= job->least;
    const int pool = stays ? job->pool : fastest_pool(view, *job, job->least, free);
    if (pool < 0) return;
    free.take(static_cast<std::size_t>(pool), job->least);
    granted.emplace_back(job, Grant{job->job, static_cast<std::size_t>(pool), job->least});
  };
  for (const JobView* job : view.running) admit(job);
  WaitingWalk walk(*view.waiting);
  while (const JobView* job = walk.next([&](const JobKind& kind) { return kind.least <= free.most(); })) admit(job);
  const bool all_run = granted.size() == view.running.size() + view.waiting->size();
  grow(view, granted, free);
  keep_sizes(view, call.settings[1], granted, free);
  JobSchedule schedule;
  for (const auto& [job, grant] : granted) schedule.run.push_back(grant);
  if (!all_run) schedule.again_s = view.now_s + call.settings[0];
  return schedule;
}

}  // namespace

Scheduler pollux_scheduler() {
  return {.name = "pollux",
          .summary = "elastic: GPUs go where they raise goodput most, within each job's range; resizes",
          .source =
              "Qiao et al., \"Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning\", "
              "OSDI 2021; allocation greedy instead of genetic",
          .settings = kPolluxSettings,
          .decide = decide_pollux};
}

}  // namespace ganymede::policies

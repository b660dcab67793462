#include <algorithm>

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

/// A job and what it is granted.
struct Granted {
  const JobView* job;
  Grant grant;
  bool settled = false;  ///< it keeps its old size
};

/// The next larger size at which the job is faster, if so many GPUs are to be had; 0: there is none. More GPUs may be
/// slower until another whole node is filled, or until the work divides well again.
int next_faster_size(const ClusterView& view, const Granted& granted, int free) {
  const auto& [job, grant, settled] = granted;
  const double now_s = view.alone_s(*job, grant.pool, grant.gpus);
  const int most = std::min(job->most, grant.gpus + free);
  for (int size = grant.gpus; size < most;) {
    size = std::min(next_size(size, view.pools[grant.pool].gpus_per_node), most);
    if (view.alone_s(*job, grant.pool, size) < now_s) return size;
  }
  return 0;
}

/// Gives the GPUs that are left, step by step, to the job whose mean of inverse speed-ups falls most for each GPU. That
/// mean is the fitness of Pollux with its exponent p = -1; Pollux searches by a genetic algorithm. Every step is a best
/// response of one job to the grants of the others, and the last leaves none that would be faster with what is free.
void grow(const ClusterView& view, std::vector<Granted>& granted, FreeGpus& free) {
  for (;;) {
    Granted* best = nullptr;
    int best_size = 0;
    double best_gain = 0;
    for (Granted& one : granted) {
      const int size = one.settled ? 0 : next_faster_size(view, one, free.free(one.grant.pool));
      if (size == 0) continue;
      const double gain = (1 / speedup(view, *one.job, one.grant.pool, one.grant.gpus) -
                           1 / speedup(view, *one.job, one.grant.pool, size)) /
                          (size - one.grant.gpus);
      if (!(gain > best_gain)) continue;
      best = &one;
      best_size = size;
      best_gain = gain;
    }
    if (best == nullptr) return;
    free.take(best->grant.pool, best_size - best->grant.gpus);
    best->grant.gpus = best_size;
  }
}

/// Moves the first job that does not run yet and would be faster on what is free in another pool; returns false if
/// there is none.
bool move_new(const ClusterView& view, std::vector<Granted>& granted, FreeGpus& free) {
  for (auto& [job, grant, settled] : granted) {
    if (job->pool >= 0) continue;
    Grant best = grant;
    for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
      if (pool == grant.pool) continue;
      const int most = std::min(job->most, free.free(pool));
      for (int size = job->least; size <= most; size = next_size(size, view.pools[pool].gpus_per_node))
        if (view.alone_s(*job, pool, size) < view.alone_s(*job, best.pool, best.gpus)) best = {job->job, pool, size};
    }
    if (best.pool == grant.pool) continue;
    free.give(grant.pool, grant.gpus);
    free.take(best.pool, best.gpus);
    grant = best;
    return true;
  }
  return false;
}

/// A job whose new size is hardly better keeps its old one if there is room, because a change costs a restart. Returns
/// true if one does.
bool keep_sizes(const ClusterView& view, double gain, std::vector<Granted>& granted, FreeGpus& free) {
  bool kept = false;
  for (auto& [job, grant, settled] : granted) {
    const bool same_pool = job->pool == static_cast<int>(grant.pool);
    if (settled || !same_pool || job->held == grant.gpus || job->held - grant.gpus > free.free(grant.pool)) continue;
    const double now_s = view.alone_s(*job, grant.pool, job->held), then_s = view.alone_s(*job, grant.pool, grant.gpus);
    if (now_s > gain * then_s) continue;
    free.take(grant.pool, job->held - grant.gpus);
    grant.gpus = job->held;
    settled = kept = true;
  }
  return kept;
}

JobSchedule decide_pollux(const SchedulerCall& call) {
  const ClusterView& view = call.view;
  FreeGpus free(view);
  std::vector<Granted> granted;
  const auto admit = [&](const JobView* job) {
    const bool stays = job->pool >= 0 && free.free(static_cast<std::size_t>(job->pool)) >= job->least;
    const int pool = stays ? job->pool : fastest_pool(view, *job, job->least, free);
    if (pool < 0) return;
    free.take(static_cast<std::size_t>(pool), job->least);
    granted.push_back({job, {job->job, static_cast<std::size_t>(pool), job->least}});
  };
  for (const JobView* job : view.running) admit(job);
  WaitingWalk walk(*view.waiting);
  while (const JobView* job = walk.next([&](const JobKind& kind) { return kind.least <= free.most(); })) admit(job);
  const bool all_run = granted.size() == view.running.size() + view.waiting->size();
  // Others may use what a job leaves that moves or keeps its size.
  do grow(view, granted, free);
  while (move_new(view, granted, free) || keep_sizes(view, call.settings[1], granted, free));
  JobSchedule schedule;
  for (const Granted& one : granted) schedule.run.push_back(one.grant);
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

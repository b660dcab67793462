// What a scheduler sees of the cluster, and what becomes of its decision.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/errors.hpp"
#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::sim {

void ClusterSimulation::fill_views() {
  std::map<std::size_t, RunningJob*> running_of;
  for (RunningJob& running : running_) {
    account(running);
    running_of[running.job] = &running;
  }
  views_.clear();
  for (const std::size_t job : active_) {
    const ClusterJob& of = cluster_.jobs[job];
    const JobState& state = states_[job];
    policies::JobView view;
    view.job = job;
    view.name = of.name;
    view.arrival_s = record_.jobs[job].ready_s;
    view.gpus = of.gpus;
    view.least = of.least;
    view.most = of.most;
    view.priority = of.priority;
    view.deadline_s = of.deadline_s;
    view.owner = of.owner;
    view.since_s = state.since_s;
    view.attained_gpu_s = state.attained_gpu_s;
    view.left = record_.jobs[job].work > 0 ? state.left / record_.jobs[job].work : 0;
    if (const auto found = running_of.find(job); found != running_of.end() && !found->second->guest) {
      view.pool = static_cast<int>(found->second->pool);
      view.held = static_cast<int>(found->second->slots.size());
    }
    views_.push_back(view);
  }
}

policies::JobSchedule ClusterSimulation::ask() {
  fill_views();
  policies::ClusterView view;
  view.now_s = now_;
  view.pools = pool_states_;
  view.owners = owners_;
  view.jobs = views_;
  view.alone_s = [this](const policies::JobView& job, std::size_t pool, int gpus) {
    return speeds_.alone_s(cluster_.jobs[job.job], pool, gpus);
  };
  ++record_.decisions;
  policies::JobSchedule schedule = external_
                                       ? external_->decide(view)
                                       : cluster_.scheduler.row->decide({view, cluster_.scheduler.settings, memory_});
  check(schedule);
  return schedule;
}

/// Throws Failure for a schedule that the cluster cannot follow.
void ClusterSimulation::check(const policies::JobSchedule& schedule) const {
  std::vector<int> granted(cluster_.pools.size(), 0);
  std::vector<std::size_t> jobs;
  for (const policies::Grant& grant : schedule.run) {
    granted[grant.pool] += grant.gpus;
    jobs.push_back(grant.job);
  }
  std::sort(jobs.begin(), jobs.end());
  const auto twice = std::adjacent_find(jobs.begin(), jobs.end());
  const auto fail = [&](const std::string& what) {
    throw Failure(
        fmt::format("at {}: the scheduler {} {}", to_string(Seconds{now_}), cluster_.scheduler.row->name, what));
  };
  if (twice != jobs.end()) fail(fmt::format("lists the job {} twice", cluster_.jobs[*twice].name));
  for (std::size_t pool = 0; pool < granted.size(); ++pool)
    if (granted[pool] > pool_states_[pool].total())
      fail(fmt::format("grants {} GPUs of {}, which has {}", granted[pool], pool_states_[pool].name,
                       pool_states_[pool].total()));
}

void ClusterSimulation::apply(const policies::JobSchedule& schedule) {
  std::map<std::size_t, const policies::Grant*> grants;
  for (const policies::Grant& grant : schedule.run) grants[grant.job] = &grant;
  const auto goes_on = [&](const RunningJob& running) {
    const auto found = grants.find(running.job);
    if (running.guest) return found == grants.end();  // it stays beside its host until it is granted GPUs of its own
    return found != grants.end() && found->second->pool == running.pool &&
           found->second->gpus == static_cast<int>(running.slots.size());
  };
  // A guest leaves before its host: it would otherwise take over a GPU that the scheduler has given to another job.
  for (const bool guests : {true, false})
    for (std::size_t i = 0; i < running_.size();) {
      const RunningJob& running = running_[i];
      const bool host_goes = running.guest && running.partner && !goes_on(*find_running(*running.partner));
      if (running.guest == guests && (!goes_on(running) || host_goes))
        stop(i, false);
      else
        ++i;
    }
  for (const policies::Grant& grant : schedule.run)
    if (find_running(grant.job) == nullptr) start(grant);
}

}  // namespace ganymede::sim

// What a scheduler sees of the cluster, and what becomes of its decision.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::sim {

/// The view as the scheduler finds it for its whole life; ask() says what changes.
void ClusterSimulation::begin_view() {
  const policies::Scheduler& row = *cluster_.scheduler.row;
  waiting_ = policies::WaitingJobs(row.kinds);
  view_.pools = pool_states_;
  view_.owners = owners_;
  view_.waiting = &waiting_;
  view_.alone_s = [this](const policies::JobView& job, std::size_t pool, int gpus) {
    return speeds_.alone_s(cluster_.jobs[job.job], pool, gpus);
  };
  views_.resize(cluster_.jobs.size());
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const ClusterJob& of = cluster_.jobs[i];
    policies::JobView& view = views_[i];
    view.job = i;
    view.name = of.name;
    view.gpus = of.gpus;
    view.least = of.least;
    view.most = of.most;
    view.priority = of.priority;
    view.deadline_s = of.deadline_s;
    view.owner = of.owner;
  }
}

/// Writes into the job's view what it has had and has left.
void ClusterSimulation::refresh_view(std::size_t job) {
  const JobState& state = states_[job];
  policies::JobView& view = views_[job];
  view.arrival_s = record_.jobs[job].ready_s;
  view.since_s = state.since_s;
  view.attained_gpu_s = state.attained_gpu_s;
  view.left = record_.jobs[job].work > 0 ? state.left / record_.jobs[job].work : 0;
}

/// Puts the job where it belongs among those that wait.
void ClusterSimulation::enqueue(std::size_t job) {
  dequeue(job);
  refresh_view(job);
  policies::JobView& view = views_[job];
  view.pool = -1;
  view.held = 0;
  const policies::Scheduler& row = *cluster_.scheduler.row;
  waiting_.add(view, row.rank ? row.rank(view_, cluster_.scheduler.settings, view) : 0);
  states_[job].queued = true;
}

void ClusterSimulation::dequeue(std::size_t job) {
  if (std::exchange(states_[job].queued, false)) waiting_.remove(views_[job]);
}

/// The views of the jobs that hold GPUs of their own, by number. A guest of another job's GPU counts as waiting.
std::vector<const policies::JobView*> ClusterSimulation::refresh_running() {
  std::vector<const policies::JobView*> out;
  for (RunningJob& running : running_) {
    account(running);
    if (running.guest) {
      enqueue(running.job);
      continue;
    }
    refresh_view(running.job);
    policies::JobView& view = views_[running.job];
    view.pool = static_cast<int>(running.pool);
    view.held = static_cast<int>(running.slots.size());
    out.push_back(&view);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->job < b->job; });
  return out;
}

policies::JobSchedule ClusterSimulation::ask() {
  const std::vector<const policies::JobView*> running = refresh_running();
  view_.now_s = now_;
  view_.running = running;
  ++record_.decisions;
  policies::JobSchedule schedule = external_
                                       ? external_->decide(view_)
                                       : cluster_.scheduler.row->decide({view_, cluster_.scheduler.settings, memory_});
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
    if (!states_[grant.job].running) start(grant);
}

}  // namespace ganymede::sim

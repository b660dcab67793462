// Shows a scheduler the cluster, and carries its decision out; says which two jobs share a GPU.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/cluster/cluster_state.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMostPackable = 64;  // waiting jobs that are tried as a second job of a GPU

policies::ClusterView view_of(const ClusterContext& context, const ClusterState& state) {
  policies::ClusterView view;
  view.now_s = to_seconds(state.now).si;
  view.pools = state.pools;
  view.owners = state.owners;
  view.waiting = &state.waiting;
  view.alone_s = [&context](const policies::JobView& job, std::size_t pool, int gpus) {
    return context.speeds.alone_s(context.cluster.jobs[job.job], pool, gpus);
  };
  return view;
}

/// Writes into the job's view what it has had and has left, of which it has done `done`.
void refresh_view(ClusterState& state, std::size_t job, double done) {
  policies::JobView& view = state.views[job];
  const JobRecord& record = state.record.jobs[job];
  view.arrival_s = record.ready_s;
  view.since_s = to_seconds(state.jobs[job].since).si;
  view.attained_gpu_s = state.jobs[job].attained_gpu_s;
  view.left = record.work > 0 ? std::max(0.0, record.work - done) / record.work : 0;
}

/// Puts a job of which so much is done where it belongs among those that wait.
void enqueue(const ClusterContext& context, ClusterState& state, std::size_t job, double done) {
  dequeue(state, job);
  refresh_view(state, job, done);
  policies::JobView& view = state.views[job];
  view.pool = -1;
  view.held = 0;
  const ClusterScheduler& scheduler = context.cluster.scheduler;
  state.waiting.add(view,
                    scheduler.row->rank ? scheduler.row->rank(view_of(context, state), scheduler.settings, view) : 0);
  state.jobs[job].queued = true;
}

/// The views of the jobs that hold GPUs of their own, by number. A guest of another job's GPU counts as waiting.
std::vector<const policies::JobView*> refresh_running(const ClusterContext& context, ClusterState& state) {
  std::vector<const policies::JobView*> out;
  for (RunningJob& running : state.running) {
    count_held(context, state, running);
    const double done = work_done(context, state, running);
    if (running.guest) {
      enqueue(context, state, running.job, done);
      continue;
    }
    refresh_view(state, running.job, done);
    policies::JobView& view = state.views[running.job];
    view.pool = static_cast<int>(running.pool);
    view.held = static_cast<int>(running.slots.size());
    out.push_back(&view);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->job < b->job; });
  return out;
}

/// Throws Failure for a schedule that the cluster cannot follow.
void check(const ClusterContext& context, const ClusterState& state, const policies::JobSchedule& schedule) {
  const Cluster& cluster = context.cluster;
  std::vector<int> granted(cluster.pools.size(), 0);
  std::vector<std::size_t> jobs;
  for (const policies::Grant& grant : schedule.run) {
    granted[grant.pool] += grant.gpus;
    jobs.push_back(grant.job);
  }
  std::sort(jobs.begin(), jobs.end());
  const auto twice = std::adjacent_find(jobs.begin(), jobs.end());
  const auto fail = [&](const std::string& what) {
    throw Failure(
        fmt::format("at {}: the scheduler {} {}", to_string(to_seconds(state.now)), cluster.scheduler.row->name, what));
  };
  if (twice != jobs.end()) fail(fmt::format("lists the job {} twice", cluster.jobs[*twice].name));
  for (std::size_t pool = 0; pool < granted.size(); ++pool)
    if (granted[pool] > state.pools[pool].total())
      fail(fmt::format("grants {} GPUs of {}, which has {}", granted[pool], state.pools[pool].name,
                       state.pools[pool].total()));
}

}  // namespace

void enqueue(const ClusterContext& context, ClusterState& state, std::size_t job) {
  enqueue(context, state, job, state.jobs[job].training.done(state.now));
}

void dequeue(ClusterState& state, std::size_t job) {
  if (std::exchange(state.jobs[job].queued, false)) state.waiting.remove(state.views[job]);
}

policies::JobSchedule decide(const ClusterContext& context, ClusterState& state) {
  const std::vector<const policies::JobView*> running = refresh_running(context, state);
  policies::ClusterView view = view_of(context, state);
  view.running = running;
  ++state.record.decisions;
  const ClusterScheduler& scheduler = context.cluster.scheduler;
  policies::JobSchedule schedule =
      state.external ? state.external->decide(view) : scheduler.row->decide({view, scheduler.settings, state.memory});
  check(context, state, schedule);
  return schedule;
}

void follow(const ClusterContext& context, ClusterState& state, const policies::JobSchedule& schedule) {
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
    for (std::size_t i = 0; i < state.running.size();) {
      const RunningJob& running = state.running[i];
      const bool host_goes = running.guest && running.partner && !goes_on(*find_running(state, *running.partner));
      if (running.guest == guests && (!goes_on(running) || host_goes))
        stop_job(context, state, i, false);
      else
        ++i;
    }
  for (const policies::Grant& grant : schedule.run)
    if (!state.jobs[grant.job].running) start_job(context, state, grant);
}

void pack(const ClusterContext& context, ClusterState& state) {
  const Cluster& cluster = context.cluster;
  std::size_t tried = 0;
  for (const std::size_t job : state.active) {
    const MeasuredModel model = model_of(cluster, job);
    if (cluster.jobs[job].gpus != 1 || model.first.empty() || state.jobs[job].running) continue;
    if (++tried > kMostPackable) break;
    double best = cluster.packing;
    bool estimated = false;
    RunningJob* host = nullptr;
    for (RunningJob& running : state.running) {
      const MeasuredModel other = model_of(cluster, running.job);
      if (running.partner || running.slots.size() != 1 || other.first.empty()) continue;
      const auto both = cluster.throughputs->together(cluster.pools[running.pool].gpu().family, other, model);
      if (!both || both->first + both->second < best || (host != nullptr && both->first + both->second == best))
        continue;
      best = both->first + both->second;
      host = &running;
      estimated = both->estimated;
    }
    if (host != nullptr) pair_up(context, state, *host, job, estimated);
  }
}

void warn_of_packing(const ClusterContext& context) {
  const Cluster& cluster = context.cluster;
  for (std::size_t job = 0; job < cluster.jobs.size(); ++job) {
    if (cluster.jobs[job].gpus != 1) continue;
    const std::string model = model_of(cluster, job).first;
    if (model.empty()) {
      context.speeds.warn(fmt::format("jobs of the workload \"{}\" share no GPU: packing is for measured models",
                                      cluster.workloads[cluster.jobs[job].workload].name));
      continue;
    }
    for (const ScenarioPool& pool : cluster.pools)
      if (!cluster.throughputs->is_measured_beside(pool.gpu().family, model))
        context.speeds.warn(fmt::format(
            "{} was not measured beside other jobs on a {}: its speeds on a shared one are estimated from how busy the "
            "other keeps it, and two such jobs share none",
            model, pool.gpu().family));
  }
}

}  // namespace ganymede::sim

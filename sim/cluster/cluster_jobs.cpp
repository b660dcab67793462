// Jobs arrive, get GPUs, lose them and end.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/cluster/cluster_state.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {
namespace {

void make_ready(const ClusterContext& context, ClusterState& state, std::size_t index) {
  const Cluster& cluster = context.cluster;
  const ClusterJob& job = cluster.jobs[index];
  if (state.jobs[index].ready || arrival_of(job) > state.now) return;
  state.jobs[index].ready = true;
  state.jobs[index].since = state.now;
  state.idle_decisions = 0;
  JobRecord& record = state.record.jobs[index];
  record.ready_s = to_seconds(state.now).si;
  record.work = context.speeds.work_of(job);
  record.alone_s = std::numeric_limits<double>::infinity();
  for (std::size_t pool = 0; pool < cluster.pools.size(); ++pool)
    record.alone_s = std::min(record.alone_s, context.speeds.alone_s(job, pool, job.gpus));
  if (record.alone_s == std::numeric_limits<double>::infinity())
    throw Infeasible(fmt::format("{}: the job {} can run on {} GPUs of no pool: {} is not known there", cluster.file,
                                 job.name, job.gpus, cluster.workloads[job.workload].name));
  record.alone_s = to_seconds(clock_at(record.alone_s)).si;
  state.active.insert(index);
  state.active_gpus += job.gpus;
  enqueue(context, state, index);
}

void open_stay(ClusterState& state, const RunningJob& running) {
  const double now_s = to_seconds(state.now).si;
  state.record.jobs[running.job].stays.push_back(
      {now_s, now_s, running.pool, running.slots, running.partner.has_value(), running.estimated});
}

void close_stay(ClusterState& state, const RunningJob& running) {
  auto& stays = state.record.jobs[running.job].stays;
  stays.back().to_s = to_seconds(state.now).si;
  if (stays.back().from_s == stays.back().to_s) stays.pop_back();
}

/// Counts what the job has done and held; its stay ends.
void leave_stay(const ClusterContext& context, ClusterState& state, RunningJob& running) {
  end_segment(context, state, running);
  count_held(context, state, running);
  close_stay(state, running);
}

/// The job runs on its GPUs from now on; one that ran before restarts first.
void enter(const ClusterContext& context, ClusterState& state, RunningJob running) {
  const ClusterJob& job = context.cluster.jobs[running.job];
  JobRecord& record = state.record.jobs[running.job];
  running.begins = running.held_until = state.now;
  running.steps_before = state.jobs[running.job].training.steps();
  if (record.start_s >= 0) {
    const double restart_s = context.speeds.save_s(job) + context.speeds.restore_s(job);
    running.begins += to_nanoseconds(Seconds{restart_s});
    record.restart_s += restart_s;
  } else {
    record.start_s = to_seconds(state.now).si;
  }
  state.jobs[running.job].running = true;
  open_stay(state, running);
  state.running.push_back(std::move(running));
}

void finish_job(const ClusterContext& context, ClusterState& state, std::size_t index) {
  const std::size_t job = state.running[index].job;
  stop_job(context, state, index, true);
  dequeue(state, job);
  state.jobs[job].done = true;
  state.record.jobs[job].end_s = to_seconds(state.now).si;
  state.active.erase(job);
  state.active_gpus -= context.cluster.jobs[job].gpus;
  state.idle_decisions = 0;
  for (const std::size_t next : context.unlocks[job])
    if (--state.jobs[next].blocked_by == 0) make_ready(context, state, next);
}

}  // namespace

void arrive_due(const ClusterContext& context, ClusterState& state) {
  const std::vector<ClusterJob>& jobs = context.cluster.jobs;
  for (; state.next_arrival < jobs.size() && arrival_of(jobs[state.next_arrival]) <= state.now; ++state.next_arrival)
    if (state.jobs[state.next_arrival].blocked_by == 0) make_ready(context, state, state.next_arrival);
}

void finish_due(const ClusterContext& context, ClusterState& state) {
  for (std::size_t i = 0; i < state.running.size();)
    if (state.running[i].ends <= state.now)
      finish_job(context, state, i);
    else
      ++i;
}

void count_held(const ClusterContext& context, ClusterState& state, RunningJob& running) {
  const double gpu_ns = static_cast<double>(state.now - running.held_until) * running.gpus();
  const double held = gpu_ns / kNanosecondsPerSecond;
  running.held_until = state.now;
  state.jobs[running.job].attained_gpu_s += held;
  state.owners[context.cluster.jobs[running.job].owner].used_gpu_s += held;
  state.record.jobs[running.job].held_gpu_s += held;
  state.record.held_gpu_s[running.pool] += held;
}

void start_job(const ClusterContext& context, ClusterState& state, const policies::Grant& grant) {
  const ClusterJob& job = context.cluster.jobs[grant.job];
  RunningJob running;
  running.job = grant.job;
  running.pool = grant.pool;
  running.slots = state.nodes[grant.pool].take(*context.cluster.placement, grant.gpus);
  running.speed = context.speeds.speed(job, grant.pool, shape_of(running.slots));
  if (running.speed == nullptr)
    throw Infeasible(fmt::format("{}: the job {} cannot run on {} GPUs of {} as they were placed", context.cluster.file,
                                 job.name, grant.gpus, state.pools[grant.pool].name));
  running.efficiency = context.speeds.efficiency(job, grant.gpus);
  running.reads = running.speed->reading.step_s > 0;
  running.talk = talk_of(context, running);
  state.jobs[grant.job].since = state.now;
  dequeue(state, grant.job);
  enter(context, state, std::move(running));
}

void stop_job(const ClusterContext& context, ClusterState& state, std::size_t index, bool done) {
  leave_stay(context, state, state.running[index]);
  const RunningJob gone = state.running[index];
  if (context.runner != nullptr) context.runner->stop(gone.job);
  state.running.erase(state.running.begin() + static_cast<std::ptrdiff_t>(index));
  JobState& job = state.jobs[gone.job];
  JobRecord& record = state.record.jobs[gone.job];
  job.since = state.now;
  job.running = false;
  // A restart that is cut short counts only as far as it came.
  record.restart_s -= to_seconds(std::max<Nanoseconds>(0, gone.begins - state.now)).si;
  if (!done) ++record.preemptions;
  if (!done || gone.speed->writes_checkpoints()) job.training.save();
  record.checkpoints = job.training.account().totals.checkpoints;
  if (!done) enqueue(context, state, gone.job);
  if (!gone.partner) {
    state.nodes[gone.pool].give(gone.slots);
    return;
  }
  // The other job keeps the GPU, which it does not share any more.
  RunningJob& other = *find_running(state, *gone.partner);
  leave_stay(context, state, other);
  other.partner.reset();
  other.guest = other.estimated = false;
  dequeue(state, other.job);
  open_stay(state, other);
}

void pair_up(const ClusterContext& context, ClusterState& state, RunningJob& host, std::size_t guest, bool estimated) {
  leave_stay(context, state, host);
  RunningJob running;
  running.job = guest;
  running.pool = host.pool;
  running.slots = host.slots;
  running.speed = context.speeds.speed(context.cluster.jobs[guest], host.pool, shape_of(host.slots));
  running.partner = host.job;
  running.guest = true;
  host.partner = guest;
  host.estimated = running.estimated = estimated;
  open_stay(state, host);
  enter(context, state, std::move(running));
}

void note_queue(const ClusterContext& context, ClusterState& state) {
  QueuePoint point{to_seconds(state.now).si, 0, static_cast<int>(state.running.size()),
                   static_cast<int>(state.active_gpus), 0};
  for (std::size_t pool = 0; pool < state.nodes.size(); ++pool)
    point.held_gpus += state.pools[pool].total() - state.nodes[pool].free();
  point.waiting = static_cast<int>(state.active.size() - state.running.size());
  for (const RunningJob& running : state.running) point.waiting_gpus -= context.cluster.jobs[running.job].gpus;
  std::vector<QueuePoint>& queue = state.record.queue;
  if (!queue.empty()) {
    const QueuePoint& last = queue.back();
    if (last.waiting == point.waiting && last.running == point.running && last.waiting_gpus == point.waiting_gpus &&
        last.held_gpus == point.held_gpus)
      return;
    if (last.at_s == point.at_s) queue.pop_back();
  }
  queue.push_back(point);
}

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

#include "sim/cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/cluster/job_stores.hpp"
#include "sim/cluster/simgrid_jobs.hpp"

namespace ganymede::sim {
namespace {

constexpr double kLongestSimulated = 4e9;  // seconds, 126 years: what bills count in
constexpr double kNotYet = std::numeric_limits<double>::infinity();
constexpr double kShortestRound = 1e-3;            // seconds; a scheduler is not asked more often
constexpr std::int64_t kMostIdleDecisions = 1000;  // between which no job arrives, ends or gets on

constexpr double kLeastRead = 1e-9;  // images: what a job that reads has left at the least, until its caches are full

// Measured by bench/shared_links.py; docs/cluster.md has the figures.
constexpr const char* kSharedLinksWarning =
    "jobs share links, and how much slower they are for it is approximate: on random clusters the job that was most "
    "off ended 18 % too early or too late in the median and 77 % at worst, against every message simulated, which "
    "\"fidelity\": {\"mode\": \"message\"} does";

int group_of(const ScenarioPool& pool) {
  const auto& levels = pool.platform->fabric.levels;
  return levels.empty() ? 0 : levels.front().nodes;
}

}  // namespace

ClusterSimulation::ClusterSimulation(const Cluster& cluster)
    : cluster_(cluster),
      speeds_(cluster),
      states_(cluster.jobs.size()),
      unlocks_(cluster.jobs.size()),
      owners_(cluster.owners) {
  record_.jobs.resize(cluster.jobs.size());
  record_.held_gpu_s.assign(cluster.pools.size(), 0);
  record_.busy_gpu_s.assign(cluster.pools.size(), 0);
  record_.busy_host_s.assign(cluster.pools.size(), 0);
  for (std::size_t i = 0; i < cluster.jobs.size(); ++i) {
    states_[i].blocked_by = static_cast<int>(cluster.jobs[i].after.size());
    for (const std::size_t before : cluster.jobs[i].after) unlocks_[before].push_back(i);
  }
  bool talks = false;
  for (const ClusterWorkload& workload : cluster.workloads) talks = talks || workload.scenario != nullptr;
  std::vector<double> bandwidths;
  for (const ScenarioPool& pool : cluster.pools) {
    nodes_.emplace_back(pool.pool.nodes, pool.pool.gpus_per_node, group_of(pool));
    pool_states_.push_back({pool.name, pool.pool.nodes, pool.pool.gpus_per_node});
    first_link_.push_back(static_cast<int>(bandwidths.size()));
    fabrics_.emplace_back();
    if (!talks || !cluster.contention) continue;
    fabrics_.back() =
        std::make_unique<FabricGraph>(*pool.platform, pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node);
    for (const DirectedLink& link : fabrics_.back()->links()) bandwidths.push_back(link.bandwidth.si);
  }
  contention_ = std::make_unique<Contention>(std::move(bandwidths));
  begin_view();
  if (cluster.scheduler.row->decide == nullptr) external_ = std::make_unique<ExternalScheduler>(cluster.scheduler);
}

/// When the next job ends, at the latest at `until_s`.
double ClusterSimulation::next_event(double until_s) {
  if (runner_ == nullptr || running_.empty()) return std::min(until_s, next_end());
  const double now = runner_->wait(until_s);
  for (RunningJob& running : running_)
    if (runner_->ended(running.job)) running.end_s = now;
  return now;
}

ClusterRecord ClusterSimulation::run(JobRunner* runner) {
  runner_ = runner;
  if (cluster_.packing > 0) warn_of_packing();
  double again_s = kNotYet;
  for (;;) {
    const double arrival_s = next_arrival_ < cluster_.jobs.size() ? cluster_.jobs[next_arrival_].arrival_s : kNotYet;
    const double next_s = next_event(std::min(arrival_s, again_s));
    if (const double cached_s = next_cached(); cached_s < next_s) {  // which is nothing to a scheduler
      now_ = std::max(now_, cached_s);
      ++record_.events;
      end_reading(now_);
      update_rates();
      continue;
    }
    if (next_s == kNotYet && active_.empty()) break;
    if (next_s == kNotYet) fail_starved();
    now_ = std::max(now_, next_s);
    if (now_ > kLongestSimulated)
      throw Infeasible(
          fmt::format("the jobs take more than {:g} s, 126 years: nothing longer is simulated", kLongestSimulated));
    ++record_.events;
    finish_due(now_);
    arrive(now_);
    if (active_.empty()) {
      again_s = kNotYet;
      note_queue();
      continue;
    }
    const policies::JobSchedule schedule = ask();
    again_s = std::max(schedule.again_s, now_ + kShortestRound);
    apply(schedule);
    if (cluster_.packing > 0) pack();
    update_rates();
    note_queue();
    const double worked = std::accumulate(record_.busy_gpu_s.begin(), record_.busy_gpu_s.end(), 0.0);
    if (worked > worked_gpu_s_) idle_decisions_ = 0;
    worked_gpu_s_ = worked;
    if (++idle_decisions_ > kMostIdleDecisions) fail_starved();
  }
  record_.begin_s = cluster_.jobs.front().arrival_s;
  record_.end_s = now_;
  record_.contending_groups = contention_->groups();
  record_.approximate_groups = contention_->approximate_groups();
  record_.other = other_use(cluster_, record_, speeds_);
  record_.warnings = speeds_.warnings();
  if (contention_->groups() > 0) record_.warnings.push_back(kSharedLinksWarning);
  return std::move(record_);
}

/// Throws Infeasible: nothing will happen that could make the scheduler start the jobs that wait, or it has had so many
/// chances that it never will.
void ClusterSimulation::fail_starved() const {
  const auto waits =
      std::find_if_not(active_.begin(), active_.end(), [&](std::size_t job) { return states_[job].running; });
  const std::size_t starved = waits == active_.end() ? *active_.begin() : *waits;
  throw Infeasible(fmt::format(
      "{}: the scheduler {} starves the job {} for ever: it waits since {} for {} GPUs, {} GPUs are free, and {}",
      cluster_.file, cluster_.scheduler.row->name, cluster_.jobs[starved].name,
      to_string(Seconds{states_[starved].since_s}), cluster_.jobs[starved].gpus,
      std::accumulate(nodes_.begin(), nodes_.end(), 0,
                      [](int sum, const FreeNodes& pool) { return sum + pool.free(); }),
      idle_decisions_ > kMostIdleDecisions ? fmt::format("no job gets on in {} decisions", idle_decisions_)
                                           : "nothing else will happen"));
}

double ClusterSimulation::next_end() const {
  double end_s = kNotYet;
  for (const RunningJob& running : running_) end_s = std::min(end_s, running.end_s);
  return end_s;
}

void ClusterSimulation::arrive(double now) {
  while (next_arrival_ < cluster_.jobs.size() && cluster_.jobs[next_arrival_].arrival_s <= now) {
    const std::size_t job = next_arrival_++;
    if (states_[job].blocked_by == 0) make_ready(job, now);
  }
}

void ClusterSimulation::make_ready(std::size_t job, double now) {
  const ClusterJob& of = cluster_.jobs[job];
  JobState& state = states_[job];
  if (state.ready || of.arrival_s > now) return;
  state.ready = true;
  state.since_s = now;
  idle_decisions_ = 0;
  JobRecord& record = record_.jobs[job];
  record.ready_s = now;
  record.work = state.left = speeds_.work_of(of);
  record.alone_s = kNotYet;
  for (std::size_t pool = 0; pool < cluster_.pools.size(); ++pool)
    record.alone_s = std::min(record.alone_s, speeds_.alone_s(of, pool, of.gpus));
  if (record.alone_s == kNotYet)
    throw Infeasible(fmt::format("{}: the job {} can run on {} GPUs of no pool: {} is not known there", cluster_.file,
                                 of.name, of.gpus, cluster_.workloads[of.workload].name));
  active_.insert(job);
  active_gpus_ += of.gpus;
  enqueue(job);
}

void ClusterSimulation::finish_due(double now) {
  for (std::size_t i = 0; i < running_.size();)
    if (running_[i].end_s <= now)
      finish(i, now);
    else
      ++i;
}

void ClusterSimulation::finish(std::size_t index, double now) {
  const std::size_t job = running_[index].job;
  stop(index, true);
  dequeue(job);
  states_[job].done = true;
  states_[job].left = 0;
  record_.jobs[job].end_s = now;
  active_.erase(job);
  active_gpus_ -= cluster_.jobs[job].gpus;
  idle_decisions_ = 0;
  for (const std::size_t next : unlocks_[job])
    if (--states_[next].blocked_by == 0) make_ready(next, now);
}

RunningJob* ClusterSimulation::find_running(std::size_t job) {
  for (RunningJob& running : running_)
    if (running.job == job) return &running;
  return nullptr;
}

MeasuredModel ClusterSimulation::model_of(std::size_t job) const {
  const ClusterWorkload& workload = cluster_.workloads[cluster_.jobs[job].workload];
  return {workload.model, workload.batch};
}

/// Counts what the job has done and held until now.
void ClusterSimulation::account(RunningJob& running) {
  JobState& state = states_[running.job];
  JobRecord& record = record_.jobs[running.job];
  const double share = running.partner ? 0.5 : 1;  // of its GPUs, if two jobs hold one
  const double held = (now_ - running.accounted_s) * static_cast<double>(running.slots.size()) * share;
  const double worked_s = std::max(0.0, now_ - std::max(running.accounted_s, running.progress_s));
  state.attained_gpu_s += held;
  owners_[cluster_.jobs[running.job].owner].used_gpu_s += held;
  record.held_gpu_s += held;
  record_.held_gpu_s[running.pool] += held;
  double worked = running.rate * worked_s;
  if (runner_ != nullptr) {
    worked = runner_->done(running.job) - running.counted;
    running.counted += worked;
    running.rate = worked_s > 0 ? worked / worked_s : 0;
  }
  // While its collectives take longer, its GPUs wait. A GPU with two jobs is taken to be busy all the time.
  const double busy =
      running.partner ? 1 : running.speed->busy * running.rate / (running.speed->work_per_s * running.efficiency);
  const double busy_gpu_s = worked_s * std::min(1.0, busy) * static_cast<double>(running.slots.size()) * share;
  record.busy_gpu_s += busy_gpu_s;
  record_.busy_gpu_s[running.pool] += busy_gpu_s;
  const double steps = worked / (running.efficiency * running.speed->work_per_s * running.speed->step_s);
  record_.busy_host_s[running.pool] += running.speed->host_node_s
                                           ? steps * *running.speed->host_node_s
                                           : busy_gpu_s / cluster_.pools[running.pool].pool.gpus_per_node;
  if (running.to_read > 0) record.stays.back().reads += steps * running.speed->reading.requests;
  running.accounted_s = now_;
  if (now_ > running.progress_s) {
    const double done = worked;
    state.left = std::max(0.0, state.left - done);
    if (running.to_read > 0) running.to_read = std::max(kLeastRead, running.to_read - done / running.efficiency);
    running.progress_s = now_;
  }
}

void ClusterSimulation::open_stay(const RunningJob& running) {
  record_.jobs[running.job].stays.push_back(
      {now_, now_, running.pool, running.slots, running.partner.has_value(), running.estimated});
}

void ClusterSimulation::close_stay(const RunningJob& running) {
  auto& stays = record_.jobs[running.job].stays;
  stays.back().to_s = now_;
  if (stays.back().from_s == now_) stays.pop_back();
}

void ClusterSimulation::stop(std::size_t index, bool done) {
  account(running_[index]);
  if (runner_ != nullptr) runner_->stop(running_[index].job);
  close_stay(running_[index]);
  const RunningJob gone = running_[index];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  states_[gone.job].since_s = now_;
  states_[gone.job].running = false;
  if (!done) enqueue(gone.job);
  if (!done) ++record_.jobs[gone.job].preemptions;
  record_.jobs[gone.job].restart_s -= std::max(0.0, gone.progress_s - now_);  // what is left of a restart is not done
  if (!gone.partner) {
    nodes_[gone.pool].give(gone.slots);
    return;
  }
  // The other job keeps the GPU, which it does not share any more.
  RunningJob& other = *find_running(*gone.partner);
  account(other);
  close_stay(other);
  other.partner.reset();
  other.guest = other.estimated = false;
  dequeue(other.job);
  open_stay(other);
}

void ClusterSimulation::start(const policies::Grant& grant) {
  const ClusterJob& job = cluster_.jobs[grant.job];
  RunningJob running;
  running.job = grant.job;
  running.pool = grant.pool;
  running.slots = nodes_[grant.pool].take(*cluster_.placement, grant.gpus);
  running.speed = speeds_.speed(job, grant.pool, shape_of(running.slots));
  if (running.speed == nullptr)
    throw Infeasible(fmt::format("{}: the job {} cannot run on {} GPUs of {} as they were placed", cluster_.file,
                                 job.name, grant.gpus, pool_states_[grant.pool].name));
  running.efficiency = speeds_.efficiency(job, grant.gpus);
  running.accounted_s = running.progress_s = now_;
  JobRecord& record = record_.jobs[grant.job];
  if (record.start_s >= 0) {
    const double restart_s = speeds_.save_s(job) + speeds_.restore_s(job);
    running.progress_s += restart_s;
    record.restart_s += restart_s;
  } else {
    record.start_s = now_;
  }
  states_[grant.job].since_s = now_;
  states_[grant.job].running = true;
  dequeue(grant.job);
  running.to_read = running.speed->reading.step_s > 0 ? running.speed->reading.images : 0;
  running.talk = talk_of(running);
  running.end_s = running.cached_s = kNotYet;
  open_stay(running);
  running_.push_back(std::move(running));
}

void ClusterSimulation::pair_up(RunningJob& host, std::size_t guest, bool estimated) {
  account(host);
  close_stay(host);
  RunningJob running = host;
  host.partner = guest;
  host.estimated = running.estimated = estimated;
  open_stay(host);
  running.job = guest;
  running.partner = host.job;
  running.guest = true;
  running.rate = 0;
  running.end_s = kNotYet;
  running.accounted_s = running.progress_s = now_;
  running.speed = speeds_.speed(cluster_.jobs[guest], running.pool, shape_of(running.slots));
  JobRecord& record = record_.jobs[guest];
  if (record.start_s >= 0) {
    const double restart_s = speeds_.save_s(cluster_.jobs[guest]) + speeds_.restore_s(cluster_.jobs[guest]);
    running.progress_s += restart_s;
    record.restart_s += restart_s;
  } else {
    record.start_s = now_;
  }
  states_[guest].running = true;
  open_stay(running);
  running_.push_back(std::move(running));
}

void ClusterSimulation::note_queue() {
  QueuePoint point{now_, 0, static_cast<int>(running_.size()), static_cast<int>(active_gpus_), 0};
  for (std::size_t pool = 0; pool < nodes_.size(); ++pool)
    point.held_gpus += pool_states_[pool].total() - nodes_[pool].free();
  point.waiting = static_cast<int>(active_.size() - running_.size());
  for (const RunningJob& running : running_) point.waiting_gpus -= cluster_.jobs[running.job].gpus;
  if (!record_.queue.empty()) {
    const QueuePoint& last = record_.queue.back();
    if (last.waiting == point.waiting && last.running == point.running && last.waiting_gpus == point.waiting_gpus &&
        last.held_gpus == point.held_gpus)
      return;
    if (last.at_s == now_) record_.queue.pop_back();
  }
  record_.queue.push_back(point);
}

ClusterRecord simulate_cluster(const Cluster& cluster) {
  return cluster.fidelity == Fidelity::message ? simulate_on_simgrid(cluster) : ClusterSimulation(cluster).run();
}

}  // namespace ganymede::sim

#include "sim/cluster/cluster_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "sim/cluster/cluster_record.hpp"
#include "sim/cluster/cluster_state.hpp"
#include "sim/cluster/simgrid_jobs.hpp"

namespace ganymede::sim {
namespace {

constexpr Nanoseconds kShortestRound = 1'000'000;  // a millisecond; a scheduler is not asked more often
constexpr Nanoseconds kSameMoment = 1'000;         // rounding parts events of one moment; schedulers see them together
constexpr std::int64_t kMostIdleDecisions = 1000;  // between which no job arrives, ends or gets on

// Measured by bench/shared_links.py; docs/cluster.md has the figures.
constexpr const char* kSharedLinksWarning =
    "jobs share links, and how much slower some are for it was not simulated message by message but comes from "
    "formulas, which on random clusters were off by 9 % in the median and by more than 15 % for a third of the jobs; "
    "run_low_s and run_high_s allow for that; more \"messages\" in \"fidelity\", or its mode \"message\", is more "
    "exact";

Nanoseconds next_arrival(const ClusterContext& context, const ClusterState& state) {
  const std::vector<ClusterJob>& jobs = context.cluster.jobs;
  return state.next_arrival < jobs.size() ? arrival_of(jobs[state.next_arrival]) : kNever;
}

/// The least of a moment of all running jobs.
Nanoseconds first(const ClusterState& state, Nanoseconds RunningJob::*moment) {
  Nanoseconds at = kNever;
  for (const RunningJob& running : state.running) at = std::min(at, running.*moment);
  return at;
}

/// When the next job ends, at the latest at `until`: then all end that end in this moment.
Nanoseconds next_event(const ClusterContext& context, ClusterState& state, Nanoseconds until) {
  if (context.runner == nullptr || state.running.empty()) {
    const Nanoseconds end = first(state, &RunningJob::ends);
    Nanoseconds last = end;
    for (const RunningJob& running : state.running)
      if (running.ends - end <= kSameMoment) last = std::max(last, running.ends);
    return end < until && until - end <= kSameMoment ? until : std::min(until, last);
  }
  const Nanoseconds now = context.runner->wait(until);
  for (RunningJob& running : state.running)
    if (context.runner->ended(running.job)) running.ends = now;
  return now;
}

/// True if a job has trained since the scheduler last decided.
bool gets_on(const ClusterState& state) {
  return std::any_of(state.running.begin(), state.running.end(), [&](const RunningJob& running) {
    return std::max(running.begins, state.decided) < std::min(state.now, running.trained);
  });
}

/// Throws Infeasible: nothing will happen that could make the scheduler start the jobs that wait, or it has had so many
/// chances that it never will.
[[noreturn]] void throw_starved(const ClusterContext& context, const ClusterState& state) {
  const auto waits = std::find_if_not(state.active.begin(), state.active.end(),
                                      [&](std::size_t job) { return state.jobs[job].running; });
  const std::size_t starved = waits == state.active.end() ? *state.active.begin() : *waits;
  const Cluster& cluster = context.cluster;
  throw Infeasible(fmt::format(
      "{}: the scheduler {} starves the job {} for ever: it waits since {} for {} GPUs, {} GPUs are free, and {}",
      cluster.file, cluster.scheduler.row->name, cluster.jobs[starved].name,
      to_string(to_seconds(state.jobs[starved].since)), cluster.jobs[starved].gpus,
      std::accumulate(state.nodes.begin(), state.nodes.end(), 0,
                      [](int sum, const FreeNodes& pool) { return sum + pool.free(); }),
      state.idle_decisions > kMostIdleDecisions ? fmt::format("no job gets on in {} decisions", state.idle_decisions)
                                                : "nothing else will happen"));
}

/// The work of an event of so many jobs, of which so many run: each of these is looked at.
std::int64_t work_of_event(const Cluster& cluster, double running, double active) {
  constexpr double kRunningAnEvent = 32;  // 1,000 to 4,000 of one GPU: 0.13 us each, where an event may take 4
  return 1 + static_cast<std::int64_t>(running / kRunningAnEvent + active * cluster.scheduler.row->events_a_job);
}

/// The least work of the jobs whose durations are known, whatever the scheduler: if all GPUs together ran the job with
/// the least left, at no moment would fewer jobs be there. A job that waits for others counts only when it must run.
double expected_work(const Cluster& cluster) {
  double mean_gpus = 0;
  std::set<double> durations;
  for (const ClusterJob& job : cluster.jobs) {
    mean_gpus += job.gpus / static_cast<double>(cluster.jobs.size());
    durations.insert(job.duration_s);
  }
  const double at_once = cluster.gpus() / mean_gpus;
  const auto work = [&](double active) {
    return static_cast<double>(work_of_event(cluster, std::min(active, at_once), active));
  };
  double sum = 0, now_s = cluster.jobs.front().arrival_s;
  std::multiset<double> there;  // GPU-seconds that are left of each
  for (const ClusterJob& job : cluster.jobs) {
    double done = cluster.gpus() * (job.arrival_s - now_s);
    for (; !there.empty() && *there.begin() <= done; there.erase(there.begin())) done -= *there.begin();
    if (!there.empty() && done > 0) there.insert(there.extract(there.begin()).value() - done);
    if (job.arrival_s > now_s) sum += 2 * work(static_cast<double>(there.size()));  // it, and what ends meanwhile
    if (job.duration_s > 0 && job.after.empty()) there.insert(job.gpus * job.duration_s);
    now_s = job.arrival_s;
  }
  const auto left = static_cast<double>(there.size());  // jobs as long as others end together
  const double ends = std::min(left, std::ceil(left / at_once) * static_cast<double>(durations.size()));
  return sum + ends * work(left / 2);
}

ClusterRecord finished(const ClusterContext& context, ClusterState& state) {
  ClusterRecord& record = state.record;
  record.begin_s = to_seconds(arrival_of(context.cluster.jobs.front())).si;
  record.end_s = to_seconds(state.now).si;
  record.contending_groups = state.contention.groups();
  record.approximate_groups = state.contention.approximate_groups();
  record.messages = context.cluster.beat_messages - state.beat_messages_left;
  record.warnings = context.speeds.warnings();
  if (const std::size_t borrowed = context.speeds.borrowed_shapes(); borrowed > 0)
    record.warnings.push_back(
        fmt::format("of more than {} shapes of a workload, {} take the steps alone of the nearest with as many GPUs on "
                    "as many nodes, "
                    "which were off by at most {:.2g} % where both were simulated; run_low_s and run_high_s hold that",
                    JobSpeeds::kMostShapes, borrowed, 100 * context.speeds.borrowed_error()));
  record.other = other_use(context.cluster, record, context.speeds);
  if (record.approximate_groups > 0) record.warnings.push_back(kSharedLinksWarning);
  return std::move(record);
}

}  // namespace

ClusterRecord simulate_cluster(const Cluster& cluster, JobSpeeds& speeds, JobRunner* runner) {
  const ClusterContext context = context_of(cluster, speeds, runner);
  ClusterState state = initial_state(context);
  if (cluster.packing > 0) warn_of_packing(context);
  Nanoseconds again = kNever;
  Work work;
  constexpr double kCertain = 4;  // jobs of other sizes may end together more often
  check_work(expected_work(cluster) / kCertain, "event", cluster.file + ": /jobs: of so many jobs at a time",
             "fewer jobs at a time");
  for (;;) {
    work.spend(
        cluster.file, "/jobs",
        work_of_event(cluster, static_cast<double>(state.running.size()), static_cast<double>(state.active.size())));
    const Nanoseconds next = next_event(context, state, std::min(next_arrival(context, state), again));
    if (const Nanoseconds cached = first(state, &RunningJob::cached); cached < next) {  // nothing to a scheduler
      state.now = std::max(state.now, cached);
      ++state.record.events;
      end_reading(context, state);
      update_paces(context, state);
      continue;
    }
    if (next == kNever && state.active.empty()) return finished(context, state);
    if (next == kNever) throw_starved(context, state);
    state.now = std::max(state.now, next);
    if (state.now > kLongestLife)
      throw Infeasible(fmt::format("the jobs take more than {:g} s, 126 years: nothing longer is simulated",
                                   to_seconds(kLongestLife).si));
    ++state.record.events;
    if (gets_on(state)) state.idle_decisions = 0;
    finish_due(context, state);
    arrive_due(context, state);
    if (state.active.empty()) {
      again = kNever;
      note_queue(context, state);
      continue;
    }
    const policies::JobSchedule schedule = decide(context, state);
    again = std::max(clock_at(std::max(0.0, schedule.again_s)), state.now + kShortestRound);
    follow(context, state, schedule);
    if (cluster.packing > 0) pack(context, state);
    update_paces(context, state);
    note_queue(context, state);
    state.decided = state.now;
    if (++state.idle_decisions > kMostIdleDecisions) throw_starved(context, state);
  }
}

ClusterRecord simulate_cluster(const Cluster& cluster) {
  if (cluster.fidelity == Fidelity::message) return simulate_on_simgrid(cluster);
  JobSpeeds speeds(cluster);
  return simulate_cluster(cluster, speeds);
}

}  // namespace ganymede::sim

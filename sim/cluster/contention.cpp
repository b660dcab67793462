#include "sim/cluster/contention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace ganymede::sim {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();
constexpr std::size_t kFoldedSteps = 48;     // of each job, so that phases meet in many ways
constexpr std::size_t kFoldedEvents = 2000;  // at which folding ends whatever the steps
constexpr int kFixedPointSteps = 60;
constexpr double kFixed = 1e-12;            // relative change of steps at which a fixed point is found
constexpr std::size_t kMostKnown = 50'000;  // groups that are remembered
constexpr double kFull = 1 + 1e-9;          // loads up to this share of a bandwidth do not contend

struct Range {
  double low, high;
};
constexpr Range kBeatRange = {1, 1}, kFoldedRange = {1, 1}, kFixedPointRange = {1, 1};

/// A job while it is folded.
struct Phase {
  bool talks = false;
  double next_s = 0;    // when it ends computing
  double began_s = 0;   // when its collectives began
  double credit_s = 0;  // time that its collectives took longer and that computing hid
  int flow = -1;
};

/// Folds jobs over their phases.
class PhaseFold {
 public:
  PhaseFold(std::span<const TalkingJob> jobs, const std::vector<double>& bandwidths)
      : jobs_(jobs), solver_(bandwidths), phases_(jobs.size()), ends_(jobs.size()) {
    for (std::size_t i = 0; i < jobs.size(); ++i) phases_[i].next_s = std::max(0.0, jobs[i].step_s - jobs[i].alone_s);
  }

  std::vector<std::vector<double>> run(std::size_t steps, std::size_t max_events) {
    for (std::size_t event = 0; event < max_events; ++event) {
      double now = kNoEnd;
      for (const Phase& phase : phases_) now = std::min(now, end_of(phase));
      for (std::size_t i = 0; i < jobs_.size(); ++i)
        if (end_of(phases_[i]) <= now) turn(i, now);
      solver_.update_rates(now);
      solver_.changed_flows().clear();
      if (std::all_of(ends_.begin(), ends_.end(), [&](const auto& ends) { return ends.size() >= steps; })) break;
    }
    return std::move(ends_);
  }

 private:
  double end_of(const Phase& phase) const { return phase.talks ? solver_.end_time(phase.flow) : phase.next_s; }

  void turn(std::size_t i, double now) {
    const TalkingJob& job = jobs_[i];
    Phase& phase = phases_[i];
    if (!phase.talks) {
      phase.talks = true;
      phase.began_s = now;
      phase.flow = solver_.start(now, job.alone_s * job.peak, job.peak, job.uses);
      return;
    }
    solver_.finish(now, phase.flow);
    ends_[i].push_back(now);
    phase.talks = false;
    const double longer_s = std::max(0.0, now - phase.began_s - job.alone_s);
    phase.credit_s = (1 - job.exposed) * longer_s;
    phase.next_s = now + std::max(0.0, job.step_s - job.alone_s - phase.credit_s);
  }

  std::span<const TalkingJob> jobs_;
  MaxMinSolver solver_;
  std::vector<Phase> phases_;
  std::vector<std::vector<double>> ends_;
};

/// Mean steps of jobs that are folded over their phases.
std::vector<double> folded(const std::vector<TalkingJob>& jobs, const std::vector<double>& bandwidths) {
  const auto ends = step_ends(jobs, bandwidths, kFoldedSteps, kFoldedEvents);
  std::vector<double> steps;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    steps.push_back(ends[i].empty() ? jobs[i].step_s : ends[i].back() / static_cast<double>(ends[i].size()));
  return steps;
}

/// Sum over jobs of a link's load, by link, if all communicate.
std::vector<double> peaks_of(const std::vector<const TalkingJob*>& jobs, std::size_t links) {
  std::vector<double> sum(links, 0);
  for (const TalkingJob* job : jobs)
    if (job != nullptr)
      for (const LinkUse& use : job->uses) sum[static_cast<std::size_t>(use.link)] += job->peak * use.weight;
  return sum;
}

/// The representative of a set of jobs that share links.
std::size_t root_of(std::vector<std::size_t>& parent, std::size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

}  // namespace

TalkingJob talking_job(const FabricGraph& fabric, const CollectiveTraffic& traffic, double step_s,
                       std::span<const int> members, int first_link) {
  TalkingJob talk;
  const auto loads = link_loads(fabric, traffic, members);
  double most = 0;
  for (const LinkLoad& load : loads) most = std::max(most, load.bytes);
  if (most <= 0) return talk;
  talk.step_s = step_s;
  talk.alone_s = std::min(traffic.alone_s, step_s);
  talk.exposed = traffic.exposed;
  talk.peak = most / talk.alone_s;
  for (const LinkLoad& load : loads) talk.uses.push_back({first_link + load.link, load.bytes / most});
  return talk;
}

std::vector<std::vector<double>> step_ends(std::span<const TalkingJob> jobs, const std::vector<double>& bandwidths,
                                           std::size_t steps, std::size_t max_events) {
  return PhaseFold(jobs, bandwidths).run(steps, max_events);
}

std::vector<double> steps_by_fixed_point(std::span<const TalkingJob> jobs, const std::vector<double>& bandwidths) {
  std::vector<double> talk_s, step_s;
  for (const TalkingJob& job : jobs) {
    talk_s.push_back(job.alone_s);
    step_s.push_back(job.step_s);
  }
  struct Load {
    double demand = 0;   // bytes per second, on average over steps
    double weights = 0;  // of the flows that are under way, on average
  };
  for (int step = 0; step < kFixedPointSteps; ++step) {
    std::vector<Load> loads(bandwidths.size());
    double change = 0;  // the largest of a step in this round, relative to it
    for (std::size_t i = 0; i < jobs.size(); ++i)
      for (const LinkUse& use : jobs[i].uses) {
        Load& load = loads[static_cast<std::size_t>(use.link)];
        load.demand += use.weight * jobs[i].peak * jobs[i].alone_s / step_s[i];
        load.weights += use.weight * std::min(1.0, talk_s[i] / step_s[i]);
      }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const TalkingJob& job = jobs[i];
      double rate = job.peak;
      for (const LinkUse& use : job.uses) {
        const Load& load = loads[static_cast<std::size_t>(use.link)];
        const double bandwidth = bandwidths[static_cast<std::size_t>(use.link)];
        const double left = bandwidth - (load.demand - use.weight * job.peak * job.alone_s / step_s[i]);
        const double others = load.weights - use.weight * std::min(1.0, talk_s[i] / step_s[i]);
        const double fair = bandwidth / (use.weight + others) * use.weight;
        rate = std::min(rate, std::max(left, fair) / use.weight);
      }
      const double longer_s = job.alone_s * (job.peak / rate - 1);
      // Half of the way, so that jobs of like steps do not swing.
      talk_s[i] += (job.alone_s + longer_s - talk_s[i]) / 2;
      const double wanted = std::max(job.step_s + job.exposed * longer_s, job.alone_s + longer_s);
      change = std::max(change, std::abs(wanted - step_s[i]) / wanted);
      step_s[i] += (wanted - step_s[i]) / 2;
    }
    if (change < kFixed) break;
  }
  return step_s;
}

std::vector<SharedStep> Contention::group_steps(const std::vector<const TalkingJob*>& jobs,
                                                std::vector<std::size_t>& members, const Beat& beat) {
  // Like groups are one: jobs are sorted by what they do, and links are numbered anew.
  const auto scalars = [&](std::size_t member) {
    const TalkingJob& job = *jobs[member];
    return std::tuple(job.step_s, job.alone_s, job.exposed, job.peak, job.uses.size());
  };
  std::stable_sort(members.begin(), members.end(),
                   [&](std::size_t a, std::size_t b) { return scalars(a) < scalars(b); });
  std::vector<TalkingJob> group;
  std::vector<double> bandwidths, key;
  std::map<int, int> numbers;
  for (const std::size_t member : members) {
    TalkingJob job = *jobs[member];
    for (const double value : {job.step_s, job.alone_s, job.exposed, job.peak, static_cast<double>(job.uses.size())})
      key.push_back(value);
    for (LinkUse& use : job.uses) {
      const auto [found, is_new] = numbers.try_emplace(use.link, static_cast<int>(numbers.size()));
      if (is_new) bandwidths.push_back(bandwidths_[static_cast<std::size_t>(use.link)]);
      use.link = found->second;
      key.push_back(use.link);
      key.push_back(use.weight);
    }
    group.push_back(std::move(job));
  }
  key.insert(key.end(), bandwidths.begin(), bandwidths.end());
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  ++groups_;
  std::vector<SharedStep> out;
  std::vector<double> steps = beat ? beat(members) : std::vector<double>();
  const Range range = !steps.empty() ? kBeatRange : group.size() <= kFoldedJobs ? kFoldedRange : kFixedPointRange;
  if (steps.empty()) {
    ++approximate_;
    steps = group.size() <= kFoldedJobs ? folded(group, bandwidths) : steps_by_fixed_point(group, bandwidths);
  }
  for (std::size_t i = 0; i < group.size(); ++i) out.push_back({steps[i], range.low, range.high});
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[std::move(key)] = out;
}

std::vector<SharedStep> Contention::steps(const std::vector<const TalkingJob*>& jobs, const Beat& beat) {
  std::vector<SharedStep> out;
  for (const TalkingJob* job : jobs) out.push_back({job == nullptr ? 0 : job->step_s});
  const std::vector<double> peaks = peaks_of(jobs, bandwidths_.size());
  const auto is_full = [&](int link) {
    const auto index = static_cast<std::size_t>(link);
    return peaks[index] > kFull * bandwidths_[index];
  };
  std::vector<std::size_t> parent(jobs.size());
  std::iota(parent.begin(), parent.end(), 0);
  std::vector<bool> contends(jobs.size(), false);
  std::map<int, std::size_t> first_on;
  std::vector<TalkingJob> narrowed(jobs.size());
  std::vector<const TalkingJob*> on_full(jobs.size(), nullptr);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i] == nullptr) continue;
    narrowed[i] = *jobs[i];
    std::erase_if(narrowed[i].uses, [&](const LinkUse& use) { return !is_full(use.link); });
    on_full[i] = &narrowed[i];
    contends[i] = !narrowed[i].uses.empty();
    for (const LinkUse& use : narrowed[i].uses) {
      const auto [first, is_new] = first_on.try_emplace(use.link, i);
      if (!is_new) parent[root_of(parent, i)] = root_of(parent, first->second);
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (contends[i]) members[root_of(parent, i)].push_back(i);
  for (auto& [root, group] : members) {
    const std::vector<SharedStep> steps = group_steps(on_full, group, beat);
    for (std::size_t i = 0; i < group.size(); ++i) out[group[i]] = steps[i];
  }
  return out;
}

std::vector<RankTraffic> rank_traffic(const Scheme& scheme, const Topology& topology,
                                      std::span<const std::int64_t> buckets) {
  std::map<std::pair<int, int>, double> bytes;
  std::vector<Transfer> transfers;
  for (const std::int64_t size : buckets) {
    const Schedule schedule = scheme.plan({topology, size, Collective::all_reduce, ""});
    schedule.check_list();
    for (const Stage& stage : schedule.stages()) {
      transfers.clear();
      stage.expand(0, transfers);
      // Rounds of a stage differ only in their offsets.
      for (const Transfer& transfer : transfers)
        if (transfer.source < topology.ranks && transfer.destination < topology.ranks)
          bytes[{transfer.source, transfer.destination}] +=
              static_cast<double>(stage.rounds) * static_cast<double>(transfer.length) * schedule.cost().wire;
    }
  }
  std::vector<RankTraffic> out;
  for (const auto& [pair, sum] : bytes) out.push_back({pair.first, pair.second, sum});
  return out;
}

std::vector<LinkLoad> link_loads(const FabricGraph& fabric, const CollectiveTraffic& traffic,
                                 std::span<const int> members) {
  std::map<int, double> bytes;
  std::vector<Path> paths;
  for (const RankTraffic& flow : traffic.between) {
    fabric.paths(members[static_cast<std::size_t>(flow.source)], members[static_cast<std::size_t>(flow.destination)],
                 paths);
    for (const Path& path : paths)
      for (const int link : path.links) bytes[link] += path.share * flow.bytes;
  }
  std::vector<LinkLoad> out;
  for (const auto& [link, sum] : bytes) out.push_back({link, sum});
  return out;
}

}  // namespace ganymede::sim

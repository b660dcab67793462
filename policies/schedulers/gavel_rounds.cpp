#include <algorithm>
#include <tuple>

#include "policies/schedulers/fair_shares.hpp"
#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kGavelRoundsSettings[] = {
    {"round_s", 360, 1, 1e6, "length of a round in seconds"},
    {"reallocate_s", 1920, 0, 1e9, "shares are computed anew at most every so many seconds"}};

using Jobs = std::vector<const JobView*>;

/// The job's speed on the GPUs that it asks for, by pool: jobs a second; 0 where it cannot run.
std::vector<double> speeds_of(const ClusterView& view, const JobView& job) {
  std::vector<double> speeds;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool)
    speeds.push_back(job.gpus <= view.pools[pool].total() ? 1 / view.alone_s(job, pool, job.gpus) : 0);
  return speeds;
}

/// Shares of time as the published program computes them. A job's worth in a pool is its speed there over its speed
/// under the shares that are max-min fair if all GPUs are alike; n GPUs are worth n times as much.
std::vector<std::vector<double>> published_shares(const ClusterView& view, const Jobs& jobs) {
  SharedPools shared;
  for (const PoolState& pool : view.pools) shared.pools.push_back(pool.total());
  for (const JobView* job : jobs) {
    shared.gpus.push_back(job->gpus);
    std::vector<double>& worth = shared.worth.emplace_back();
    for (const PoolState& pool : view.pools) worth.push_back(job->gpus <= pool.total() ? job->gpus : 0);
  }
  const std::vector<std::vector<double>> alike = fair_shares(shared);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::vector<double> speeds = speeds_of(view, *jobs[j]);
    double isolated = 0;
    for (std::size_t p = 0; p < speeds.size(); ++p) isolated += speeds[p] * alike[j][p];
    for (std::size_t p = 0; p < speeds.size(); ++p)
      shared.worth[j][p] = isolated > 0 ? speeds[p] / isolated * shared.gpus[j] : 0;
  }
  return fair_shares(shared);
}

/// The memory keeps by name "reset" and the "sum" and "count" of jobs then; "start" and "end" of the round;
/// "busy/POOL", the job-seconds of a pool since the reset; for each job "ran/JOB", its pool in this round, and
/// "share/JOB/POOL", "time/JOB/POOL" (seconds that it has had since the reset) and "lack/JOB/POOL" (seconds that it had
/// too few before).
class Rounds {
 public:
  explicit Rounds(const SchedulerCall& call)
      : view_(call.view),
        memory_(call.memory),
        round_s_(call.settings[0]),
        reallocate_s_(call.settings[1]),
        jobs_(all_jobs(call.view)) {}

  JobSchedule decide() {
    // GPUs of a job that ends within a round are idle until the round ends, and who arrives waits for that.
    const bool goes_on = !view_.running.empty() && view_.now_s < memory_["end"];
    account(goes_on);
    JobSchedule schedule;
    if (goes_on) {
      for (const JobView* job : view_.running)
        schedule.run.push_back({job->job, static_cast<std::size_t>(job->pool), job->held});
    } else {
      reallocate();
      memory_["start"] = view_.now_s;
      memory_["end"] = view_.now_s + round_s_;
      schedule.run = new_round();
    }
    if (!jobs_.empty()) schedule.again_s = memory_["end"];
    return schedule;
  }

 private:
  static std::string key(const char* what, const JobView& job, std::size_t pool) {
    return std::string(what) + "/" + std::to_string(job.job) + "/" + std::to_string(pool);
  }
  std::string busy_key(std::size_t pool) const { return "busy/" + std::to_string(pool); }
  double recall(const std::string& name, double otherwise) const {
    const auto found = memory_.find(name);
    return found == memory_.end() ? otherwise : found->second;
  }

  /// Books the round's time for the jobs of the round that have ended, or for all if it has ended itself.
  void account(bool only_ended) {
    const double passed_s = view_.now_s - memory_["start"];
    for (auto ran = memory_.lower_bound("ran/"); ran != memory_.end() && ran->first.starts_with("ran/");) {
      const std::size_t number = std::stoul(ran->first.substr(4));
      const auto job = std::lower_bound(jobs_.begin(), jobs_.end(), number,
                                        [](const JobView* view, std::size_t n) { return view->job < n; });
      const bool ended = job == jobs_.end() || (*job)->job != number;
      if (only_ended && !ended) {
        ++ran;
        continue;
      }
      const auto pool = static_cast<std::size_t>(ran->second);
      memory_[busy_key(pool)] += passed_s;
      if (!ended) memory_[key("time", **job, pool)] += passed_s;
      ran = memory_.erase(ran);
    }
  }

  /// Computes shares anew if jobs have come or gone and they are old enough. What a job had too little of is kept.
  void reallocate() {
    double sum = 0;  // tells sets of jobs apart: numbers only grow, so that sum and count change together
    for (const JobView* job : jobs_) sum += static_cast<double>(job->job) + 1;
    const double reset_s = memory_["reset"];
    const auto count = static_cast<double>(jobs_.size());
    if (memory_["sum"] == sum && memory_["count"] == count) return;
    if (reset_s > 0 && view_.now_s - reset_s < reallocate_s_) return;
    PolicyMemory next{{"reset", view_.now_s}, {"sum", sum}, {"count", count}};
    const std::vector<std::vector<double>> shares = published_shares(view_, jobs_);
    for (std::size_t p = 0; p < view_.pools.size(); ++p) {
      next[busy_key(p)] = count * round_s_ / 2;
      for (std::size_t j = 0; j < jobs_.size(); ++j) {
        const JobView& job = *jobs_[j];
        const double due_s = recall(key("share", job, p), 0) * (view_.now_s - reset_s);
        next[key("lack", job, p)] = recall(key("lack", job, p), 0) + due_s - recall(key("time", job, p), 0);
        next[key("share", job, p)] = shares[j][p];
      }
    }
    memory_ = std::move(next);
  }

  /// Fills one pool after the other, in the order of the cluster's file, with the jobs that have had the smallest part
  /// of their share there; a job without a share may take what is left. Every job is taken to have had half a round.
  std::vector<Grant> new_round() {
    std::vector<Grant> run;
    std::vector<bool> runs(jobs_.empty() ? 0 : jobs_.back()->job + 1, false);
    for (std::size_t p = 0; p < view_.pools.size(); ++p) {
      struct Entry {
        double priority, lack_s, share;
        const JobView* job;
      };
      std::vector<Entry> entries;
      const double busy_s = recall(busy_key(p), 0);
      for (const JobView* job : jobs_) {
        const double share = recall(key("share", *job, p), 0);
        const double part = (recall(key("time", *job, p), 0) + round_s_ / 2) / busy_s;
        entries.push_back({share / part, recall(key("lack", *job, p), 0), share, job});
      }
      std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.priority, a.lack_s, a.share) > std::tie(b.priority, b.lack_s, b.share);
      });
      int free = view_.pools[p].total();
      for (const Entry& entry : entries) {
        const JobView& job = *entry.job;
        if (free == 0) break;
        if (runs[job.job] || job.gpus > free || view_.alone_s(job, p, job.gpus) == kNeverAgain) continue;
        runs[job.job] = true;
        free -= job.gpus;
        run.push_back({job.job, p, job.gpus});
        memory_["ran/" + std::to_string(job.job)] = static_cast<double>(p);
      }
    }
    return run;
  }

  const ClusterView& view_;
  PolicyMemory& memory_;
  double round_s_, reallocate_s_;
  Jobs jobs_;
};

JobSchedule decide_gavel_rounds(const SchedulerCall& call) { return Rounds(call).decide(); }

}  // namespace

Scheduler gavel_rounds_scheduler() {
  return {.name = "gavel-rounds",
          .summary = "gavel as its authors' simulator has it: arrivals wait for the next round, shares are kept longer",
          .source =
              "stanford-futuredata/gavel at c4fa40097339, scheduler/scheduler.py, simulate() with the policy "
              "max_min_fairness_perf",
          .settings = kGavelRoundsSettings,
          .decide = decide_gavel_rounds};
}

}  // namespace ganymede::policies

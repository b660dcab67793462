#include <algorithm>
#include <cmath>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kGavelSettings[] = {{"round_s", 360, 1, 1e6, "length of a round in seconds"}};

constexpr int kSearchSteps = 14;    // bisections of the common level
constexpr int kPriceSteps = 40;     // rounds of prices for one level
constexpr double kPriceRate = 0.5;  // how fast prices follow the load

/// Shares of each job's time that it spends in each pool, as one row for each job.
using TimeShares = std::vector<std::vector<double>>;

/// The linear program of Gavel's least attained service: shares of time x that maximise the least normalized
/// throughput, sum over pools of x times the speed there, such that the shares of a job sum to 1 at most and no pool is
/// used by more GPUs than it has. Solved by bisection over the level; whether a level can be reached is decided by
/// prices of the pools (multiplicative weights: Plotkin, Shmoys, Tardos, Mathematics of Operations Research 20(2),
/// 1995).
class FairShares {
 public:
  FairShares(const ClusterView& view, const std::vector<const JobView*>& jobs)
      : view_(view), jobs_(jobs), pools_(view.pools.size()) {
    double all = 0;
    for (const PoolState& pool : view.pools) all += pool.total();
    for (const JobView* of : jobs) {
      const JobView& job = *of;
      std::vector<double> speed(pools_, 0);
      double equal = 0;  // throughput if the job's time were spread over pools by their GPUs
      for (std::size_t p = 0; p < pools_; ++p) {
        if (job.gpus > view.pools[p].total()) continue;
        const double seconds = view.alone_s(job, p, job.gpus);
        speed[p] = std::isfinite(seconds) ? 1 / seconds : 0;
        equal += speed[p] * view.pools[p].total() / all;
      }
      // As in the paper, a job counts by its GPUs: n GPUs at one speed are worth n times as much.
      for (double& value : speed) value = equal > 0 ? value / equal * job.gpus : 0;
      speeds_.push_back(std::move(speed));
    }
  }

  TimeShares solve() const {
    double low = 0, high = kNeverAgain;
    for (const auto& speed : speeds_) high = std::min(high, *std::max_element(speed.begin(), speed.end()));
    TimeShares best(speeds_.size(), std::vector<double>(pools_, 0));
    if (speeds_.empty()) return best;
    for (int step = 0; step < kSearchSteps; ++step) {
      const double level = step == 0 ? high : (low + high) / 2;
      if (auto shares = reach(level)) {
        best = std::move(*shares);
        low = level;
        if (step == 0) break;
      } else {
        high = level;
      }
    }
    return best;
  }

 private:
  /// The cheapest shares of one job that reach the level: one pool, or two pools for all of its time.
  std::vector<double> cheapest(std::size_t job, double level, const std::vector<double>& prices) const {
    const auto& speed = speeds_[job];
    std::vector<double> best(pools_, 0);
    double least = kNeverAgain;
    const auto offer = [&](std::size_t a, double share_a, std::size_t b, double share_b) {
      const double cost = share_a * prices[a] + share_b * prices[b];
      if (cost >= least) return;
      least = cost;
      std::fill(best.begin(), best.end(), 0);
      best[a] += share_a;
      best[b] += share_b;
    };
    for (std::size_t a = 0; a < pools_; ++a) {
      if (speed[a] >= level) offer(a, level / speed[a], a, 0);
      for (std::size_t b = 0; b < pools_; ++b) {
        if (speed[a] <= level || speed[b] >= level) continue;
        const double share = (level - speed[b]) / (speed[a] - speed[b]);
        offer(a, share, b, 1 - share);
      }
    }
    return best;
  }

  std::optional<TimeShares> reach(double level) const {
    std::vector<double> prices(pools_, 1), load(pools_);
    TimeShares sum(speeds_.size(), std::vector<double>(pools_, 0));
    for (int step = 0; step < kPriceSteps; ++step) {
      std::fill(load.begin(), load.end(), 0);
      for (std::size_t job = 0; job < speeds_.size(); ++job) {
        const auto shares = cheapest(job, level, prices);
        for (std::size_t p = 0; p < pools_; ++p) {
          sum[job][p] += shares[p] / kPriceSteps;
          load[p] += shares[p] * jobs_[job]->gpus / view_.pools[p].total();
        }
      }
      for (std::size_t p = 0; p < pools_; ++p)
        prices[p] *= 1 + kPriceRate * std::clamp(load[p] - 1, -0.9, 2.0) / (1 + step / 8.0);
    }
    std::fill(load.begin(), load.end(), 0);
    for (std::size_t job = 0; job < speeds_.size(); ++job)
      for (std::size_t p = 0; p < pools_; ++p) load[p] += sum[job][p] * jobs_[job]->gpus / view_.pools[p].total();
    constexpr double kSlack = 1.02;  // rounds cannot follow shares more closely
    if (*std::max_element(load.begin(), load.end()) > kSlack) return std::nullopt;
    return sum;
  }

  const ClusterView& view_;
  const std::vector<const JobView*>& jobs_;
  std::size_t pools_;
  TimeShares speeds_;
};

/// "share/JOB/POOL".
std::string pool_key(const char* what, const JobView& job, std::size_t pool) {
  return std::string(what) + "/" + std::to_string(job.job) + "/" + std::to_string(pool);
}
std::string share_key(const JobView& job, std::size_t pool) { return pool_key("share", job, pool); }
std::string time_key(const JobView& job, std::size_t pool) { return pool_key("time", job, pool); }

/// Shares are computed anew only when jobs have come or gone; they are kept in memory until then, and with them the
/// time that each job has had in each pool since.
void refresh(const SchedulerCall& call, const std::vector<const JobView*>& jobs) {
  PolicyMemory& memory = call.memory;
  const ClusterView& view = call.view;
  double sum = 0;  // tells sets of jobs apart: numbers only grow, so that sum and count change together
  for (const JobView* job : jobs) sum += static_cast<double>(job->job) + 1;
  const double passed_s = view.now_s - memory["at"];
  const bool same = memory["jobs"] == sum && memory["count"] == static_cast<double>(jobs.size());
  if (same) {
    for (const JobView* job : view.running) memory[time_key(*job, static_cast<std::size_t>(job->pool))] += passed_s;
  } else {
    const TimeShares shares = FairShares(view, jobs).solve();
    memory.clear();
    for (std::size_t i = 0; i < shares.size(); ++i)
      for (std::size_t p = 0; p < shares[i].size(); ++p) memory[share_key(*jobs[i], p)] = shares[i][p];
    memory["jobs"] = sum;
    memory["count"] = static_cast<double>(jobs.size());
    memory["since"] = view.now_s;
  }
  memory["at"] = view.now_s;
}

struct Candidate {
  double priority;
  const JobView* job;
  std::size_t pool;
};

/// Priority of a job in a pool: its share of time there over the share that it has had so far.
std::vector<Candidate> candidates(const SchedulerCall& call, const std::vector<const JobView*>& jobs) {
  const ClusterView& view = call.view;
  const double passed_s = view.now_s - call.memory["since"] + call.settings[0];
  std::vector<Candidate> out;
  for (const JobView* of : jobs)
    for (std::size_t p = 0; p < view.pools.size(); ++p) {
      const JobView& job = *of;
      if (job.gpus > view.pools[p].total() || !std::isfinite(view.alone_s(job, p, job.gpus))) continue;
      const double had = (call.memory[time_key(job, p)] + 0.01 * call.settings[0]) / passed_s;
      out.push_back({call.memory[share_key(job, p)] / had, of, p});
    }
  // Equal priorities, as of a new set of jobs, go first to those that run there already.
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return (a.job->pool == static_cast<int>(a.pool)) > (b.job->pool == static_cast<int>(b.pool));
  });
  return out;
}

JobSchedule decide_gavel(const SchedulerCall& call) {
  const ClusterView& view = call.view;
  const std::vector<const JobView*> jobs = all_jobs(view);
  refresh(call, jobs);
  FreeGpus free(view);
  std::vector<bool> done(jobs.empty() ? 0 : jobs.back()->job + 1, false);
  JobSchedule schedule;
  for (const Candidate& candidate : candidates(call, jobs)) {
    const JobView& job = *candidate.job;
    if (done[job.job] || free.free(candidate.pool) < job.gpus) continue;
    done[job.job] = true;
    free.take(candidate.pool, job.gpus);
    schedule.run.push_back({job.job, candidate.pool, job.gpus});
  }
  if (!jobs.empty()) schedule.again_s = view.now_s + call.settings[0];
  return schedule;
}

}  // namespace

Scheduler gavel_scheduler() {
  return {.name = "gavel",
          .summary = "max-min fair over throughputs on unlike GPUs, in rounds; preempts and moves",
          .source =
              "Narayanan et al., \"Heterogeneity-aware cluster scheduling policies for deep learning workloads\", "
              "OSDI 2020, least attained service",
          .settings = kGavelSettings,
          .decide = decide_gavel,
          .events_a_job = 2.5};  // of 1,000 jobs at once: 10 us a job and decision, where an event may take 4
}

}  // namespace ganymede::policies

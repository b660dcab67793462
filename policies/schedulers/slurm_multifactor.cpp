#include <algorithm>

#include "common/random.hpp"
#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kMultifactorSettings[] = {
    {"age", 1000, 0, 1e9, "weight of the time waited, full after `age_max_s`"},
    {"fair_share", 10'000, 0, 1e9, "weight of how little the owner has used"},
    {"size", 1000, 0, 1e9, "weight of the share of the cluster asked for"},
    {"priority", 1000, 0, 1e9, "weight of the job's priority, relative to the highest"},
    {"age_max_s", 604'800, 1, 1e9, "seconds of waiting that count in full"},
    {"half_life_s", 604'800, 1, 1e9, "seconds after which past use counts half"},
    {"depth", 100, 0, 100'000, "waiting jobs that are looked at behind the first that does not fit"}};

/// Past use of each owner in GPU-seconds, halved every half-life. Memory holds it between two calls.
std::vector<double> decayed_use(const SchedulerCall& call, double half_life_s) {
  PolicyMemory& memory = call.memory;
  const double passed_s = call.view.now_s - memory["at"];
  memory["at"] = call.view.now_s;
  const double kept = portable_exp(-0.6931471805599453 * passed_s / half_life_s);
  std::vector<double> use;
  for (const OwnerState& owner : call.view.owners) {
    double& decayed = memory["use/" + owner.name];
    double& seen = memory["seen/" + owner.name];
    decayed = decayed * kept + owner.used_gpu_s - seen;
    seen = owner.used_gpu_s;
    use.push_back(decayed);
  }
  return use;
}

/// 2 to the power of minus (share of the use / share of the cluster): 1 without use, 1/2 at the owner's share.
std::vector<double> fair_share_factors(const ClusterView& view, const std::vector<double>& use) {
  double all_use = 0, all_shares = 0;
  const auto shares = [](const OwnerState& owner) { return owner.quota_gpus > 0 ? owner.quota_gpus : 1.0; };
  for (std::size_t i = 0; i < use.size(); ++i) {
    all_use += use[i];
    all_shares += shares(view.owners[i]);
  }
  std::vector<double> factors;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const double used = all_use > 0 ? use[i] / all_use : 0;
    factors.push_back(portable_exp(-0.6931471805599453 * used / (shares(view.owners[i]) / all_shares)));
  }
  return factors;
}

/// The moment since when the job could have run: among jobs of one owner, size and priority the oldest comes first.
double rank_by_age(const ClusterView& /*view*/, std::span<const double> /*settings*/, const JobView& job) {
  return job.arrival_s;
}

JobSchedule decide_multifactor(const SchedulerCall& call) {
  const ClusterView& view = call.view;
  const auto& set = call.settings;
  const std::vector<double> fair = fair_share_factors(view, decayed_use(call, set[5]));
  double gpus = 0;
  for (const PoolState& pool : view.pools) gpus += pool.total();
  std::int64_t highest = std::max<std::int64_t>(1, view.waiting->highest_priority());
  for (const JobView* job : view.running) highest = std::max(highest, job->priority);
  const auto rank = [&](const JobView& job) {
    return -(set[0] * std::min(1.0, (view.now_s - job.arrival_s) / set[4]) + set[1] * fair[job.owner] +
             set[2] * job.gpus / gpus + set[3] * static_cast<double>(job.priority) / static_cast<double>(highest));
  };
  return {.run = backfill(view, WaitingWalk(*view.waiting, rank), static_cast<int>(set[6]))};
}

}  // namespace

Scheduler slurm_multifactor_scheduler() {
  return {.name = "slurm-multifactor",
          .summary = "priority of age, fair share, size and the user's own; with backfill; never preempts",
          .source = "Slurm's priority/multifactor and sched/backfill plugins, slurm.schedmd.com/priority_multifactor",
          .settings = kMultifactorSettings,
          .rank = rank_by_age,
          .kinds = Kinds::owner_and_priority,
          .decide = decide_multifactor};
}

}  // namespace ganymede::policies

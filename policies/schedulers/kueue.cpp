#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

/// The GPUs that the owners' jobs hold. All owners are one cohort: what one does not use of its quota, others may
/// borrow. GPUs beyond all quotas belong to nobody and may be borrowed too.
class Cohort {
 public:
  explicit Cohort(const ClusterView& view) : view_(view), used_(view.owners.size()), free_(view) {
    for (const JobView* job : view.running) hold(*job, 1);
  }

  /// True if the owner would hold no more than its quota with `also` GPUs more.
  bool is_within_quota(std::size_t owner, double also = 0) const {
    const double quota = view_.owners[owner].quota_gpus;
    return quota < 0 || used_[owner] + also <= quota;
  }

  int most_free() const { return free_.most(); }
  /// No job of more GPUs can be admitted within a quota, even if all is taken back that may be. It never grows: what is
  /// taken back was counted before.
  int most_within() {
    if (!lent_) find_lent();
    int most = 0;
    for (std::size_t pool = 0; pool < view_.pools.size(); ++pool)
      most = std::max(most, free_.free(pool) + lent_->most[pool]);
    return most;
  }
  bool is_admitted(const JobView& job) const { return numbers_.count(job.job) > 0; }

  bool admit(const JobView& job) {
    const int pool = fastest_pool(view_, job, job.gpus, free_);
    if (pool < 0) return false;
    take(job.owner, static_cast<std::size_t>(pool), job.gpus);
    admitted_.push_back({job.job, static_cast<std::size_t>(pool), job.gpus});
    numbers_.insert(job.job);
    return true;
  }

  /// Takes back what other owners have borrowed until the job, which is within its owner's quota, fits, from the lowest
  /// priority and the latest start on; those that it then turns out not to need go on. Returns false, and changes
  /// nothing, if all of it would not be enough.
  bool reclaim(const JobView& job) {
    if (!lent_) find_lent();
    if (!would_fit(job)) return false;
    std::vector<const JobView*> taken;
    const auto fits = [&] { return fastest_pool(view_, job, job.gpus, free_) >= 0; };
    for (const JobView* victim : lent_->jobs) {
      if (fits()) break;
      if (is_within_quota(victim->owner)) continue;  // its owner borrows no more
      hold(*victim, -1);
      taken.push_back(victim);
    }
    for (std::size_t i = taken.size(); i-- > 0;) {
      hold(*taken[i], 1);
      if (fits())
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
      else
        hold(*taken[i], -1);
    }
    admit(job);
    for (const JobView* victim : taken) stopped_.insert(victim->job);
    lent_.reset();
    return true;
  }

  std::vector<Grant> grants() const {
    std::vector<Grant> out;
    for (const JobView* job : view_.running)
      if (stopped_.count(job->job) == 0) out.push_back({job->job, static_cast<std::size_t>(job->pool), job->held});
    out.insert(out.end(), admitted_.begin(), admitted_.end());
    return out;
  }

 private:
  /// Jobs that may be taken back. Admissions within quotas make no owner a borrower, so that it changes with reclaim()
  /// alone.
  struct Lent {
    std::vector<const JobView*> jobs;  ///< of borrowers, in the order in which they are taken back
    std::vector<int> most;             ///< GPUs by pool, if as many are taken back as may be
  };

  void find_lent() {
    Lent& lent = lent_.emplace();
    lent.most.resize(view_.pools.size());
    for (const JobView* row : view_.running)
      if (stopped_.count(row->job) == 0 && !is_within_quota(row->owner)) lent.jobs.push_back(row);
    std::stable_sort(lent.jobs.begin(), lent.jobs.end(), [](const JobView* a, const JobView* b) {
      return a->priority != b->priority ? a->priority < b->priority : a->since_s > b->since_s;
    });
    std::map<std::size_t, int> given;  // GPUs by owner
    for (const JobView* job : lent.jobs) {
      int& gpus = given[job->owner];
      if (is_within_quota(job->owner, -gpus)) continue;
      gpus += job->held;
      lent.most[static_cast<std::size_t>(job->pool)] += job->held;
    }
  }

  /// True if the job fits once everything is taken back that may be. None of it is its owner's, who borrows nothing.
  bool would_fit(const JobView& job) const {
    for (std::size_t pool = 0; pool < view_.pools.size(); ++pool)
      if (free_.free(pool) + lent_->most[pool] >= job.gpus && view_.alone_s(job, pool, job.gpus) < kNeverAgain)
        return true;
    return false;
  }

  void take(std::size_t owner, std::size_t pool, int gpus) {
    used_[owner] += gpus;
    free_.take(pool, gpus);
  }
  /// Counts what a running job holds, or no more for a sign of -1.
  void hold(const JobView& job, int sign) { take(job.owner, static_cast<std::size_t>(job.pool), sign * job.held); }

  const ClusterView& view_;
  std::vector<double> used_;  // GPUs by owner
  FreeGpus free_;
  std::optional<Lent> lent_;
  std::set<std::size_t> stopped_;  // numbers of the jobs that were taken back
  std::vector<Grant> admitted_;
  std::set<std::size_t> numbers_;  // of admitted jobs
};

JobSchedule decide_kueue(const SchedulerCall& call) {
  Cohort cohort(call.view);
  // Jobs that stay within their quota are admitted before any that borrows.
  WaitingWalk within = WaitingWalk::within_quotas(*call.view.waiting);
  const auto has_quota = [&](const JobKind& kind) { return cohort.is_within_quota(kind.owner, kind.gpus); };
  while (const JobView* job = within.next(has_quota, cohort.most_within()))
    if (!cohort.admit(*job) && cohort.reclaim(*job)) within.reconsider();
  WaitingWalk borrowers(*call.view.waiting);
  while (const JobView* job = borrowers.next([](const JobKind&) { return true; }, cohort.most_free()))
    if (!cohort.is_admitted(*job)) cohort.admit(*job);
  return {.run = cohort.grants()};
}

}  // namespace

Scheduler kueue_scheduler() {
  return {.name = "kueue",
          .summary = "gangs within each owner's quota; unused quota is lent, and taken back by preemption",
          .source = "Kubernetes Kueue: ClusterQueue, cohort, borrowing and reclaimWithinCohort, kueue.sigs.k8s.io/docs",
          .rank = by_priority,
          .kinds = Kinds::owner,
          .decide = decide_kueue};
}

}  // namespace ganymede::policies

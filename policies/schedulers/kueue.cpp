#include <algorithm>
#include <optional>
#include <set>

#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

/// The GPUs that the owners' jobs hold. All owners are one cohort: what one does not use of its quota, others may
/// borrow. GPUs beyond all quotas belong to nobody and may be borrowed too.
class Cohort {
 public:
  explicit Cohort(const ClusterView& view) : view_(view), used_(view.owners.size()), free_(view) {
    for (const JobView* job : view.running) {
      running_.push_back(job);
      hold(*job, 1);
    }
  }

  /// True if the owner would hold no more than its quota with `also` GPUs more.
  bool is_within_quota(std::size_t owner, double also = 0) const {
    const double quota = view_.owners[owner].quota_gpus;
    return quota < 0 || used_[owner] + also <= quota;
  }

  bool has_room(int gpus) const { return gpus <= free_.most(); }
  /// False if there is no use in trying another job of that kind within its quota.
  bool may_start(const JobKind& kind) const {
    return is_within_quota(kind.owner, kind.gpus) && without_room_.count({kind.owner, kind.gpus}) == 0;
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

  /// Takes back what other owners have borrowed until the job fits, from the lowest priority and the latest start on;
  /// those that it then turns out not to need go on. Returns false, and changes nothing, if all of it would not be
  /// enough.
  bool reclaim(const JobView& job) {
    std::vector<const JobView*> taken;
    const auto fits = [&] { return fastest_pool(view_, job, job.gpus, free_) >= 0; };
    for (const JobView* victim : lent()) {
      if (fits()) break;
      if (victim->owner == job.owner || is_within_quota(victim->owner)) continue;  // its owner borrows no more
      hold(*victim, -1);
      taken.push_back(victim);
    }
    for (std::size_t i = fits() ? taken.size() : 0; i-- > 0;) {
      hold(*taken[i], 1);
      if (fits())
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
      else
        hold(*taken[i], -1);
    }
    if (admit(job)) {
      for (const JobView* victim : taken) {
        std::erase(running_, victim);
        std::erase(*lent_, victim);
      }
      without_room_.clear();  // what was taken back may be more than the job needed
      return true;
    }
    if (!has_room(job.gpus)) without_room_.emplace(job.owner, job.gpus);
    for (const JobView* victim : taken) hold(*victim, 1);
    return false;
  }

  std::vector<Grant> grants() const {
    std::vector<Grant> out;
    for (const JobView* job : running_) out.push_back({job->job, static_cast<std::size_t>(job->pool), job->held});
    out.insert(out.end(), admitted_.begin(), admitted_.end());
    return out;
  }

 private:
  /// The running jobs of owners that hold more than their quota, in the order in which they are taken back. Admissions
  /// within quotas make no owner a borrower, so that they are found once.
  const std::vector<const JobView*>& lent() {
    if (lent_) return *lent_;
    lent_.emplace();
    for (const JobView* row : running_)
      if (!is_within_quota(row->owner)) lent_->push_back(row);
    std::stable_sort(lent_->begin(), lent_->end(), [](const JobView* a, const JobView* b) {
      return a->priority != b->priority ? a->priority < b->priority : a->since_s > b->since_s;
    });
    return *lent_;
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
  std::vector<const JobView*> running_;
  std::optional<std::vector<const JobView*>> lent_;
  std::vector<Grant> admitted_;
  std::set<std::size_t> numbers_;                       // of admitted jobs
  std::set<std::pair<std::size_t, int>> without_room_;  // owners and sizes for which taking back was not enough
};

JobSchedule decide_kueue(const SchedulerCall& call) {
  Cohort cohort(call.view);
  // Jobs that stay within their quota are admitted before any that borrows.
  WaitingWalk within(*call.view.waiting);
  while (const JobView* job = within.next([&](const JobKind& kind) { return cohort.may_start(kind); }))
    if (!cohort.admit(*job)) cohort.reclaim(*job);
  WaitingWalk borrowers(*call.view.waiting);
  while (const JobView* job = borrowers.next([&](const JobKind& kind) { return cohort.has_room(kind.gpus); }))
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

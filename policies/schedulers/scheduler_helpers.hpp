#pragma once
// Several schedulers need free GPUs by pool, the best pool for a job, backfill.

#include <span>
#include <vector>

#include "policies/schedulers/scheduler.hpp"

namespace ganymede::policies {

/// GPUs of each pool that are not yet granted.
class FreeGpus {
 public:
  explicit FreeGpus(const ClusterView& view);
  int free(std::size_t pool) const { return free_[pool]; }
  int sum() const;
  int most() const;  ///< of one pool
  void take(std::size_t pool, int gpus) { free_[pool] -= gpus; }
  void give(std::size_t pool, int gpus) { free_[pool] += gpus; }

 private:
  std::vector<int> free_;
};

/// The pool in which the job would end first among those with `gpus` free GPUs; -1 if there is none.
int fastest_pool(const ClusterView& view, const JobView& job, int gpus, const FreeGpus& free);
/// The pool with the most free GPUs among those in which the job can run and `gpus` are free; -1 if there is none.
/// Schedulers that know no speeds choose so.
int emptiest_pool(const ClusterView& view, const JobView& job, int gpus, const FreeGpus& free);
/// Seconds that the rest of the job takes where it runs, or on its fastest pool if it waits.
double remaining_s(const ClusterView& view, const JobView& job);

/// Grants jobs by `rank`, then by arrival, as far as GPUs go; waiting jobs have been ranked so already. A running job
/// stays in its pool if there is room; for others `pool` chooses. Jobs that do not fit are passed over.
std::vector<Grant> grant_in_order(const ClusterView& view, const std::function<double(const JobView&)>& rank,
                                  int (*pool)(const ClusterView&, const JobView&, int, const FreeGpus&));

/// Keeps all running jobs and starts waiting ones in the walk's order. The first that does not fit gets a reservation
/// at the earliest time at which enough running jobs of a pool have ended; later ones start only if they do not delay
/// it (EASY backfill: Lifka, "The ANL/IBM SP scheduling system", 1995). At most `depth` jobs are looked at after it.
std::vector<Grant> backfill(const ClusterView& view, WaitingWalk walk, int depth);

/// The negative priority: a rank by which more urgent jobs come first.
double by_priority(const ClusterView& view, std::span<const double> settings, const JobView& job);

/// All jobs in the order of arrival.
std::vector<const JobView*> all_jobs(const ClusterView& view);

}  // namespace ganymede::policies

#include "policies/schedulers/scheduler_helpers.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::policies {
namespace {

/// When enough GPUs of a pool are free for a job, and how many are left over then.
struct Reservation {
  std::size_t pool = 0;
  double at_s = kNeverAgain;
  int spare = 0;
};

Reservation reserve(const ClusterView& view, const JobView& job, const FreeGpus& free,
                    const std::vector<Grant>& granted) {
  Reservation best;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
    if (job.gpus > view.pools[pool].total() || !std::isfinite(view.alone_s(job, pool, job.gpus))) continue;
    std::vector<std::pair<double, int>> ends;
    for (const Grant& grant : granted) {
      if (grant.pool != pool) continue;
      const auto found = std::lower_bound(view.jobs.begin(), view.jobs.end(), grant.job,
                                          [](const JobView& row, std::size_t number) { return row.job < number; });
      ends.emplace_back(view.now_s + found->left * view.alone_s(*found, pool, grant.gpus), grant.gpus);
    }
    std::sort(ends.begin(), ends.end());
    int room = free.free(pool);
    for (const auto& [end_s, gpus] : ends) {
      room += gpus;
      if (room < job.gpus) continue;
      if (end_s < best.at_s) best = {pool, end_s, room - job.gpus};
      break;
    }
  }
  return best;
}

}  // namespace

FreeGpus::FreeGpus(const ClusterView& view) {
  for (const PoolState& pool : view.pools) free_.push_back(pool.total());
}

int FreeGpus::sum() const {
  int sum = 0;
  for (const int gpus : free_) sum += gpus;
  return sum;
}

int fastest_pool(const ClusterView& view, const JobView& job, int gpus, const FreeGpus& free) {
  int best = -1;
  double least_s = kNeverAgain;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
    if (free.free(pool) < gpus) continue;
    const double seconds = view.alone_s(job, pool, gpus);
    if (seconds < least_s) {
      least_s = seconds;
      best = static_cast<int>(pool);
    }
  }
  return best;
}

int emptiest_pool(const ClusterView& view, const JobView& job, int gpus, const FreeGpus& free) {
  int best = -1;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
    if (free.free(pool) < gpus || !std::isfinite(view.alone_s(job, pool, gpus))) continue;
    if (best < 0 || free.free(pool) > free.free(static_cast<std::size_t>(best))) best = static_cast<int>(pool);
  }
  return best;
}

double remaining_s(const ClusterView& view, const JobView& job) {
  if (job.pool >= 0) return job.left * view.alone_s(job, static_cast<std::size_t>(job.pool), job.held);
  double least_s = kNeverAgain;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool)
    if (job.gpus <= view.pools[pool].total()) least_s = std::min(least_s, view.alone_s(job, pool, job.gpus));
  return job.left * least_s;
}

std::vector<Grant> grant_in_order(const ClusterView& view, std::span<const JobView* const> order,
                                  int (*choose)(const ClusterView&, const JobView&, int, const FreeGpus&)) {
  FreeGpus free(view);
  std::vector<Grant> granted;
  for (const JobView* job : order) {
    if (free.sum() == 0) break;
    const int gpus = job->pool >= 0 ? job->held : job->gpus;
    const int stays = job->pool >= 0 && free.free(static_cast<std::size_t>(job->pool)) >= gpus ? job->pool : -1;
    const int pool = stays >= 0 ? stays : choose(view, *job, gpus, free);
    if (pool < 0) continue;
    free.take(static_cast<std::size_t>(pool), gpus);
    granted.push_back({job->job, static_cast<std::size_t>(pool), gpus});
  }
  return granted;
}

std::vector<Grant> backfill(const ClusterView& view, std::span<const JobView* const> waiting, int depth) {
  FreeGpus free(view);
  std::vector<Grant> granted;
  for (const JobView& job : view.jobs) {
    if (job.pool < 0) continue;
    granted.push_back({job.job, static_cast<std::size_t>(job.pool), job.held});
    free.take(static_cast<std::size_t>(job.pool), job.held);
  }
  std::optional<Reservation> reserved;
  int looked = 0;
  for (const JobView* job : waiting) {
    if (free.sum() == 0 || (reserved && ++looked > depth)) break;
    const int pool = fastest_pool(view, *job, job->gpus, free);
    if (pool < 0) {
      if (!reserved) reserved = reserve(view, *job, free, granted);
      continue;
    }
    const auto where = static_cast<std::size_t>(pool);
    if (reserved && reserved->pool == where &&
        view.now_s + job->left * view.alone_s(*job, where, job->gpus) > reserved->at_s) {
      if (job->gpus > reserved->spare) continue;
      reserved->spare -= job->gpus;
    }
    free.take(where, job->gpus);
    granted.push_back({job->job, where, job->gpus});
  }
  return granted;
}

std::vector<const JobView*> waiting_jobs(const ClusterView& view) {
  std::vector<const JobView*> out;
  for (const JobView& job : view.jobs)
    if (job.pool < 0) out.push_back(&job);
  return out;
}

std::vector<const JobView*> all_jobs(const ClusterView& view) {
  std::vector<const JobView*> out;
  for (const JobView& job : view.jobs) out.push_back(&job);
  return out;
}

}  // namespace ganymede::policies

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
                    const std::vector<std::pair<const JobView*, Grant>>& granted) {
  Reservation best;
  for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
    if (job.gpus > view.pools[pool].total() || !std::isfinite(view.alone_s(job, pool, job.gpus))) continue;
    std::vector<std::pair<double, int>> ends;
    for (const auto& [running, grant] : granted)
      if (grant.pool == pool)
        ends.emplace_back(view.now_s + running->left * view.alone_s(*running, pool, grant.gpus), grant.gpus);
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

int FreeGpus::most() const { return free_.empty() ? 0 : *std::max_element(free_.begin(), free_.end()); }

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

std::vector<Grant> grant_in_order(const ClusterView& view, const std::function<double(const JobView&)>& rank,
                                  int (*choose)(const ClusterView&, const JobView&, int, const FreeGpus&)) {
  FreeGpus free(view);
  std::vector<std::pair<double, const JobView*>> running;
  for (const JobView* job : view.running) running.emplace_back(rank(*job), job);
  std::stable_sort(running.begin(), running.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  WaitingWalk walk(*view.waiting);
  const auto fits = [&](const JobKind& kind) { return kind.gpus <= free.most(); };
  const JobView* waiting = walk.next(fits);
  std::vector<Grant> granted;
  for (auto next = running.begin(); free.sum() > 0 && (next != running.end() || waiting != nullptr);) {
    const bool runs =
        waiting == nullptr || (next != running.end() && std::pair(next->first, next->second->job) < walk.place());
    const JobView* job = runs ? next->second : waiting;
    const int gpus = runs ? job->held : job->gpus;
    const int stays = runs && free.free(static_cast<std::size_t>(job->pool)) >= gpus ? job->pool : -1;
    const int pool = stays >= 0 ? stays : choose(view, *job, gpus, free);
    if (pool >= 0) {
      free.take(static_cast<std::size_t>(pool), gpus);
      granted.push_back({job->job, static_cast<std::size_t>(pool), gpus});
    }
    if (runs)
      ++next;
    else
      waiting = walk.next(fits);
  }
  return granted;
}

std::vector<Grant> backfill(const ClusterView& view, WaitingWalk walk, int depth) {
  FreeGpus free(view);
  std::vector<std::pair<const JobView*, Grant>> granted;
  for (const JobView* job : view.running) {
    granted.emplace_back(job, Grant{job->job, static_cast<std::size_t>(job->pool), job->held});
    free.take(static_cast<std::size_t>(job->pool), job->held);
  }
  std::optional<Reservation> reserved;
  int looked = 0;
  while (free.sum() > 0 && !(reserved && ++looked > depth)) {
    const JobView* job = walk.next([](const JobKind&) { return true; });
    if (job == nullptr) break;
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
    granted.emplace_back(job, Grant{job->job, where, job->gpus});
  }
  std::vector<Grant> out;
  for (const auto& [job, grant] : granted) out.push_back(grant);
  return out;
}

double by_priority(const ClusterView& /*view*/, std::span<const double> /*settings*/, const JobView& job) {
  return -static_cast<double>(job.priority);
}

std::vector<const JobView*> all_jobs(const ClusterView& view) {
  std::vector<const JobView*> out(view.running.begin(), view.running.end()), waiting = view.waiting->all();
  out.insert(out.end(), waiting.begin(), waiting.end());
  std::sort(out.begin(), out.end(), [](const JobView* a, const JobView* b) { return a->job < b->job; });
  return out;
}

}  // namespace ganymede::policies

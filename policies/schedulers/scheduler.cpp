#include "policies/schedulers/scheduler.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace ganymede::policies {

WaitingJobs::WaitingJobs(Kinds kinds, std::span<const OwnerState> owners) : kinds_(kinds) {
  if (kinds_ == Kinds::size) return;
  for (const OwnerState& owner : owners) quotas_.push_back(owner.quota_gpus);
}

JobKind WaitingJobs::kind_of(const JobView& job) const {
  JobKind kind{job.gpus, job.least};
  if (kinds_ != Kinds::size) kind.owner = job.owner;
  if (kinds_ == Kinds::owner_and_priority) kind.priority = job.priority;
  return kind;
}

WaitingJobs::Size WaitingJobs::size_of(const JobKind& kind) const {
  const double quota = kind.owner < quotas_.size() ? quotas_[kind.owner] : -1;
  return {kind.gpus, quota < 0 || kind.gpus <= quota};
}

void WaitingJobs::unlist(const Kind& kind) {
  if (kind.second.empty()) return;
  const auto size = sizes_.find(size_of(kind.first));
  size->second.erase(kind.second.begin()->first);
  if (size->second.empty()) sizes_.erase(size);
}

void WaitingJobs::list(const Kind& kind) {
  if (!kind.second.empty()) sizes_[size_of(kind.first)].emplace(kind.second.begin()->first, &kind);
}

void WaitingJobs::add(const JobView& job, double rank) {
  Kind& kind = *queues_.try_emplace(kind_of(job)).first;
  unlist(kind);
  kind.second[{rank, job.job}] = &job;
  list(kind);
  ranks_[job.job] = {rank, &job};
  priorities_.insert(job.priority);
}

void WaitingJobs::remove(const JobView& job) {
  const auto known = ranks_.find(job.job);
  assert(known != ranks_.end());
  const auto kind = queues_.find(kind_of(job));
  unlist(*kind);
  kind->second.erase({known->second.first, job.job});
  list(*kind);
  if (kind->second.empty()) queues_.erase(kind);
  ranks_.erase(known);
  priorities_.erase(priorities_.find(job.priority));
}

std::int64_t WaitingJobs::highest_priority() const { return priorities_.empty() ? 0 : *priorities_.rbegin(); }

std::vector<const JobView*> WaitingJobs::all() const {
  std::vector<const JobView*> out;
  for (const auto& [number, row] : ranks_) out.push_back(row.second);
  return out;
}

WaitingWalk::WaitingWalk(const WaitingJobs& jobs, std::function<double(const JobView&)> rank) : rank_(std::move(rank)) {
  if (rank_)  // by which the first jobs of the kinds come in another order
    for (const auto& [kind, queue] : jobs.queues_) push({&kind, &queue, queue.begin(), {}, nullptr, {}});
  else
    for (const auto& [size, firsts] : jobs.sizes_) push_kind(firsts, firsts.begin());
}

WaitingWalk WaitingWalk::within_quotas(const WaitingJobs& jobs) {
  WaitingWalk walk;
  for (const auto& [size, firsts] : jobs.sizes_)
    if (size.second) walk.push_kind(firsts, firsts.begin());
  return walk;
}

/// Puts a head where its job belongs, unless its kind has no further jobs.
void WaitingWalk::push(Head head) {
  if (head.at == head.queue->end()) return;
  head.place = {rank_ ? rank_(*head.at->second) : head.at->first.first, head.at->first.second};
  heads_.push_back(head);
  std::push_heap(heads_.begin(), heads_.end(), is_later);
}

void WaitingWalk::push_kind(const WaitingJobs::Firsts& size, WaitingJobs::Firsts::const_iterator next) {
  if (next == size.end()) return;
  const auto& [kind, queue] = *next->second;
  push({&kind, &queue, queue.begin(), {}, &size, std::next(next)});
}

const JobView* WaitingWalk::next(const std::function<bool(const JobKind&)>& may_start, int most_gpus) {
  while (!heads_.empty()) {
    std::pop_heap(heads_.begin(), heads_.end(), is_later);
    Head head = heads_.back();
    heads_.pop_back();
    if (head.kind->gpus > most_gpus) continue;  // with all others of its size
    if (head.size != nullptr) push_kind(*std::exchange(head.size, nullptr), head.next);
    if (!may_start(*head.kind)) {
      passed_over_.push_back(head);
      continue;
    }
    const JobView* job = head.at->second;
    last_ = head.place;
    ++head.at;
    push(head);
    return job;
  }
  return nullptr;
}

void WaitingWalk::reconsider() {
  assert(!rank_);  // by which the place behind the last job could not be looked up
  for (Head head : std::exchange(passed_over_, {})) {
    head.at = head.queue->upper_bound(last_);
    push(head);
  }
}

}  // namespace ganymede::policies

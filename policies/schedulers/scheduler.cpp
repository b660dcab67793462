#include "policies/schedulers/scheduler.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ganymede::policies {

JobKind WaitingJobs::kind_of(const JobView& job) const {
  JobKind kind{job.gpus, job.least};
  if (kinds_ != Kinds::size) kind.owner = job.owner;
  if (kinds_ == Kinds::owner_and_priority) kind.priority = job.priority;
  return kind;
}

void WaitingJobs::add(const JobView& job, double rank) {
  queues_[kind_of(job)][{rank, job.job}] = &job;
  ranks_[job.job] = {rank, &job};
  priorities_.insert(job.priority);
}

void WaitingJobs::remove(const JobView& job) {
  const auto known = ranks_.find(job.job);
  assert(known != ranks_.end());
  const auto queue = queues_.find(kind_of(job));
  queue->second.erase({known->second.first, job.job});
  if (queue->second.empty()) queues_.erase(queue);
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
  for (const auto& [kind, queue] : jobs.queues_) push({&kind, &queue, queue.begin(), {}});
}

/// Puts a head where its job belongs, unless its kind has no further jobs.
void WaitingWalk::push(Head head) {
  if (head.at == head.queue->end()) return;
  head.place = {rank_ ? rank_(*head.at->second) : head.at->first.first, head.at->first.second};
  heads_.push_back(head);
  std::push_heap(heads_.begin(), heads_.end(), is_later);
}

const JobView* WaitingWalk::next(const std::function<bool(const JobKind&)>& may_start) {
  while (!heads_.empty()) {
    std::pop_heap(heads_.begin(), heads_.end(), is_later);
    Head head = heads_.back();
    heads_.pop_back();
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

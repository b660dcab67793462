#include "policies/schedulers/waiting_jobs.hpp"

#include <cassert>

#include "policies/schedulers/scheduler.hpp"

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
  for (const auto& [kind, queue] : jobs.queues_) {
    heads_.push_back({&kind, &queue, queue.begin(), {}});
    settle(heads_.back());
  }
}

void WaitingWalk::settle(Head& head) {
  if (head.at == head.queue->end()) return;
  head.place = {rank_ ? rank_(*head.at->second) : head.at->first.first, head.at->first.second};
}

const JobView* WaitingWalk::next(const std::function<bool(const JobKind&)>& may_start) {
  Head* best = nullptr;
  for (Head& head : heads_) {
    if (head.at == head.queue->end() || !may_start(*head.kind)) continue;
    if (begun_ && !rank_ && head.place <= last_) {  // its kind could not start when the walk came by
      head.at = head.queue->upper_bound(last_);
      settle(head);
      if (head.at == head.queue->end()) continue;
    }
    if (best == nullptr || head.place < best->place) best = &head;
  }
  if (best == nullptr) return nullptr;
  const JobView* job = best->at->second;
  last_ = best->place;
  begun_ = true;
  ++best->at;
  settle(*best);
  return job;
}

}  // namespace ganymede::policies

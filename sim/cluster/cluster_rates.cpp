// How fast the jobs of a cluster go beside each other: links, stores, and GPUs that two of them share.

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::sim {
namespace {

constexpr double kNeverCached = std::numeric_limits<double>::infinity();

/// The mean step of a job while no other runs.
double step_alone(const RunningJob& running) {
  return running.to_read > 0 ? running.speed->reading.step_s : running.speed->step_s;
}

}  // namespace

double ClusterSimulation::next_cached() const {
  double cached_s = kNeverCached;
  for (const RunningJob& running : running_) cached_s = std::min(cached_s, running.cached_s);
  return cached_s;
}

/// The caches of these jobs' nodes have the whole dataset.
void ClusterSimulation::end_reading(double now) {
  for (RunningJob& running : running_) {
    if (running.cached_s > now) continue;
    account(running);
    running.to_read = 0;
    running.cached_s = kNeverCached;
    running.talk = talk_of(running);
  }
}

TalkingJob ClusterSimulation::talk_of(const RunningJob& running) {
  if (!running.speed->traffic) return {};
  const CollectiveTraffic& traffic = *running.speed->traffic;
  const std::vector<int> members = members_of(running.slots, pool_states_[running.pool].gpus_per_node);
  return talking_job(*fabrics_[running.pool], traffic, step_alone(running), members, first_link_[running.pool]);
}

double ClusterSimulation::packed_factor(const RunningJob& running) {
  if (!running.partner) return 1;
  const auto& family = cluster_.pools[running.pool].gpu().family;
  return cluster_.throughputs->together(family, model_of(running.job), model_of(*running.partner))->first;
}

/// The mean step of each running job, with what the others put on links and read from stores.
std::vector<double> ClusterSimulation::steps_beside_others() const {
  std::vector<const TalkingJob*> talking;
  for (const RunningJob& running : running_) talking.push_back(running.talk.uses.empty() ? nullptr : &running.talk);
  std::vector<double> steps = contention_->steps(talking);
  std::vector<Reader> readers;
  std::vector<std::size_t> reads;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    steps[i] = std::max(steps[i], step_alone(running_[i]));
    if (running_[i].to_read <= 0) continue;
    readers.push_back({steps[i], &running_[i].speed->reading});
    reads.push_back(i);
  }
  const std::vector<double> longer = steps_of_readers(readers);
  for (std::size_t k = 0; k < reads.size(); ++k) steps[reads[k]] = longer[k];
  return steps;
}

void ClusterSimulation::begin_new() {
  for (RunningJob& running : running_)
    if (!std::exchange(running.begun, true)) runner_->begin(running, states_[running.job].left);
}

void ClusterSimulation::update_rates() {
  if (runner_ != nullptr) return begin_new();
  const std::vector<double> steps = steps_beside_others();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    RunningJob& running = running_[i];
    double rate = running.speed->work_per_s * running.efficiency * packed_factor(running);
    if (steps[i] != running.speed->step_s) rate *= running.speed->step_s / steps[i];
    if (rate == running.rate) continue;  // then its end stays the same to the last bit
    account(running);
    running.rate = rate;
    running.end_s = running.progress_s + states_[running.job].left / rate;
    running.cached_s =
        running.to_read > 0 ? running.progress_s + running.to_read * running.efficiency / rate : kNeverCached;
  }
}

}  // namespace ganymede::sim

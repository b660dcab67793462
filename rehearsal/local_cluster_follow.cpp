// Nodes, workers and tasks of a rehearsed life: what the state of the run asks for is started and ended.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <set>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_cluster.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/run/run_configuration.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::int64_t kMostSteps = 200'000;
constexpr double kNoSteps = 1e-6;  // a segment of fewer steps has none

}  // namespace

void LocalCluster::follow(const sim::RunContext& context, const sim::RunState& state) {
  follow_nodes(state);
  if (state.phase_number == followed_) return;
  followed_ = state.phase_number;
  stretch_.phase = 0;
  end_task();
  const bool goes_on = state.phase == sim::RunPhase::training && workers_ && !stopping_ && !workers_ended_ &&
                       trouble_.empty() && same_members(state);
  if (!goes_on) retire_workers();
  if (state.finished) return;
  switch (state.phase) {
    case sim::RunPhase::idle:
      pause_ = 0;
      return;
    case sim::RunPhase::starting:
      start_workers(state);
      return;
    case sim::RunPhase::training:
      pause_ = 0;
      if (!workers_) start_workers(state);
      begin_stretch(context, state);
      return;
    case sim::RunPhase::evaluating:
    case sim::RunPhase::saving:
      start_task(state);
      return;
  }
}

void LocalCluster::follow_nodes(const sim::RunState& state) {
  std::vector<std::size_t> gone;
  for (const auto& [node, host] : nodes_)
    if (!state.fleet[node].held()) gone.push_back(node);
  // The workers of a node that is gone die with it, those of the others are told by their sockets.
  for (const std::size_t node : gone) end_host(node);
  for (const std::size_t node : state.fleet.alive()) {
    const sim::Node& held = state.fleet[node];
    if (!held.held()) continue;
    if (!nodes_.contains(node)) start_host(node);
    Host& host = nodes_.at(node);
    if (held.warned && !host.noticed) ::kill(host.process, SIGTERM);
    host.noticed = held.warned;
  }
}

int LocalCluster::free_slot() const {
  std::set<int> taken;
  for (const auto& [node, host] : nodes_) taken.insert(host.slot);
  int slot = 0;
  while (taken.contains(slot)) ++slot;
  return slot;
}

void LocalCluster::start_host(std::size_t node) {
  const int slot = free_slot();
  if (slot >= plan_.hosts)
    throw Failure(
        fmt::format("the policy holds more than {} nodes at once; expected --hosts {} or more", plan_.hosts, slot + 1));
  const auto boots = boots_until_.find(node);
  nodes_[node] = {start_node(pipe_, node, boots == boots_until_.end() ? 0 : boots->second), slot};
  if (boots != boots_until_.end()) boots_until_.erase(boots);
  ++facts_.nodes_started;
}

void LocalCluster::end_host(std::size_t node) {
  kill_and_bury(nodes_.at(node).process, true);
  nodes_.erase(node);
  boots_until_.erase(node);
  ++facts_.nodes_killed;
}

bool LocalCluster::same_members(const sim::RunState& state) const {
  std::vector<std::size_t> members;
  for (const std::size_t node : state.fleet.alive())
    if (state.fleet[node].member) members.push_back(node);
  return members == members_;
}

void LocalCluster::start_workers(const sim::RunState& state) {
  members_.clear();
  WorkersRequest request{.number = static_cast<std::uint64_t>(++facts_.starts), .shaping = plan_.shaping};
  for (const std::size_t node : state.fleet.alive()) {
    if (!state.fleet[node].member) continue;
    members_.push_back(node);
    request.hosts.push_back(nodes_.at(node).slot);
    request.nodes.push_back(nodes_.at(node).process);
  }
  const auto steps = plan_.steps.find(static_cast<int>(members_.size()));
  if (steps == plan_.steps.end())
    throw Failure(fmt::format("{} workers are to train, whose steps cannot be rehearsed", members_.size()));
  request.steps = &steps->second;
  request.first_row = static_cast<std::size_t>(facts_.steps_played);
  request.spaces = spaces_ ? &*spaces_ : nullptr;
  request.shaping.is_paced = !spaces_;
  request.shaping.is_delayed = !spaces_ || !spaces_->has_netem();
  const bool starting = state.phase == sim::RunPhase::starting;
  request.begins_at = starting ? moment(state.phase_end) : machine_time();
  request.loading_from = starting ? moment(state.loading_from) : request.begins_at;
  if (request.loading_from < request.begins_at) ++facts_.checkpoints_read;
  request.most_steps = kMostSteps;
  workers_ = std::make_unique<Workers>(request, pipe_, checkpoint_);
}

void LocalCluster::retire_workers() {
  if (!workers_) return;
  facts_.steps_played += workers_->board().finished();
  workers_.reset();
  stretch_ = {};
  workers_ready_ = workers_ended_ = stopping_ = false;
  trouble_.clear();
}

void LocalCluster::begin_stretch(const sim::RunContext& context, const sim::RunState& state) {
  if (segment_steps_ < kNoSteps) {  // the segment before was interrupted after its last step
    happened_.push_back({0, sim::SegmentCompleted{}, state.phase_number});
    return;
  }
  const std::int64_t played = std::max<std::int64_t>(1, std::llround(segment_steps_ / plan_.fold));
  const auto begin = [&] {
    // The segment begins with what was measured when it was decided, even if the workers have done more since.
    const Stretch before = std::exchange(stretch_, {});
    stretch_.phase = state.phase_number;
    stretch_.first = stretch_.done = stretch_.read = before.done;
    stretch_.saved = stretch_.done_saved = before.done_saved;
    stretch_.steps_each = segment_steps_ / static_cast<double>(played);
    if (stretch_.first + played > kMostSteps)
      throw Failure(fmt::format("a part of the life has more than {} steps to play", kMostSteps));
    set_pace(context, state);
    return workers_->board().set_last(stretch_.first + played);
  };
  if (!begin()) {  // the workers end their last step
    retire_workers();
    start_workers(state);
    begin();
  }
  if (workers_ready_) workers_->board().orders().go = true;
}

void LocalCluster::set_pace(const sim::RunContext& context, const sim::RunState& state) {
  const sim::Segment& segment = state.training.segment();
  LifeBoard::Orders& orders = workers_->board().orders();
  orders.checkpoint_s = sim::to_seconds(sim::checkpoint_write_time(context, state)).si * plan_.scale;
  const auto steps = [&](double count) { return std::llround(count / stretch_.steps_each); };
  const bool any = segment.checkpoint_every > 0;
  orders.every = any ? std::max<long long>(1, steps(segment.checkpoint_every)) : 0;
  // While a checkpoint is being written, its worker sets when the next one is due.
  if (stretch_.saved.since == 0)
    orders.due =
        any ? stretch_.first + std::max<long long>(0, steps(segment.checkpoint_every - segment.since_checkpoint)) : -1;
  const sim::Configuration& configuration = segment.configuration;
  for (int rank = 0; rank < workers_->board().ranks(); ++rank)
    workers_->board().slow_factor(rank) = rank < configuration.slow ? configuration.slow_factor : 1;
  const BytesPerSecond rate = plan_.shaping.rate * configuration.network;
  orders.rate_bytes_per_s = rate.si;
  if (spaces_ && configuration.network != network_) spaces_->set_rate(rate);
  network_ = configuration.network;
}

/// An evaluation or a checkpoint while nothing trains: one process does it, on the node of the first member.
void LocalCluster::start_task(const sim::RunState& state) {
  const auto member =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& node) { return state.fleet[node.first].member; });
  const double until = moment(state.phase_end);
  const bool saves = state.phase == sim::RunPhase::saving;
  const std::uint64_t phase = state.phase_number;
  task_ = start_process(member->second.process, [this, until, saves, phase] {
    if (saves)
      checkpoint_.write(until);
    else
      sleep_until(until);
    pipe_.send({Wake::Kind::task_done, phase});
  });
}

void LocalCluster::end_task() {
  if (task_ > 0) kill_and_bury(std::exchange(task_, 0), false);
}

}  // namespace ganymede::rehearsal

#include "rehearsal/life_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "common/errors.hpp"
#include "rehearsal/clock.hpp"
#include "sim/ledger/nanoseconds.hpp"
#include "sim/run/run_configuration.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr double kLook = 20e-3;  // seconds between two looks at processes that may have died
constexpr double kCause = 1;     // seconds within which the death of a node is found that made a worker fail
constexpr std::int64_t kMostSteps = 200'000;

}  // namespace

LifeWorld::LifeWorld(const LifePlan& plan) : plan_(plan), begin_(0), checkpoint_(plan.scenario->checkpoints.bytes.si) {
  if (plan.name_spaces) spaces_.emplace(plan.hosts, plan.shaping.rate);
  begin_ = machine_time();
}

LifeWorld::~LifeWorld() {
  end_task();
  crew_.reset();
  for (const auto& [node, host] : nodes_) kill_and_bury(host.process, true);
}

sim::Nanoseconds LifeWorld::now() const {
  return sim::to_nanoseconds(Seconds{(machine_time() - begin_) / plan_.scale});
}

double LifeWorld::moment(sim::Nanoseconds time) const { return begin_ + sim::to_seconds(time).si * plan_.scale; }

LifeFacts LifeWorld::facts() const {
  LifeFacts out = facts_;
  out.checkpoints_written = static_cast<int>(checkpoint_.complete());
  return out;
}

bool LifeWorld::takes(const sim::RunState& state, const sim::ScheduledEvent& event) {
  if (const auto* ready = std::get_if<sim::NodeReady>(&event.event)) {
    boots_until_[ready->node] = moment(event.at);
    return true;
  }
  if (std::holds_alternative<sim::PauseEnded>(event.event)) {
    pause_ = event.phase;
    return true;
  }
  if (std::holds_alternative<sim::FinalCheckpointDue>(event.event)) {
    // Real workers end their step first, and a real disk syncs: what the simulation begins at the last moment would be
    // too late.
    early_.emplace(moment(event.at) - plan_.margin_s, event);
    return true;
  }
  if (!std::holds_alternative<sim::SegmentCompleted>(event.event)) return false;
  segment_steps_ = state.training.segment().at(event.at).steps;
  return true;
}

std::optional<sim::ScheduledEvent> LifeWorld::next(sim::SimulationQueue& queue) {
  while (true) {
    throw_if_over();
    look_at_processes();
    while (const std::optional<Wake> wake = pipe_.take()) hear(*wake);
    check_crew();
    if (!happened_.empty()) {
      sim::ScheduledEvent event = happened_.front();
      happened_.pop_front();
      event.at = now();
      return event;
    }
    double wait = kLook;
    if (!early_.empty()) {
      const auto first = early_.begin();
      wait = std::min(wait, first->first - machine_time());
      if (wait <= 0) {
        sim::ScheduledEvent event = first->second;
        early_.erase(first);
        event.at = now();
        return event;
      }
    }
    if (!queue.empty()) {
      const double due = moment(queue.next_at()), late = machine_time() - due;
      if (late >= 0) {
        sim::ScheduledEvent event = queue.pop();
        facts_.late_s = std::max(facts_.late_s, late);
        event.at = std::max(event.at, now());
        return event;
      }
      wait = std::min(wait, -late);
    } else if (early_.empty() && pause_ == 0 && stretch_.phase == 0 && boots_until_.empty() &&
               std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return !node.second.ready; })) {
      return std::nullopt;
    }
    pipe_.wait(wait);
  }
}

void LifeWorld::throw_if_over() const {
  if (EndSignals::asked()) throw Failure("interrupted; all processes of the life have ended");
  if (machine_time() - begin_ > plan_.longest_s)
    throw Failure(fmt::format("the life has taken {} here, several times as long as predicted, and was given up",
                              to_string(Seconds{machine_time() - begin_})));
}

/// A node whose process has died by itself has crashed.
void LifeWorld::look_at_processes() {
  for (auto& [node, host] : nodes_) {
    if (host.lost || !how_it_ended(host.process)) continue;
    host.lost = true;
    happened_.push_back({0, sim::NodeCrashed{node}});
  }
}

void LifeWorld::hear(const Wake& wake) {
  switch (wake.kind) {
    case Wake::Kind::node_ready:
      if (const auto node = nodes_.find(wake.number); node != nodes_.end()) {
        node->second.ready = true;
        happened_.push_back({0, sim::NodeReady{wake.number}});
      }
      return;
    case Wake::Kind::notice_heard:
      ++facts_.notices_heard;
      return;
    case Wake::Kind::crew_ready:
      if (!crew_ || crew_->number() != wake.number) return;
      crew_ready_ = true;
      if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
      if (stretch_.phase != 0) crew_->board().orders().go = true;
      return;
    case Wake::Kind::crew_ended:
      if (!crew_ || crew_->number() != wake.number) return;
      crew_ended_ = true;
      if (!stopping_) happened_.push_back({0, sim::SegmentCompleted{}, stretch_.phase});
      return;
    case Wake::Kind::task_done:
      if (pause_ == wake.number) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
      return;
  }
}

/// A worker fails when the node of another one dies; if no node did, the life cannot go on.
void LifeWorld::check_crew() {
  if (!crew_) return;
  if (const std::string fault = crew_->fault(); !fault.empty() && trouble_.empty()) {
    trouble_ = fault;
    trouble_since_ = machine_time();
  }
  if (!trouble_.empty() && machine_time() - trouble_since_ > kCause)
    throw Failure("the training program has failed: " + trouble_);
}

void LifeWorld::measure(sim::RunState& state) {
  if (!crew_ || stretch_.phase != state.phase_number) {
    state.training.measure({}, *state.training.segment().steps, state.training.segment().checkpoint_ns);
    return;
  }
  LifeBoard& board = crew_->board();
  const LifeBoard::Saved saved = board.saved();
  const std::int64_t done = board.finished();
  sim::MeasuredSegment measured;
  measured.progress.steps = static_cast<double>(done - stretch_.first) * stretch_.steps_each;
  measured.progress.checkpoints = saved.count - stretch_.saved.count;
  if (measured.progress.checkpoints > 0)
    measured.durable_steps =
        static_cast<double>(std::max<std::int64_t>(0, saved.after_step - stretch_.first)) * stretch_.steps_each;
  if (saved.since > 0)
    measured.progress.writing_ns = (machine_time() - saved.since) / plan_.scale * sim::kNanosecondsPerSecond;
  double checkpoint_ns = state.training.segment().checkpoint_ns;
  if (measured.progress.checkpoints > 0)
    checkpoint_ns = (saved.seconds - stretch_.saved.seconds) / plan_.scale * sim::kNanosecondsPerSecond /
                    static_cast<double>(measured.progress.checkpoints);
  if (stretch_.measured == nullptr) stretch_.measured = &distributions_.emplace_back(*state.training.segment().steps);
  sim::StepDistribution& steps = *stretch_.measured;
  if (done > stretch_.first) {
    const StepParts parts = PlayedSteps(board.played(stretch_.first, done), crew_->waiting_phases()).parts();
    const double factor = 1 / (plan_.scale * stretch_.steps_each);
    steps.mean = steps.low = steps.high = Seconds{parts.step * factor};
    steps.half_width = steps.own_variance = 0;
    const std::vector<int>& nodes = state.training.segment().configuration.nodes;
    for (std::size_t p = 0; p < nodes.size(); ++p) {
      const auto each = [&](double seconds) { return Seconds{seconds * factor * nodes[p]}; };
      steps.pools[p].compute = each(parts.compute);
      steps.pools[p].exposed = each(parts.exposed);
      steps.pools[p].straggler = each(parts.straggler);
      steps.pools[p].stall = each(parts.input_stall);
    }
  }
  state.training.measure(measured, steps, checkpoint_ns);
}

sim::Nanoseconds LifeWorld::stop_training() {
  if (!crew_ || crew_ended_ || !crew_->board().orders().go) return now();
  stopping_ = true;
  crew_->board().stop();
  while (!crew_ended_ && trouble_.empty() &&
         std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.lost; })) {
    throw_if_over();
    look_at_processes();
    while (const std::optional<Wake> wake = pipe_.take()) hear(*wake);
    check_crew();
    if (!crew_ended_) pipe_.wait(1e-3);
  }
  return now();
}

void LifeWorld::follow(const sim::RunContext& context, const sim::RunState& state) {
  follow_nodes(state);
  if (state.phase_number == followed_) return;
  followed_ = state.phase_number;
  stretch_.phase = 0;
  end_task();
  const bool goes_on = state.phase == sim::RunPhase::training && crew_ && !stopping_ && !crew_ended_ &&
                       trouble_.empty() && same_members(state);
  if (!goes_on) retire_crew();
  if (state.finished) return;
  switch (state.phase) {
    case sim::RunPhase::idle:
      pause_ = 0;
      return;
    case sim::RunPhase::starting:
      start_crew(state);
      return;
    case sim::RunPhase::training:
      pause_ = 0;
      if (!crew_) start_crew(state);
      begin_stretch(context, state);
      return;
    case sim::RunPhase::evaluating:
    case sim::RunPhase::saving:
      start_task(state);
      return;
  }
}

void LifeWorld::follow_nodes(const sim::RunState& state) {
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

int LifeWorld::free_slot() const {
  std::set<int> taken;
  for (const auto& [node, host] : nodes_) taken.insert(host.slot);
  int slot = 0;
  while (taken.contains(slot)) ++slot;
  return slot;
}

void LifeWorld::start_host(std::size_t node) {
  const int slot = free_slot();
  if (slot >= plan_.hosts)
    throw Failure(
        fmt::format("the policy holds more than {} nodes at once; expected --hosts {} or more", plan_.hosts, slot + 1));
  const auto boots = boots_until_.find(node);
  nodes_[node] = {start_node(pipe_, node, boots == boots_until_.end() ? 0 : boots->second), slot};
  if (boots != boots_until_.end()) boots_until_.erase(boots);
  ++facts_.nodes_started;
}

void LifeWorld::end_host(std::size_t node) {
  kill_and_bury(nodes_.at(node).process, true);
  nodes_.erase(node);
  boots_until_.erase(node);
  ++facts_.nodes_killed;
}

bool LifeWorld::same_members(const sim::RunState& state) const {
  std::vector<std::size_t> members;
  for (const std::size_t node : state.fleet.alive())
    if (state.fleet[node].member) members.push_back(node);
  return members == members_;
}

void LifeWorld::start_crew(const sim::RunState& state) {
  members_.clear();
  CrewRequest request{.number = static_cast<std::uint64_t>(++facts_.crews), .shaping = plan_.shaping};
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
  const bool starting = state.phase == sim::RunPhase::starting;
  request.begins_at = starting ? moment(state.phase_end) : machine_time();
  request.loading_from = starting ? moment(state.loading_from) : request.begins_at;
  if (request.loading_from < request.begins_at) ++facts_.checkpoints_read;
  request.most_steps = kMostSteps;
  crew_ = std::make_unique<Crew>(request, pipe_, checkpoint_);
}

void LifeWorld::retire_crew() {
  if (!crew_) return;
  facts_.steps_played += crew_->board().finished();
  crew_.reset();
  crew_ready_ = crew_ended_ = stopping_ = false;
  trouble_.clear();
}

void LifeWorld::begin_stretch(const sim::RunContext& context, const sim::RunState& state) {
  LifeBoard& board = crew_->board();
  stretch_ = {.phase = state.phase_number, .first = board.finished(), .saved = board.saved()};
  const std::int64_t played = std::max<std::int64_t>(1, std::llround(segment_steps_ / plan_.fold));
  if (stretch_.first + played > kMostSteps)
    throw Failure(fmt::format("a part of the life has more than {} steps to play", kMostSteps));
  stretch_.steps_each = segment_steps_ / static_cast<double>(played);
  set_pace(context, state);
  board.orders().last = stretch_.first + played;
  if (crew_ready_) board.orders().go = true;
}

void LifeWorld::set_pace(const sim::RunContext& context, const sim::RunState& state) {
  const sim::Segment& segment = state.training.segment();
  LifeBoard::Orders& orders = crew_->board().orders();
  orders.checkpoint_s = sim::to_seconds(sim::checkpoint_write_time(context, state)).si * plan_.scale;
  const auto steps = [&](double count) { return std::llround(count / stretch_.steps_each); };
  const bool any = segment.checkpoint_every > 0;
  orders.every = any ? std::max<long long>(1, steps(segment.checkpoint_every)) : 0;
  // While a checkpoint is being written, its worker sets when the next one is due.
  if (stretch_.saved.since == 0)
    orders.due =
        any ? stretch_.first + std::max<long long>(0, steps(segment.checkpoint_every - segment.since_checkpoint)) : -1;
  const sim::Configuration& configuration = segment.configuration;
  for (int rank = 0; rank < crew_->board().ranks(); ++rank)
    crew_->board().slow_factor(rank) = rank < configuration.slow ? configuration.slow_factor : 1;
  const BytesPerSecond rate = plan_.shaping.rate * configuration.network;
  orders.rate_bytes_per_s = rate.si;
  if (spaces_ && configuration.network != network_) spaces_->set_rate(rate);
  network_ = configuration.network;
}

/// An evaluation or a checkpoint while nothing trains: one process does it, on the node of the first member.
void LifeWorld::start_task(const sim::RunState& state) {
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

void LifeWorld::end_task() {
  if (task_ > 0) kill_and_bury(std::exchange(task_, 0), false);
}

}  // namespace ganymede::rehearsal

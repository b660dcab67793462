#include "rehearsal/local_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_network.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr double kLook = 20e-3;  // seconds between two looks at processes that may have died
constexpr double kCause = 1;     // seconds within which the death of a node is found that made a worker fail

}  // namespace

LocalCluster::LocalCluster(const LifePlan& plan)
    : plan_(plan), begin_(0), checkpoint_(plan.scenario->checkpoints.bytes.si) {
  if (plan.name_spaces) spaces_.emplace(plan.hosts, plan.shaping.rate, plan.shaping.latency, plan.shaping.loss);
  begin_ = machine_time();
}

LocalCluster::~LocalCluster() {
  end_task();
  workers_.reset();
  for (const auto& [node, host] : nodes_) kill_and_bury(host.process, true);
}

sim::Nanoseconds LocalCluster::now() const {
  return sim::to_nanoseconds(Seconds{(machine_time() - begin_) / plan_.scale});
}

double LocalCluster::moment(sim::Nanoseconds time) const { return begin_ + sim::to_seconds(time).si * plan_.scale; }

LifeFacts LocalCluster::facts() const {
  LifeFacts out = facts_;
  out.checkpoints_written = static_cast<int>(checkpoint_.complete());
  return out;
}

bool LocalCluster::takes(const sim::RunState& state, const sim::ScheduledEvent& event) {
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

std::optional<sim::ScheduledEvent> LocalCluster::next(sim::SimulationQueue& queue) {
  while (true) {
    throw_if_over();
    look_at_processes();
    while (const std::optional<Wake> wake = pipe_.take()) hear(*wake);
    check_workers();
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

void LocalCluster::throw_if_over() const {
  if (EndSignals::asked()) throw Interrupted("interrupted; all processes of the life have ended");
  if (machine_time() - begin_ > plan_.longest_s)
    throw Failure(fmt::format("the life has taken {} here, several times as long as predicted, and was given up",
                              to_string(Seconds{machine_time() - begin_})));
}

/// A node whose process has died by itself has crashed.
void LocalCluster::look_at_processes() {
  for (auto& [node, host] : nodes_) {
    if (host.lost || !how_it_ended(host.process)) continue;
    host.lost = true;
    happened_.push_back({0, sim::NodeCrashed{node}});
  }
}

void LocalCluster::hear(const Wake& wake) {
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
    case Wake::Kind::workers_ready:
      if (!workers_ || workers_->number() != wake.number) return;
      workers_ready_ = true;
      if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
      if (stretch_.phase != 0) workers_->board().orders().go = true;
      return;
    case Wake::Kind::workers_ended:
      if (!workers_ || workers_->number() != wake.number) return;
      workers_ended_ = true;
      if (!stopping_ && stretch_.phase != 0) happened_.push_back({0, sim::SegmentCompleted{}, stretch_.phase});
      return;
    case Wake::Kind::task_done:
      if (pause_ == wake.number) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
      return;
  }
}

/// A worker fails when the node of another one dies; if no node did, the life cannot go on.
void LocalCluster::check_workers() {
  if (!workers_) return;
  if (const std::string fault = workers_->fault(); !fault.empty() && trouble_.empty()) {
    trouble_ = fault;
    trouble_since_ = machine_time();
  }
  if (!trouble_.empty() && machine_time() - trouble_since_ > kCause)
    throw Failure("the training program has failed: " + trouble_);
}

/// The mean step of the stretch; every step is read once, however often the stretch is measured.
StepParts LocalCluster::parts_until(std::int64_t done) {
  if (done > stretch_.read) {
    const StepParts more =
        PlayedSteps(workers_->board().played(stretch_.read, done), workers_->waiting_phases()).parts();
    const double share =
        static_cast<double>(done - stretch_.read) / static_cast<double>(done - stretch_.first);  // of these steps
    for (double StepParts::*part :
         {&StepParts::step, &StepParts::compute, &StepParts::exposed, &StepParts::straggler, &StepParts::input_stall})
      stretch_.parts.*part += share * (more.*part - stretch_.parts.*part);
    stretch_.read = done;
  }
  return stretch_.parts;
}

void LocalCluster::measure(sim::RunState& state) {
  if (!workers_ || stretch_.phase != state.phase_number) {
    state.training.measure({}, *state.training.segment().steps, state.training.segment().checkpoint_ns);
    return;
  }
  LifeBoard& board = workers_->board();
  const LifeBoard::Saved saved = stretch_.done_saved = board.saved();
  const std::int64_t done = stretch_.done = board.finished();
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
    const StepParts parts = parts_until(done);
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

sim::Nanoseconds LocalCluster::stop_training() {
  if (!workers_ || workers_ended_ || !workers_->board().orders().go) return now();
  stopping_ = true;
  workers_->board().stop();
  while (!workers_ended_ && trouble_.empty() &&
         std::none_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.lost; })) {
    throw_if_over();
    look_at_processes();
    while (const std::optional<Wake> wake = pipe_.take()) hear(*wake);
    check_workers();
    if (!workers_ended_) pipe_.wait(1e-3);
  }
  return now();
}

}  // namespace ganymede::rehearsal

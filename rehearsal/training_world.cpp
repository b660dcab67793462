#include "rehearsal/training_world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/host_connections.hpp"
#include "sim/ledger/nanoseconds.hpp"
#include "sim/run/run_configuration.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr double kGlance = 10e-3;     // seconds between two looks at the log
constexpr double kStopBefore = 2;     // real seconds before a node goes at which the training is stopped
constexpr double kStopsWithin = 120;  // real seconds for a step, a checkpoint and the end of all processes
constexpr int kLeastImages = 2;       // of a process, as batch norm needs a variance

}  // namespace

int processes_for(int nodes, int batch) {
  for (int processes = nodes; processes > 1; --processes)
    if (batch % processes == 0 && batch / processes >= kLeastImages) return processes;
  return 1;
}

TrainingWorld::TrainingWorld(const ElasticPlan& plan) : plan_(plan), begin_(machine_time()) {}

sim::Nanoseconds TrainingWorld::now() const {
  return sim::to_nanoseconds(Seconds{(machine_time() - begin_) / plan_.scale});
}

bool TrainingWorld::takes(const sim::RunState& state, const sim::ScheduledEvent& event) {
  const auto before = [&] {
    early_.emplace(begin_ + sim::to_seconds(event.at).si * plan_.scale - kStopBefore, event);
    return true;
  };
  if (std::holds_alternative<sim::SegmentCompleted>(event.event)) {
    segment_ = event.phase;
    return true;
  }
  if (std::holds_alternative<sim::PauseEnded>(event.event)) {
    // Stopping the training has written the checkpoint already.
    if (state.phase == sim::RunPhase::saving) happened_.push_back(event);
    pause_ = state.phase == sim::RunPhase::saving ? 0 : event.phase;
    return true;
  }
  if (const auto* gone = std::get_if<sim::NodeReclaimed>(&event.event))
    return state.fleet[gone->node].warned ? before() : false;
  return std::holds_alternative<sim::FinalCheckpointDue>(event.event) ? before() : false;
}

std::optional<sim::ScheduledEvent> TrainingWorld::next(sim::SimulationQueue& queue) {
  while (true) {
    if (EndSignals::asked()) {
      if (crew_) stop_crew();
      throw ElasticInterrupted{log_.step};
    }
    look();
    const auto happens = [&](sim::ScheduledEvent event) {
      event.at = std::max(event.at, now());
      return event;
    };
    if (!happened_.empty()) {
      sim::ScheduledEvent event = happened_.front();
      happened_.pop_front();
      event.at = 0;
      return happens(event);
    }
    if (!early_.empty() && early_.begin()->first <= machine_time()) {
      sim::ScheduledEvent event = early_.begin()->second;
      early_.erase(early_.begin());
      const auto* gone = std::get_if<sim::NodeReclaimed>(&event.event);
      if (gone != nullptr && crew_ && std::count(members_.begin(), members_.end(), gone->node) > 0) stop_crew();
      event.at = 0;
      return happens(event);
    }
    if (!queue.empty() && queue.next_at() <= now()) return happens(queue.pop());
    if (queue.empty() && early_.empty() && !crew_) return std::nullopt;
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  }
}

/// Finds out what the processes have done since the last look.
void TrainingWorld::look() {
  if (!crew_ || ended_) return;
  const std::optional<int> status = crew_->ended();
  log_ = crew_->log();
  if (!up_ && log_.begun) {
    up_ = true;
    starts_.back().from = log_.first;
    if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
  }
  if (!status) return;
  ended_ = true;
  ElasticStart& start = starts_.back();
  start.to = log_.end.empty() ? log_.saved : log_.step;
  start.end = log_.end;
  if (log_.end == "finished" && *status == 0) {
    finished_ = true;
    if (segment_ != 0) happened_.push_back({0, sim::SegmentCompleted{}, segment_});
    return;
  }
  if (stopping_) return;
  std::optional<int> rank = crew_->killed_rank();
  if (!rank && *status > 128) rank = start.processes - 1;  // a launcher that does not say which
  if (!rank) throw Failure("the training has failed: " + crew_->errors());
  start.end = fmt::format("rank {} was lost", *rank);
  const auto lost = static_cast<std::size_t>(std::clamp<int>(*rank, 0, static_cast<int>(members_.size()) - 1));
  happened_.push_back({0, sim::NodeCrashed{members_[lost]}});
}

void TrainingWorld::wait_for_end() {
  const double begin = machine_time();
  for (look(); !ended_; look()) {
    if (machine_time() - begin > kStopsWithin)
      throw Failure(fmt::format("the training did not end within {:.0f} s", kStopsWithin));
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  }
}

void TrainingWorld::stop_crew() {
  if (ended_) return;
  stopping_ = true;
  // Processes that are not connected yet have no step to end, and the signal would end them at once.
  const double begin = machine_time();
  for (look(); !up_ && !ended_ && machine_time() - begin < kStopsWithin; look())
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  crew_->ask_to_stop();
  wait_for_end();
}

sim::Nanoseconds TrainingWorld::stop_training() {
  if (crew_) stop_crew();
  return now();
}

void TrainingWorld::measure(sim::RunState& state) {
  look();
  const sim::Segment& segment = state.training.segment();
  sim::MeasuredSegment measured;
  const double base = state.training.steps();
  const bool whole = ended_ && (log_.end == "stopped" || log_.end == "finished");  // it wrote a checkpoint at the end
  const auto step = static_cast<double>(std::max(log_.step, log_.saved));
  const double saved = whole ? step : static_cast<double>(log_.saved);
  measured.progress.steps = std::max(0.0, step - base);
  measured.progress.checkpoints = log_.checkpoints - checkpoints_before_ + (whole ? 1 : 0);
  if (saved <= base) measured.progress.checkpoints = 0;
  if (measured.progress.checkpoints > 0) measured.durable_steps = saved - base;
  sim::StepDistribution& steps = distributions_.emplace_back(*segment.steps);
  steps.images = plan_.batch;
  if (log_.step > log_.first) {
    const double mean = log_.trained_s / static_cast<double>(log_.step - log_.first) / plan_.scale;
    steps.mean = steps.low = steps.high = Seconds{std::max(1e-9, mean)};
    steps.half_width = steps.own_variance = 0;
    for (std::size_t p = 0; p < steps.pools.size(); ++p) {
      sim::PoolStep& pool = steps.pools[p];
      pool.compute = Seconds{mean * segment.configuration.nodes[p]};
      pool.exposed = pool.straggler = pool.stall = pool.lost = Seconds{0};
    }
  }
  const double writing_s = log_.checkpoints > 0 ? log_.saving_s / static_cast<double>(log_.checkpoints) : 0;
  state.training.measure(measured, steps, writing_s / plan_.scale * sim::kNanosecondsPerSecond);
}

void TrainingWorld::follow(const sim::RunContext& context, const sim::RunState& state) {
  if (state.phase_number == followed_ && !state.finished) return;
  followed_ = state.phase_number;
  const bool trains = state.phase == sim::RunPhase::training && !state.finished;
  if (!trains) segment_ = 0;
  checkpoints_before_ = log_.checkpoints;
  std::vector<std::size_t> members;
  for (const std::size_t node : state.fleet.alive())
    if (state.fleet[node].member) members.push_back(node);
  const bool goes_on = trains && crew_ && !stopping_ && members == members_;
  if (crew_ && !goes_on) end_crew(state);
  if (state.finished || state.phase == sim::RunPhase::idle) {
    pause_ = 0;
    return;
  }
  if (state.phase == sim::RunPhase::starting || (trains && !crew_)) {
    members_ = members;
    start_crew(context, state);
  }
  if (trains && finished_) happened_.push_back({0, sim::SegmentCompleted{}, segment_});
}

/// Ends the processes of a crew that does not go on: one of them is lost with its node, or all have been stopped.
void TrainingWorld::end_crew(const sim::RunState& state) {
  if (!ended_) {
    const auto lost =
        std::find_if(members_.begin(), members_.end(), [&](std::size_t node) { return !state.fleet[node].held(); });
    if (lost == members_.end()) {
      stop_crew();
    } else {
      const int rank = std::min(static_cast<int>(lost - members_.begin()), starts_.back().processes - 1);
      stopping_ = true;
      const double begin = machine_time();
      // A process that has just been forked is not known as a rank yet.
      for (look(); !ended_ && machine_time() - begin < kStopsWithin; look()) {
        crew_->kill_rank(rank);
        ::usleep(static_cast<useconds_t>(kGlance * 1e6));
      }
      starts_.back().end = fmt::format("rank {} was lost", rank);
    }
  }
  crew_.reset();
  up_ = ended_ = stopping_ = false;
}

void TrainingWorld::start_crew(const sim::RunContext& context, const sim::RunState& state) {
  const auto nodes = static_cast<int>(members_.size());
  const int processes = processes_for(nodes, plan_.batch);
  log_ = {};
  checkpoints_before_ = 0;
  if (finished_) {  // the last step was done when the training was to be stopped: there is nothing to start
    if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
    return;
  }
  starts_.push_back({sim::to_seconds(now()).si, nodes, processes});
  // The time between checkpoints holds as many steps as the last start had in it; before any, as were predicted.
  sim::StepDistribution steps = context.steps_of(sim::configuration_of(context, state));
  steps.images = plan_.batch;
  if (!distributions_.empty()) steps.mean = distributions_.back().mean;
  const double every = sim::steps_between_checkpoints(context, state, steps);
  crew_ = std::make_unique<TrainingCrew>(plan_.command(processes, std::llround(every)), plan_.files);
}

}  // namespace ganymede::rehearsal

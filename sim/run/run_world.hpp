#pragma once
// Where a run takes place. A simulated run needs none: all events happen at their scheduled times. A rehearsed run has
// real processes, and what they do happens when they have done it (rehearsal/local_cluster.hpp).

#include <optional>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

class RunWorld {
 public:
  virtual ~RunWorld() = default;

  /// True: the world itself finds out when this event happens, and will return it from next(); its scheduled time is
  /// what was predicted. `state` is the state that scheduled it.
  virtual bool takes(const RunState& state, const ScheduledEvent& event) = 0;
  /// Waits for the next event, be it the world's own or one of the queue that is due, and returns it with the time at
  /// which it really happened; none: nothing will ever happen.
  virtual std::optional<ScheduledEvent> next(SimulationQueue& queue) = 0;
  /// Replaces what was predicted of the segment under way by what was measured.
  virtual void measure(RunState& state) = 0;
  /// Lets the workers end the step under way, after which none of them trains; returns the time at which it ended.
  virtual Nanoseconds stop_training() = 0;
  /// Does what the state asks for: starts and ends nodes, workers, checkpoints and evaluations.
  virtual void follow(const RunContext& context, const RunState& state) = 0;
};

}  // namespace ganymede::sim

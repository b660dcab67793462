#pragma once
// A segment of a run: steps of one configuration with checkpoints in between, as a formula of time. A run costs as much
// to simulate as it has segments and events, whatever its number of steps.

#include <cstdint>
#include <optional>

#include "sim/run/run_clock.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// Progress of a segment at one moment.
struct SegmentProgress {
  double steps = 0;              ///< since the segment's start; the last may be under way
  std::int64_t checkpoints = 0;  ///< complete
  double writing_ns = 0;         ///< spent so far on a checkpoint that is under way
};

/// Measurements of a segment that was played for real (rehearsal/), in place of what its formula says.
struct MeasuredSegment {
  SegmentProgress progress;  ///< at the moment of the measurement
  double durable_steps = 0;  ///< steps before the last complete checkpoint
};

/// Steps of one configuration from `start` on. All workers wait while a checkpoint is written. For example, with a
/// checkpoint every 100 steps of 1 s that takes 5 s to write, and 40 steps since the last one: 60 s of steps, 5 s of
/// writing, then cycles of 100 s and 5 s.
struct Segment {
  Nanoseconds start = 0;
  const StepDistribution* steps = nullptr;
  Configuration configuration;
  double step_ns = 1;             ///< mean length of a step
  double per_step = 1;            ///< units of the target (steps or images) that a step trains
  double checkpoint_every = 0;    ///< steps between two checkpoints; 0: none are written
  double since_checkpoint = 0;    ///< steps since the last checkpoint, at `start`
  double checkpoint_ns = 0;       ///< time to write one checkpoint
  double checkpoint_written = 0;  ///< share of the first checkpoint that is already written at `start`, 0 … 1
  std::optional<MeasuredSegment> measured = {};  ///< what at() and durable_steps() return, if anything was measured

  SegmentProgress at(Nanoseconds now) const;
  /// The time at which `steps` steps are done, the checkpoints before them written.
  Nanoseconds time_of(double steps) const;
  /// Steps before the last of `checkpoints` complete checkpoints. Precondition: checkpoints >= 1.
  double durable_steps(std::int64_t checkpoints) const;

 private:
  /// Steps before the first checkpoint.
  double steps_to_first_checkpoint() const;
};

/// Steps of which `more` are to follow on `so_far` that have been trained, so that the last of all is whole; more than
/// 0.
double steps_to_whole(double so_far, double more);

}  // namespace ganymede::sim

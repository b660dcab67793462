#pragma once
// The first question to a model of a machine: does it predict that machine? Take the earlier half of a recording,
// simulate one worker on the device that made it, and compare with another run that nobody traced.

#include <cstdint>

#include "common/units.hpp"
#include "sim/run/result.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

struct SelfPrediction {
  Seconds total;
  Interval interval_s;  ///< 95 %
  std::size_t steps_fitted = 0;
};

/// Predicts the wall time of `steps` steps at the batch of `trace`'s first entry on the trace's own device. ConfigError
/// if the trace has fewer than two steps.
SelfPrediction predict_own_device(const StepTrace& trace, std::int64_t steps);

}  // namespace ganymede

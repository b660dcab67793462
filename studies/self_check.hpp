#pragma once
// Checks a trace against the machine that recorded it. The first half of the trace predicts the time of a separate run
// on that machine, which is not traced.

#include <cstdint>

#include "common/units.hpp"
#include "sim/run/result.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::studies {

struct SelfPrediction {
  Seconds total;                 ///< predicted time of all steps
  sim::Interval interval_s;      ///< 95 % interval of that time, in seconds
  std::size_t steps_fitted = 0;  ///< steps of the trace that were used
};

/// Predicts the time of `steps` steps at the batch size of the trace's first entry, on the trace's own device. Throws
/// ConfigError if the trace has fewer than two steps.
SelfPrediction predict_own_device(const traces::StepTrace& trace, std::int64_t steps);

}  // namespace ganymede::studies

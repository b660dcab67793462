#pragma once
// Checks a trace against the machine that recorded it. The first half of the trace predicts how long a separate run
// takes there, which is not traced.

#include <cstdint>

#include "common/units.hpp"
#include "sim/run/result.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::studies {

struct SelfPrediction {
  Seconds total;                 ///< of all steps
  sim::Interval interval_s;      ///< 95 %
  std::size_t steps_fitted = 0;  ///< steps of the trace that were used
};

/// Predicts the time of `steps` steps at the batch size of the trace's first entry, on the trace's own device. Throws
/// ConfigError if the trace has fewer than two steps.
SelfPrediction predict_own_device(const traces::StepTrace& trace, std::int64_t steps);

}  // namespace ganymede::studies

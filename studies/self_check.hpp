#pragma once
// Checks a trace against the machine that recorded it. The first half of the trace predicts the time of a separate run
// on that machine, which is not traced.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/units.hpp"
#include "kernel/train.hpp"
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

/// A prediction beside the run that it predicts.
struct SelfCheck {
  SelfPrediction predicted;
  double measured_s = 0;
  double measured_wait = 0;  ///< threads that waited for a processor during the measurement
  double recorded_wait = 0;  ///< threads that waited for a processor while the trace was recorded
  double fp32 = 1;           ///< rate of matrix products now, relative to that in the trace
  double memory = 1;         ///< rate of copying memory now, relative to that in the trace
  std::int64_t steps = 0;
  int batch = 0;

  /// True if the machine's rates are so different that it counts as another one than the trace's.
  bool other_speed() const;
  double error() const { return predicted.total.si / measured_s - 1; }
  bool holds() const { return measured_s >= predicted.interval_s.low && measured_s <= predicted.interval_s.high; }
};

/// Predicts as many steps as the trace's first entry has and trains them here, up to three times if other programs
/// disturb it. Of `device` only the options that say where the training runs are used. `waiting`, if given, tells how
/// long it will take, and lasts as long as the object that it returns. Throws ConfigError if the trace was recorded on
/// another device.
SelfCheck check_own_device(const traces::StepTrace& trace, const kernel::TrainOptions& device,
                           const std::function<std::shared_ptr<void>(double expected_s)>& waiting = {});
/// The check in words for people.
std::string to_table(const SelfCheck& outcome, const std::string& device);
std::string to_json(const SelfCheck& outcome);

}  // namespace ganymede::studies

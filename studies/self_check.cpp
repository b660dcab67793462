#include "studies/self_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "calibration/trace_tables.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "kernel/device_limits.hpp"
#include "sim/run/simulate.hpp"
#include "studies/bare_scenario.hpp"

namespace ganymede::studies {
namespace {

/// A scenario on one node with one worker: the device of the trace, without a price.
sim::Scenario on_own_device(const traces::StepTrace& trace, std::int64_t steps) {
  platforms::Gpu device;
  device.name = trace.device.name;
  device.memory = trace.device.memory;
  device.fp32 = trace.device.fp32;
  device.memory_bandwidth = trace.device.memory_bandwidth;
  platforms::Instance instance;
  instance.name = "this-device";
  instance.gpu = device.name;
  instance.gpus = 1;
  platforms::Platform platform;
  platform.name = "this machine";
  platform.gpus = {device};
  platform.instances = {instance};
  return bare_scenario(std::make_shared<const platforms::Platform>(platform), instance.name, 1, 1, trace, steps);
}

// The mean number of threads that wait for a processor above which other programs have disturbed the measurement.
constexpr double kDisturbed = 0.1;
// Relative change of a rate above which the machine counts as another one than the trace's. A virtual machine may move
// to other cores between two runs: on an AMD EPYC two threads were 1.5 times as fast on one cache as on two, with less
// memory bandwidth.
constexpr double kOtherSpeed = 0.15;
constexpr int kAttempts = 3;

std::string disturbance(const SelfCheck& outcome) {
  std::string text;
  const auto say = [&](const char* when, double wait) {
    if (wait > kDisturbed)
      text += fmt::format("  other programs were running {}: {:.1f} threads waited for a processor on average\n", when,
                          wait);
  };
  if (outcome.other_speed())
    text += fmt::format(
        "  this machine now multiplies matrices at {:.0f} % and copies memory at {:.0f} % of the rates in the trace\n",
        100 * outcome.fp32, 100 * outcome.memory);
  say("while the trace was recorded", outcome.recorded_wait);
  say(fmt::format("during the measurement ({} attempts)", kAttempts).c_str(), outcome.measured_wait);
  return text;
}

}  // namespace

bool SelfCheck::other_speed() const { return std::max(std::abs(fp32 - 1), std::abs(memory - 1)) > kOtherSpeed; }

SelfPrediction predict_own_device(const traces::StepTrace& trace, std::int64_t steps) {
  const traces::TraceBatch& batch = trace.batches.front();
  const std::size_t half = batch.wall_s.size() / 2;
  if (half == 0) throw ConfigError("a trace of one step cannot be checked: record at least two");
  const sim::Scenario scenario = on_own_device(trace, steps);
  std::istringstream answer(run_child([&] {
    const sim::Result result = sim::simulate(scenario, calibration::measured_workload(trace, batch, 0, half));
    return fmt::format("{} {} {}", result.total.si, result.interval_s.low, result.interval_s.high);
  }));
  SelfPrediction prediction;
  answer >> prediction.total.si >> prediction.interval_s.low >> prediction.interval_s.high;
  prediction.steps_fitted = half;
  return prediction;
}

SelfCheck check_own_device(const traces::StepTrace& trace, const kernel::TrainOptions& device,
                           const std::function<std::shared_ptr<void>(double expected_s)>& waiting) {
  kernel::TrainOptions train = device;
  train.model = trace.model;
  train.batch = trace.batches.front().batch;
  train.seed = trace.seed;
  train.threads = trace.device.threads;
  train.trace = false;
  SelfCheck outcome;
  outcome.batch = train.batch;
  outcome.steps = static_cast<std::int64_t>(trace.batches.front().wall_s.size());
  outcome.predicted = predict_own_device(trace, outcome.steps);
  kernel::Trainer trainer(train);
  if (trainer.backend().info.device != trace.device.name)
    throw ConfigError(
        fmt::format("--check: the trace was recorded on \"{}\", this is \"{}\"; the check needs the same device",
                    trace.device.name, trainer.backend().info.device));
  const auto shown =
      waiting ? waiting(outcome.predicted.total.si * (1 + static_cast<double>(kernel::warmup_of(outcome.steps)) /
                                                              static_cast<double>(outcome.steps)))
              : nullptr;
  trainer.run(kernel::warmup_of(outcome.steps));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const traces::TraceDevice now = kernel::measure_device(trainer.backend());
    outcome.fp32 = now.fp32 / trace.device.fp32;
    outcome.memory = now.memory_bandwidth / trace.device.memory_bandwidth;
    const double before = kernel::processor_wait_s();
    outcome.measured_s = trainer.run(outcome.steps).seconds;
    outcome.measured_wait = (kernel::processor_wait_s() - before) / outcome.measured_s;
    if (outcome.measured_wait <= kDisturbed && !outcome.other_speed()) break;
  }
  outcome.recorded_wait = calibration::mean_waiting_threads(trace.batches.front());
  return outcome;
}

std::string to_table(const SelfCheck& outcome, const std::string& device) {
  const auto& [low, high] = outcome.predicted.interval_s;
  return fmt::format(
             "Self-check on {} at batch {}: fitted on the first {} steps of the trace, then {} steps run without "
             "tracing\n"
             "  predicted {:.3f} s (95 % interval {:.3f} .. {:.3f} s), measured {:.3f} s: error {:+.1f} %, the "
             "interval {}\n",
             device, outcome.batch, outcome.predicted.steps_fitted, outcome.steps, outcome.predicted.total.si, low,
             high, outcome.measured_s, 100 * outcome.error(),
             outcome.holds() ? "holds" : "DOES NOT HOLD: the machine's speed changed between the two") +
         disturbance(outcome);
}

std::string to_json(const SelfCheck& outcome) {
  const auto& [low, high] = outcome.predicted.interval_s;
  return OrderedJson{{"steps_fitted", outcome.predicted.steps_fitted},
                     {"steps", outcome.steps},
                     {"predicted_s", outcome.predicted.total.si},
                     {"interval_s", {low, high}},
                     {"measured_s", outcome.measured_s},
                     {"error", outcome.error()},
                     {"holds", outcome.holds()},
                     {"rates_against_trace", {{"fp32", outcome.fp32}, {"memory_bandwidth", outcome.memory}}},
                     {"threads_waiting", {{"recorded", outcome.recorded_wait}, {"measured", outcome.measured_wait}}}}
             .dump(2) +
         "\n";
}

}  // namespace ganymede::studies

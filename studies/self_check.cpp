#include "studies/self_check.hpp"

#include <fmt/format.h>

#include <sstream>

#include "common/errors.hpp"
#include "common/process.hpp"
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

}  // namespace

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

}  // namespace ganymede::studies

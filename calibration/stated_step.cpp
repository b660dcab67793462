#include "calibration/stated_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "calibration/batch_fit.hpp"
#include "calibration/kernel_steps.hpp"
#include "calibration/kernel_workload.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/gpu_names.hpp"

namespace ganymede::calibration {
namespace {

constexpr int kMaxStatedBatch = 1 << 24;

platforms::Gpu gpu_of(const GpuSheet& sheet) {
  platforms::Gpu gpu;
  gpu.name = gpu.family = sheet.name;
  gpu.fp32 = FlopsPerSecond{sheet.fp32_flops()};
  gpu.memory_bandwidth = BytesPerSecond{sheet.memory_bandwidth};
  return gpu;
}

/// Replaces the times of an entry by one step of `step_s` seconds, which its phases share as `times` says.
void put_times(traces::TraceBatch& entry, const KernelTimes& times, double step_s) {
  double predicted = times.tail_s;
  for (const auto& [name, phase] : times.phases) predicted += phase.idle_s + phase.device_s;
  const double ratio = step_s / predicted;
  double end = 0, first = -1;
  for (traces::TracePhase& phase : entry.phases) {
    if (phase.stream != "compute") continue;
    const auto known = times.phases.find(phase.name);
    const KernelTimes::Phase time = known == times.phases.end() ? KernelTimes::Phase{} : known->second;
    const double start = end + ratio * time.idle_s;
    phase.start_s = {start};
    phase.seconds = {ratio * time.device_s};
    phase.host_s = {ratio * std::min(time.host_s, time.device_s)};
    end = start + phase.seconds.front();
    if (first < 0) first = start;
  }
  // Input is prepared beside the step: what a step waits for it is part of the stated time.
  for (traces::TracePhase& phase : entry.phases) {
    if (phase.stream == "compute") continue;
    const auto mean = [](const std::vector<double>& values) {
      return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    };
    phase.seconds = {mean(phase.seconds)};
    phase.host_s = {mean(phase.host_s)};
    phase.start_s = {std::max(0.0, first)};
  }
  entry.wall_s = {step_s};
}

}  // namespace

StatedStep read_stated_step(const JsonNode& node) {
  JsonObject in(node);
  StatedStep stated;
  stated.batch = static_cast<int>(in.required("batch").as_integer(1, kMaxStatedBatch));
  const JsonNode time = in.one_of("step", "images_per_second");
  if (node.value().contains("step")) {
    stated.step = with_unit(time, {"s", "ms"}).as_positive<Seconds>();
  } else {
    stated.step = Seconds{stated.batch / time.as_number(1e-6, 1e12)};
  }
  const JsonNode gpu = in.required("gpu");
  const std::string name = gpu.as_string();
  in.finish();
  const GpuSheet* sheet = platforms::sheet_named(name);
  if (sheet == nullptr) {
    std::vector<std::string> names;
    for (const GpuSheet& one : gpu_sheets()) names.push_back(one.name);
    gpu.expected(fmt::format("a GPU whose data sheet is known, {}{}", list_of(names), did_you_mean(name, names)));
  }
  stated.gpu = sheet->name;
  return stated;
}

traces::StepTrace with_stated_step(traces::StepTrace model, const StatedStep& stated, const JsonNode& at) {
  const std::string stage = model.batches.front().stage;
  for (const traces::TraceBatch& entry : model.batches)
    if (entry.stage != stage) at.fail("the model grows, so that its steps are not of one length: record a trace of it");
  std::size_t index = 0;
  try {
    index = entry_for(model, stage, stated.batch);
  } catch (const ConfigError& error) {
    at.child("batch").fail(fmt::format("found {}, {}", stated.batch, error.what()));
  }
  traces::TraceBatch entry = model.batches[index];
  const GpuSheet& sheet = *find_gpu_sheet(stated.gpu);
  const auto times = kernel_times(model, entry, gpu_of(sheet));
  if (!times)
    at.fail(fmt::format(
        "needs a trace that lists the kernels of {} and was not recorded on a GPU itself, such as a list of layers "
        "(\"layers:...\")",
        model.model));
  put_times(entry, *times, stated.step.si);
  entry.carried.reset();
  entry.warmup_steps_dropped = 0;
  entry.utilization.reset();
  model.executor = executor_of(model);  // it depends on the software, which is replaced
  model.batches = {std::move(entry)};
  model.device = {sheet.name, "gpu", 1, FlopsPerSecond{sheet.fp32_flops()}, BytesPerSecond{sheet.memory_bandwidth},
                  Bytes{0}};
  model.software = {model.executor == "graph" ? "ganymede" : "PyTorch", "", kStatedBackend};
  model.recorded_at.clear();
  return model;
}

bool is_stated(const traces::StepTrace& trace) { return trace.software.backend == kStatedBackend; }

std::string stated_text(const traces::StepTrace& trace) {
  const traces::TraceBatch& entry = trace.batches.front();
  return fmt::format("a step of {} at batch {} on {}, measured (stated by the user)",
                     to_string(Seconds{entry.wall_s.front()}), entry.batch, trace.device.name);
}

}  // namespace ganymede::calibration

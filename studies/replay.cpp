// A cell of a published series, asked of `simulate`.

#include <algorithm>

#include "calibration/stated_step.hpp"
#include "sim/run/simulate.hpp"
#include "studies/bare_scenario.hpp"
#include "studies/scaling.hpp"

namespace ganymede::studies {

/// The trace of one pass of the cell on one GPU.
traces::StepTrace ScalingSeries::stated_trace(const ScalingCell& cell) const {
  const ScalingCell& from = reference_cell(cell);
  traces::StepTrace trace;
  trace.model = name_;
  trace.executor = eager_ ? "eager" : "graph";
  trace.software = {eager_ ? "PyTorch" : "TensorFlow", "", calibration::kStatedBackend};
  trace.device = {gpu().name, "gpu", 1, gpu().fp32, gpu().memory_bandwidth, gpu().memory};
  traces::TraceBatch& pass = trace.batches.emplace_back();
  pass.batch = from.pass();
  double now = 0;
  const double pass_s = alone_s(from) / passes(from);
  for (const StepShape::Phase& phase : shape_.phases) {
    const double seconds = phase.share * pass_s;
    pass.phases.push_back({phase.name, phase.network, "compute", {now}, {seconds}, {0}});
    now += seconds;
  }
  if (input_) {
    const int per_node = std::min(cell.gpus, machine_.gpus_per_node);
    pass.phases.push_back({"decode", "", "host", {0}, {from.pass() * per_node / *input_}, {0}});
  }
  pass.wall_s = {pass_s};
  for (const calibration::StepBucket& bucket : buckets(1)) {
    const StepShape::Phase& after = shape_.phases[bucket.phase];
    pass.buckets.push_back({bucket.network, bucket.bytes, after.name, bucket.ready_fraction});
    traces::TraceNetwork& network = trace.networks[bucket.network];
    network.gradient_bytes += bucket.bytes;
    network.parameters = network.gradient_bytes / 4;
  }
  return trace;
}

std::optional<SimulatedCell> ScalingSeries::replay(const ScalingCell& cell) const {
  if (fits_several() || !measured_batch(cell)) return std::nullopt;
  constexpr std::int64_t kSteps = 1000;
  const int per_node = std::min(cell.gpus, machine_.gpus_per_node);
  sim::Scenario scenario =
      bare_scenario(machine_.as_shipped, machine_.instance, cell.gpus / per_node, per_node, stated_trace(cell), kSteps);
  scenario.accumulation_steps = cell.accumulation;
  scenario.synchronization = synchronization(cell.gpus);
  if (scheme_.row->has_servers)
    for (const double variable : shape_.variables) scenario.synchronization.variables.emplace_back(variable);
  scenario.boot_given = true;  // nodes are there: what is compared is training
  scenario.dataset.bytes_per_image = image_bytes_;
  scenario.images = kSteps * scenario.images_a_step(cell.gpus);
  const sim::Result result = sim::simulate(scenario);
  SimulatedCell out{in_unit(cell, result.total.si / kSteps), in_unit(cell, result.interval_s.low / kSteps),
                    in_unit(cell, result.interval_s.high / kSteps)};
  if (out.low > out.high) std::swap(out.low, out.high);
  return out;
}

}  // namespace ganymede::studies

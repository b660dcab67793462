#include "studies/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "calibration/interval_classes.hpp"
#include "calibration/statistics.hpp"
#include "common/random.hpp"
#include "sim/steps/gradient_passes.hpp"
#include "sim/steps/step_distribution_cache.hpp"
#include "studies/bare_scenario.hpp"

namespace ganymede::studies {
namespace {

calibration::StepPhase phase_of(const std::string& name, const std::string& network, calibration::Stream stream,
                                double device_s, double host_s) {
  return {name, network, stream, {0}, {device_s}, {host_s}, 0};
}

}  // namespace

std::string ScalingSeries::unit() const {
  return unit_ == Unit::images_per_second ? "images/s" : unit_ == Unit::seconds_per_kimg ? "s/kimg" : "s";
}

sim::Synchronization ScalingSeries::synchronization(int gpus) const {
  sim::Synchronization out;
  out.scheme = scheme_;
  out.overlap = overlap_;
  out.flat_reduction = flat_;
  if (component_split_ && gpus % 2 == 0) out.placement = sim::Placement::component_split;
  return out;
}

double ScalingSeries::images_of(const ScalingCell& cell) const {
  return static_cast<double>(sim::batches_a_step(synchronization(cell.gpus), cell.gpus)) * cell.batch;
}

double ScalingSeries::pause_s_per_image(int gpus) const { return pause_ ? pause_->pause(gpus).si / pause_->count : 0; }

/// Seconds of a step without its share of the pauses.
double ScalingSeries::step_seconds(const ScalingCell& cell, double value) const {
  const double images = images_of(cell);
  const double with_pauses = unit_ == Unit::images_per_second  ? images / value
                             : unit_ == Unit::seconds_per_kimg ? value * images / 1000
                                                               : value / steps_;
  return with_pauses - images * pause_s_per_image(cell.gpus);
}

double ScalingSeries::in_unit(const ScalingCell& cell, double step_s) const {
  const double images = images_of(cell);
  const double with_pauses = step_s + images * pause_s_per_image(cell.gpus);
  if (unit_ == Unit::images_per_second) return images / with_pauses;
  return unit_ == Unit::seconds_per_kimg ? with_pauses * 1000 / images : with_pauses * steps_;
}

int ScalingSeries::fewest_gpus() const {
  return std::min_element(cells_.begin(), cells_.end(), [](const auto& a, const auto& b) { return a.gpus < b.gpus; })
      ->gpus;
}

/// Among the fit cells of the fewest GPUs, the one with as many images a pass, else the one with the nearest number.
const ScalingCell& ScalingSeries::reference_cell(const ScalingCell& wanted) const {
  const ScalingCell* nearest = nullptr;
  const auto distance = [&](const ScalingCell& cell) {
    return std::abs(portable_log(static_cast<double>(cell.pass()) / wanted.pass()));
  };
  for (const ScalingCell& cell : cells_)
    if (cell.fit && cell.gpus == fewest_gpus() && (!nearest || distance(cell) < distance(*nearest))) nearest = &cell;
  assert(nearest);  // the constructor refuses series without one
  return *nearest;
}

/// One GPU's step of a cell that calibrates.
double ScalingSeries::alone_s(const ScalingCell& reference) const {
  return one_gpu_s_[static_cast<std::size_t>(&reference - cells_.data())];
}

double ScalingSeries::gradient_bytes() const {
  double sum = 0;
  for (const auto& bucket : shape_.buckets) sum += bucket.bytes;
  return sum;
}

/// Number of networks that are trained.
int ScalingSeries::networks() const {
  std::set<std::string> names;
  for (const auto& bucket : shape_.buckets) names.insert(bucket.network);
  return static_cast<int>(names.size());
}

/// The gradients of a pass.
std::vector<calibration::StepBucket> ScalingSeries::buckets(double bytes_factor) const {
  std::vector<calibration::StepBucket> out;
  for (const auto& bucket : shape_.buckets) {
    const auto after = std::find_if(shape_.phases.begin(), shape_.phases.end(),
                                    [&](const auto& phase) { return phase.name == bucket.after; });
    const auto bytes = std::llround(bucket.bytes * bytes_factor / links_);
    if (bytes > 0)
      out.push_back({bucket.network, bytes, static_cast<std::size_t>(after - shape_.phases.begin()), bucket.ready});
  }
  return out;
}

/// One pass of a step.
calibration::StepModel ScalingSeries::model(const ScalingCell& cell, double pass_s, double bytes_factor,
                                            double serial_host_s) const {
  calibration::StepModel model;
  model.samples = 1;
  model.tail_s = {0};
  model.serial_host = serial_host_s > 0;
  const double serial = std::min(serial_host_s, pass_s);
  for (const auto& phase : shape_.phases)
    model.phases.push_back(phase_of(phase.name, phase.network, calibration::Stream::compute,
                                    phase.share * (pass_s - serial), phase.serial_share * serial));
  // The processors of a node prepare the batches of all its workers.
  const int per_node = std::min(cell.gpus, machine_.gpus_per_node);
  if (input_)
    model.phases.push_back(phase_of("decode", "", calibration::Stream::input, cell.pass() * per_node / *input_, 0));
  model.buckets = buckets(bytes_factor);
  return model;
}

/// How many passes a step takes as long as: updates of the weights happen once.
double ScalingSeries::passes(const ScalingCell& cell) const {
  double repeated = 0, all = 0;
  for (const auto& phase : shape_.phases) {
    all += phase.share;
    repeated += phase.share * (sim::is_update(phase.name) ? 1 : cell.accumulation);
  }
  return all > 0 ? repeated / all : cell.accumulation;
}

/// One pass, of which only another number of images may have been measured.
calibration::StepAtBatch ScalingSeries::pass_s(const ScalingCell& cell) const {
  const ScalingCell& from = reference_cell(cell);
  return calibration::step_at_batch(
      alone_s(from) / passes(from), static_cast<double>(cell.pass()) / from.pass(), networks(), shape_.launch_s,
      calibration::fixed_per_network(gpu().memory_bandwidth.si, fixed_s_, fixed_exponent_));
}

/// Seconds of a step. `alike`: workers do not differ.
double ScalingSeries::simulate(const ScalingCell& cell, double bytes_factor, double serial_host_s, bool alike) const {
  const int per_node = std::min(cell.gpus, machine_.gpus_per_node);
  calibration::WorkloadModel workload;  // its bounds are not used
  workload.central = model(cell, pass_s(cell).central_s, bytes_factor, serial_host_s / passes(cell));
  if (!alike) {
    // Slower links are simulated as more bytes, which are no more work for the workers.
    workload.worker_variation = spread_;
    if (bytes_factor > 0) workload.worker_variation.seconds_per_byte *= links_ / bytes_factor;
  }
  traces::StepTrace trace;
  trace.batches.resize(1);
  trace.batches.front().batch = cell.pass();
  sim::Scenario scenario =
      bare_scenario(machine_.platform, machine_.instance, cell.gpus / per_node, per_node, trace, 1000);
  scenario.accumulation_steps = cell.accumulation;
  scenario.synchronization = synchronization(cell.gpus);
  if (scheme_.row->has_servers && bytes_factor > 0)
    for (const double variable : shape_.variables)
      scenario.synchronization.variables.emplace_back(variable * bytes_factor / links_);
  scenario.dataset.bytes_per_image = image_bytes_ * bytes_factor / links_;
  sim::ScenarioSteps times(scenario, workload);
  sim::Configuration configuration;
  configuration.nodes = {cell.gpus / per_node};
  return times.distribution(configuration).mean.si;
}

const platforms::Gpu& ScalingSeries::gpu() const {
  return machine_.platform->gpu_of(machine_.platform->instance(machine_.instance));
}

std::vector<Baseline> ScalingSeries::baselines(const ScalingCell& cell) const {
  const ScalingCell& one = reference_cell(cell);
  // Ideal scaling divides pauses among the GPUs like all other time.
  const auto pause_s = [&](const ScalingCell& c) { return images_of(c) * pause_s_per_image(c.gpus); };
  const double ideal_s = (step_seconds(one, one.measured) + pause_s(one)) * cell.batch / one.batch - pause_s(cell);
  std::vector<Baseline> out = {{"no communication", in_unit(cell, ideal_s)}};
  for (const ScalingCell& second : cells_) {
    if (!second.fit || second.gpus == 1 || second.batch != cell.batch) continue;
    const double more_s = step_seconds(second, second.measured) - ideal_s;
    const double n = cell.gpus;
    out.push_back({"affine", in_unit(cell, ideal_s + more_s * (n - 1) / (second.gpus - 1))});
    out.push_back({"log2", in_unit(cell, ideal_s + more_s * portable_log(n) / portable_log(second.gpus))});
    break;
  }
  if (equations_)
    out.push_back(
        {"the paper's equations", in_unit(cell, ideal_s + (2.0 * cell.gpus - 1) * gradient_bytes() / *equations_)});
  return out;
}

std::string ScalingSeries::evidence_of(const ScalingCell& cell) const {
  if (fits_several()) return "fitted to several GPUs";
  return fmt::format("{}, {}, {}, {}{}", to_string(machine_.links(nodes(cell))),
                     nodes(cell) > 1 ? "several machines" : "one machine",
                     measured_batch(cell) ? "measured batch" : "other batch", eager_ ? "eager" : "graph",
                     nodes(cell) > 1 && scheme_.row->has_servers ? " with servers" : "");
}

CellPrediction ScalingSeries::predict(const ScalingCell& cell) const {
  const double step = simulate(cell, 1, serial_host_s_);
  const double slow = simulate(cell, 1 / slowest_link_, serial_host_slow_s_);
  const double fast = simulate(cell, 1 / fastest_link_, serial_host_fast_s_);
  const double alike = simulate(cell, 1, serial_host_s_, true);
  const double alone = simulate(cell, 0, serial_host_s_, true);
  const double pause = images_of(cell) * pause_s_per_image(cell.gpus);
  const calibration::StepEvidence evidence{.link = link_evidence(nodes(cell)),
                                           .link_factor = link_factor_,
                                           .eager = eager_,
                                           .several_machines = nodes(cell) > 1,
                                           .servers = scheme_.row->has_servers,
                                           .collectives = (alike - alone) / step,
                                           .workers = (step - alike) / step,
                                           .pauses = pause / (step + pause),
                                           .repeat = repeat_};
  const double width = calibration::half_width(evidence);
  // Slower links need not make a slower step, because a fitted parameter may compensate for them.
  const calibration::StepAtBatch pass = pass_s(cell);
  const double below =
      calibration::in_quadrature(calibration::in_quadrature(width, portable_log(pass.central_s / pass.low_s)),
                                 portable_log(step / std::min({step, slow, fast})));
  const double above =
      calibration::in_quadrature(calibration::in_quadrature(width, portable_log(pass.high_s / pass.central_s)),
                                 portable_log(std::max({step, slow, fast}) / step));
  CellPrediction out;
  out.value = in_unit(cell, step);
  out.low = in_unit(cell, step * portable_exp(-below));
  out.high = in_unit(cell, step * portable_exp(above));
  if (out.low > out.high) std::swap(out.low, out.high);
  out.evidence = evidence_of(cell);
  out.parts = {alone,
               alike - alone,
               step,
               step_seconds(cell, cell.measured),
               pause,
               flat_ && eager_ ? 0 : gradient_bytes() * calibration::work_on_gradients(spread_, gpu()),
               calibration::half_width_of_links(evidence)};
  out.baselines = baselines(cell);
  return out;
}

std::vector<ComputeFraction> ScalingSeries::compute_fractions(const std::vector<int>& gpus,
                                                              const std::vector<double>& bytes,
                                                              const std::optional<sim::Scheme>& scheme) const {
  std::vector<ComputeFraction> out;
  for (const double size : bytes) {
    ScalingSeries scaled = *this;
    if (scheme) scaled.scheme_ = *scheme;
    for (auto& bucket : scaled.shape_.buckets) bucket.bytes *= size / gradient_bytes();
    for (const int count : gpus) {
      ScalingCell cell = cells_.front();
      cell.gpus = count;
      out.push_back({count, size, scaled.simulate(cell, 0, serial_host_s_) / scaled.simulate(cell, 1, serial_host_s_)});
    }
  }
  return out;
}

}  // namespace ganymede::studies

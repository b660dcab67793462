#include "studies/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "calibration/batch_step.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "platforms/catalog.hpp"
#include "sim/steps/step_distribution_cache.hpp"
#include "studies/bare_scenario.hpp"

namespace ganymede::studies {
namespace {

// Relative error of a simulated collective of large messages: the middle of the errors for messages from 1 MiB on in
// the table of docs/model.md.
constexpr double kCommunicationError = 0.1;
constexpr double kNormal90 = 1.6449;  // 95 % quantile of the standard normal distribution: half-width of 90 %

StepShape read_shape(const JsonNode& node) {
  StepShape shape;
  JsonObject in(node);
  double device = 0;
  const JsonNode phases = in.required("phases");
  for (const JsonNode& item : phases.as_array()) {
    JsonObject phase(item);
    StepShape::Phase& out = shape.phases.emplace_back();
    out.name = phase.required("name").as_string();
    if (auto network = phase.optional("network")) out.network = network->as_string();
    if (auto share = phase.optional("share")) out.share = share->as_number(0, 1);
    if (auto share = phase.optional("serial_host")) out.serial_share = share->as_number(0, 1);
    phase.finish();
    device += out.share;
  }
  if (std::abs(device - 1) > 1e-9) phases.fail(fmt::format("the shares sum to {}, expected 1", device));
  for (const JsonNode& item : in.required("buckets").as_array()) {
    JsonObject bucket(item);
    StepShape::Bucket& out = shape.buckets.emplace_back();
    out.network = bucket.required("network").as_string();
    const JsonNode after = bucket.required("after");
    out.after = after.as_string();
    if (std::none_of(shape.phases.begin(), shape.phases.end(), [&](const auto& p) { return p.name == out.after; }))
      after.expected("the name of one of the phases");
    out.bytes = bucket.required("bytes").as_number(0, 1e12);
    if (auto ready = bucket.optional("ready")) out.ready = ready->as_number(0, 1);
    bucket.finish();
  }
  if (auto launch = in.optional("launch")) shape.launch_s = launch->as_positive<Seconds>().si;
  in.finish();
  return shape;
}

/// The member of `root`'s `section` that `name` names. Throws ConfigError with the known names if there is none.
JsonNode find_named(const JsonNode& root, const char* section, const JsonNode& name) {
  const std::string key = name.as_string();
  std::vector<std::string> known;
  if (root.value().contains(section))
    for (const auto& [other, value] : root.child(section).as_map()) {
      if (other == key) return value;
      known.push_back(other);
    }
  return name.as_choice(known), root;  // throws
}

std::shared_ptr<const platforms::Platform> read_machine(const JsonNode& node, std::string& instance,
                                                        int& gpus_per_node) {
  JsonObject machine(node);
  const JsonNode from = machine.one_of("catalog", "platform");
  auto platform = std::make_shared<const platforms::Platform>(
      from.is_object() ? platforms::read_platform(from)
                       : platforms::load_catalog(from.as_string(), from.directory(), &from));
  const JsonNode type = machine.required("instance");
  instance = type.as_string();
  gpus_per_node = platform->instance(instance, &type).gpus;
  if (auto per_node = machine.optional("gpus_per_node"))
    gpus_per_node = static_cast<int>(per_node->as_integer(1, gpus_per_node));
  machine.finish();
  return platform;
}

calibration::StepPhase phase_of(const std::string& name, const std::string& network, calibration::Stream stream,
                                double device_s, double host_s) {
  return {name, network, stream, {0}, {device_s}, {host_s}, 0};
}

}  // namespace

ScalingSeries::ScalingSeries(const JsonNode& node, const JsonNode& root) {
  JsonObject in(node);
  name_ = in.required("name").as_string();
  const std::string unit = in.required("unit").as_choice({"images/s", "s/kimg", "s"});
  unit_ = unit == "images/s" ? Unit::images_per_second : unit == "s/kimg" ? Unit::seconds_per_kimg : Unit::seconds;
  platform_ = read_machine(find_named(root, "machines", in.required("machine")), instance_, gpus_per_node_);
  shape_ = read_shape(find_named(root, "steps", in.required("step")));
  scheme_ = sim::read_scheme(in.required("scheme"));
  if (auto overlap = in.optional("overlap")) overlap_ = overlap->as_bool();
  if (auto alternative = in.optional("alternative")) alternative_ = alternative->as_bool();
  spread_ = in.required("executor").as_choice({"eager", "graph"}) == "eager" ? calibration::kEagerVariation
                                                                             : calibration::kGraphVariation;
  if (auto repeat = in.optional("repeat")) repeat_ = repeat->as_number(0, 1);
  if (auto steps = in.optional("steps")) steps_ = steps->as_number(1, 1e12);
  if (auto range = in.optional("link_range")) {
    const auto bounds = range->as_numbers(0.01, 100);
    if (bounds.size() != 2 || bounds[0] > 1 || bounds[1] < 1)
      range->expected("two numbers, the first at most 1 and the second at least 1");
    slowest_link_ = bounds[0], fastest_link_ = bounds[1];
  }
  if (auto input = in.optional("input_images_per_second")) input_ = input->as_number(1, 1e9);
  if (auto equations = in.optional("equations_bandwidth")) equations_ = equations->as_positive<BytesPerSecond>().si;
  if (auto placement = in.optional("placement"))
    component_split_ = placement->as_choice({"data-parallel", "component-split"}) == "component-split";
  if (auto bytes = in.optional("image_bytes")) image_bytes_ = bytes->as_number(0, 1e12);
  if (auto as = in.optional("links_as")) links_as_ = as->as_string();
  if (auto fit = in.optional("fit")) {
    fits_serial_host_ = fit->as_choice({"serial_host", "links"}) == "serial_host";
    fits_links_ = !fits_serial_host_;
  }
  const JsonNode cells = in.required("cells");
  for (const JsonNode& item : cells.as_array()) {
    JsonObject cell(item);
    ScalingCell& out = cells_.emplace_back();
    out.gpus = static_cast<int>(cell.required("gpus").as_integer(1, 1 << 16));
    out.batch = static_cast<int>(cell.required("batch").as_integer(1, 1 << 20));
    out.measured = cell.required("measured").as_number(1e-12, 1e12);
    out.fit = cell.required("role").as_choice({"fit", "predict"}) == "fit";
    if (auto tags = cell.optional("tags"))
      for (const JsonNode& tag : tags->as_array()) out.tags.push_back(tag.as_string());
    cell.finish();
    if (out.gpus > gpus_per_node_ && out.gpus % gpus_per_node_ != 0)
      item.fail(fmt::format("{} GPUs do not fill nodes of {}", out.gpus, gpus_per_node_));
  }
  if ((fits_serial_host_ || fits_links_) &&
      std::none_of(cells_.begin(), cells_.end(), [](const auto& c) { return c.fit && c.gpus > 1; }))
    cells.fail("expected a cell of several GPUs whose role is \"fit\", for what is to be fitted");
  if (std::none_of(cells_.begin(), cells_.end(), [](const auto& cell) { return cell.fit && cell.gpus == 1; }))
    cells.fail("expected a cell of one GPU whose role is \"fit\"");
  in.finish();
}

std::string ScalingSeries::unit() const {
  return unit_ == Unit::images_per_second ? "images/s" : unit_ == Unit::seconds_per_kimg ? "s/kimg" : "s";
}

sim::Synchronization ScalingSeries::synchronization(int gpus) const {
  sim::Synchronization out;
  out.scheme = scheme_;
  out.overlap = overlap_;
  if (component_split_ && gpus % 2 == 0) out.placement = sim::Placement::component_split;
  return out;
}

double ScalingSeries::images_of(const ScalingCell& cell) const {
  return static_cast<double>(sim::batches_a_step(synchronization(cell.gpus), cell.gpus)) * cell.batch;
}

double ScalingSeries::step_seconds(const ScalingCell& cell, double value) const {
  const double images = images_of(cell);
  if (unit_ == Unit::images_per_second) return images / value;
  return unit_ == Unit::seconds_per_kimg ? value * images / 1000 : value / steps_;
}

double ScalingSeries::in_unit(const ScalingCell& cell, double step_s) const {
  const double images = images_of(cell);
  if (unit_ == Unit::images_per_second) return images / step_s;
  return unit_ == Unit::seconds_per_kimg ? step_s * 1000 / images : step_s * steps_;
}

/// The fit cell of one GPU with that batch size, else the one with the nearest batch size.
const ScalingCell& ScalingSeries::reference_cell(int batch) const {
  const ScalingCell* nearest = nullptr;
  const auto distance = [&](const ScalingCell& cell) {
    return cell.batch > batch ? static_cast<double>(cell.batch) / batch : static_cast<double>(batch) / cell.batch;
  };
  for (const ScalingCell& cell : cells_)
    if (cell.fit && cell.gpus == 1 && (!nearest || distance(cell) < distance(*nearest))) nearest = &cell;
  assert(nearest);  // the constructor refuses series without one
  return *nearest;
}

/// The fit cell of several GPUs, if something is fitted to it.
const ScalingCell& ScalingSeries::multi_gpu_fit_cell() const {
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [](const auto& c) { return c.fit && c.gpus > 1; });
  assert(cell != cells_.end());  // the constructor refuses series without one
  return *cell;
}

double ScalingSeries::gradient_bytes() const {
  double sum = 0;
  for (const auto& bucket : shape_.buckets) sum += bucket.bytes;
  return sum;
}

ScalingSeries::StepTime ScalingSeries::simulate(int gpus, int batch, double bytes_factor, double serial_host_s) const {
  const ScalingCell& from = reference_cell(batch);
  const double one_gpu_s = step_seconds(from, from.measured);
  const int per_node = std::min(gpus, gpus_per_node_);
  std::set<std::string> networks;
  for (const auto& bucket : shape_.buckets) networks.insert(bucket.network);
  const calibration::StepAtBatch step = calibration::step_at_batch(one_gpu_s, static_cast<double>(batch) / from.batch,
                                                                   static_cast<int>(networks.size()), shape_.launch_s);
  const auto model_with = [&](double step_s) {
    calibration::StepModel model;
    model.samples = 1;
    model.tail_s = {0};
    model.serial_host = serial_host_s > 0;
    const double serial = std::min(serial_host_s, step_s);
    for (const auto& phase : shape_.phases)
      model.phases.push_back(phase_of(phase.name, phase.network, calibration::Stream::compute,
                                      phase.share * (step_s - serial), phase.serial_share * serial));
    // The processors of a node prepare the batches of all its workers.
    if (input_)
      model.phases.push_back(phase_of("decode", "", calibration::Stream::input, batch * per_node / *input_, 0));
    for (const auto& bucket : shape_.buckets) {
      const auto after = std::find_if(shape_.phases.begin(), shape_.phases.end(),
                                      [&](const auto& phase) { return phase.name == bucket.after; });
      const auto bytes = std::llround(bucket.bytes * bytes_factor / links_);
      if (bytes > 0)
        model.buckets.push_back(
            {bucket.network, bytes, static_cast<std::size_t>(after - shape_.phases.begin()), bucket.ready});
    }
    return model;
  };
  calibration::WorkloadModel workload;
  workload.provenance = calibration::Provenance::transferred;
  workload.central = model_with(step.central_s);
  workload.low = model_with(step.low_s);
  workload.high = model_with(step.high_s);
  workload.worker_variation = spread_;
  traces::StepTrace trace;
  trace.batches.resize(1);
  trace.batches.front().batch = batch;
  sim::Scenario scenario = bare_scenario(platform_, instance_, gpus / per_node, per_node, trace, 1000);
  scenario.synchronization = synchronization(gpus);
  scenario.dataset.bytes_per_image = image_bytes_ * bytes_factor / links_;
  sim::ScenarioSteps times(scenario, workload);
  sim::Configuration configuration;
  configuration.nodes = {gpus / per_node};
  const sim::StepDistribution& steps = times.distribution(configuration);
  return {steps.mean.si, steps.low.si, steps.high.si};
}

/// The serial host time of a replica, in seconds, with which the simulation gives the measured value of the fit cell of
/// several GPUs.
double ScalingSeries::fit_serial_host(double bytes_factor) const {
  const ScalingCell& cell = multi_gpu_fit_cell();
  const ScalingCell& one = reference_cell(cell.batch);
  const double target_s = step_seconds(cell, cell.measured);
  double low = 0, high = step_seconds(one, one.measured);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (simulate(cell.gpus, cell.batch, bytes_factor, middle).mean < target_s ? low : high) = middle;
  }
  return low;
}

/// Fits the links' share of the assumed bandwidth so that the simulation gives the measured value of the fit cell of
/// several GPUs. Slower links are simulated as more bytes.
void ScalingSeries::fit_links() {
  const ScalingCell& cell = multi_gpu_fit_cell();
  const double target_s = step_seconds(cell, cell.measured);
  double low = 1e-4, high = 1e4;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (simulate(cell.gpus, cell.batch, 1 / middle, 0).mean > target_s ? low : high) = middle;
  }
  links_ = high;
}

std::vector<std::string> ScalingSeries::fit(const std::vector<ScalingSeries>& before) {
  if (!links_as_.empty()) {
    const auto other = std::find_if(before.begin(), before.end(), [&](const auto& s) { return s.name() == links_as_; });
    if (other == before.end())
      throw ConfigError(fmt::format(
          "the series \"{}\" takes its links' share from \"{}\", which must be listed before it", name_, links_as_));
    links_ = other->links_;
    return {};
  }
  if (fits_links_) {
    fit_links();
    const ScalingCell& cell = multi_gpu_fit_cell();
    const double least_s = simulate(cell.gpus, cell.batch, 0, 0).mean;
    if (const double measured_s = step_seconds(cell, cell.measured); least_s > measured_s)
      return {fmt::format(
          "{}: no bandwidth of the links explains its cell of several GPUs: a step of {} without any bytes is longer "
          "than the measured {}",
          name_, to_string(Seconds{least_s}), to_string(Seconds{measured_s}))};
    return {fmt::format(
        "{}: the links give {:.3g} times the bandwidth that is assumed, to the cells of one and several GPUs", name_,
        links_)};
  }
  if (!fits_serial_host_) return {};
  serial_host_s_ = fit_serial_host(1);
  // Links are ruled out if they are so slow that a step takes longer than the fit cell's even without serial host time.
  const ScalingCell& cell = multi_gpu_fit_cell();
  const double measured_s = step_seconds(cell, cell.measured);
  const auto refuted = [&](double link) { return simulate(cell.gpus, cell.batch, 1 / link, 0).mean > measured_s; };
  if (refuted(slowest_link_) && !refuted(1)) {
    double low = slowest_link_, high = 1;
    for (int i = 0; i < 40; ++i) (refuted((low + high) / 2) ? low : high) = (low + high) / 2;
    slowest_link_ = high;
  }
  serial_host_slow_s_ = fit_serial_host(1 / slowest_link_);
  serial_host_fast_s_ = fit_serial_host(1 / fastest_link_);
  return {
      fmt::format("{}: host time that one process spends for one replica after the other, {} a step, to the cells of "
                  "one and several GPUs ({} if the links gave {:.2g} times what is assumed, {} if {:.2g} times)",
                  name_, to_string(Seconds{serial_host_s_}), to_string(Seconds{serial_host_slow_s_}), slowest_link_,
                  to_string(Seconds{serial_host_fast_s_}), fastest_link_)};
}

std::vector<Baseline> ScalingSeries::baselines(const ScalingCell& cell) const {
  const ScalingCell& one = reference_cell(cell.batch);
  const double ideal_s = step_seconds(one, one.measured) * cell.batch / one.batch;
  std::vector<Baseline> out = {{"no communication", in_unit(cell, ideal_s)}};
  for (const ScalingCell& second : cells_) {
    if (!second.fit || second.gpus == 1 || second.batch != cell.batch) continue;
    const double more_s = step_seconds(second, second.measured) - ideal_s;
    const double n = cell.gpus;
    out.push_back({"affine", in_unit(cell, ideal_s + more_s * (n - 1) / (second.gpus - 1))});
    out.push_back({"log2", in_unit(cell, ideal_s + more_s * std::log2(n) / std::log2(second.gpus))});
    break;
  }
  if (equations_)
    out.push_back(
        {"the paper's equations", in_unit(cell, ideal_s + (2.0 * cell.gpus - 1) * gradient_bytes() / *equations_)});
  return out;
}

CellPrediction ScalingSeries::predict(const ScalingCell& cell) const {
  const StepTime step = simulate(cell.gpus, cell.batch, 1, serial_host_s_);
  const double without_communication = simulate(cell.gpus, cell.batch, 0, serial_host_s_).mean;
  const double slow = simulate(cell.gpus, cell.batch, 1 / slowest_link_, serial_host_slow_s_).mean;
  const double fast = simulate(cell.gpus, cell.batch, 1 / fastest_link_, serial_host_fast_s_).mean;
  const double model_error = calibration::in_quadrature(kNormal90 * std::sqrt(2.0) * repeat_ * step.mean,
                                                        kCommunicationError * (step.mean - without_communication));
  // Slower links need not make a slower step, because a fitted parameter may compensate for them.
  const double below =
      calibration::in_quadrature(step.mean - step.low, std::max(0.0, step.mean - std::min(slow, fast)));
  const double above =
      calibration::in_quadrature(step.high - step.mean, std::max(0.0, std::max(slow, fast) - step.mean));
  CellPrediction out;
  out.value = in_unit(cell, step.mean);
  out.low = in_unit(cell, std::max(1e-12, step.mean - calibration::in_quadrature(below, model_error)));
  out.high = in_unit(cell, step.mean + calibration::in_quadrature(above, model_error));
  if (out.low > out.high) std::swap(out.low, out.high);
  out.baselines = baselines(cell);
  return out;
}

std::vector<ComputeFraction> ScalingSeries::compute_fractions(const std::vector<int>& gpus,
                                                              const std::vector<double>& bytes) const {
  const int batch = cells_.front().batch;
  std::vector<ComputeFraction> out;
  for (const double size : bytes)
    for (const int count : gpus)
      out.push_back({count, size,
                     simulate(count, batch, 0, serial_host_s_).mean /
                         simulate(count, batch, size / gradient_bytes(), serial_host_s_).mean});
  return out;
}

}  // namespace ganymede::studies

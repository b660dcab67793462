#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "studies/scaling.hpp"

namespace ganymede::studies {
namespace {

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
  if (auto variables = in.optional("variables"))
    for (const JsonNode& size : variables->as_array()) shape.variables.push_back(size.as_positive<Bytes>().si);
  if (auto launch = in.optional("launch")) shape.launch_s = launch->as_positive<Seconds>().si;
  in.finish();
  return shape;
}

/// Reads pauses and counts the images between two of them. They must not be a time, which depends on the prediction.
sim::Evaluation read_pause(const JsonNode& node, double images_a_step) {
  sim::Evaluation out = sim::read_evaluation(node, false);
  if (out.every == sim::Evaluation::Every::interval)
    node.child("every").expected("a number of images or steps, for example \"40000 images\"");
  if (out.every == sim::Evaluation::Every::steps) out.count *= images_a_step;
  return out;
}

ScalingCell read_scaling_cell(const JsonNode& item, int gpus_per_node) {
  JsonObject cell(item);
  ScalingCell out;
  out.gpus = static_cast<int>(cell.required("gpus").as_integer(1, 1 << 16));
  out.batch = static_cast<int>(cell.required("batch").as_integer(1, 1 << 20));
  if (auto passes = cell.optional("accumulation_steps")) {
    out.accumulation = static_cast<int>(passes->as_integer(1, out.batch));
    if (out.batch % out.accumulation != 0) passes->fail(fmt::format("expected a divisor of the batch, {}", out.batch));
  }
  out.measured = cell.required("measured").as_number(1e-12, 1e12);
  out.fit = cell.required("role").as_choice({"fit", "predict"}) == "fit";
  if (auto tags = cell.optional("tags"))
    for (const JsonNode& tag : tags->as_array()) out.tags.push_back(tag.as_string());
  cell.finish();
  if (out.gpus > gpus_per_node && out.gpus % gpus_per_node != 0)
    item.fail(fmt::format("{} GPUs do not fill nodes of {}", out.gpus, gpus_per_node));
  return out;
}

}  // namespace

ScalingSeries::ScalingSeries(const JsonNode& node, const JsonNode& root)
    : ScalingSeries(node, root, read_machine(find_named(root, "machines", JsonObject(node).required("machine")))) {}

ScalingSeries::ScalingSeries(const JsonNode& node, const JsonNode& root, Machine machine)
    : machine_(std::move(machine)) {
  JsonObject in(node);
  name_ = in.required("name").as_string();
  const std::string unit = in.required("unit").as_choice({"images/s", "s/kimg", "s"});
  unit_ = unit == "images/s" ? Unit::images_per_second : unit == "s/kimg" ? Unit::seconds_per_kimg : Unit::seconds;
  in.required("machine");
  shape_ = read_shape(find_named(root, "steps", in.required("step")));
  scheme_ = sim::read_scheme(in.required("scheme"));
  eager_ = in.required("executor").as_choice({"eager", "graph"}) == "eager";
  spread_ = eager_ ? calibration::kEagerVariation : calibration::kGraphVariation;
  read_options(in);
  read_cells(in.required("cells"));
  if (auto pause = in.optional("evaluation")) pause_ = read_pause(*pause, images_of(cells_.front()));
  in.finish();
}

void ScalingSeries::read_options(JsonObject& in) {
  if (auto overlap = in.optional("overlap")) overlap_ = overlap->as_bool();
  if (auto reduction = in.optional("reduction")) flat_ = reduction->as_choice({"bucketed", "flat"}) == "flat";
  if (auto alternative = in.optional("alternative")) alternative_ = alternative->as_bool();
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
}

/// The measurements on the fewest GPUs calibrate the step, so that at least one of them has the role "fit".
void ScalingSeries::read_cells(const JsonNode& cells) {
  for (const JsonNode& item : cells.as_array()) cells_.push_back(read_scaling_cell(item, machine_.gpus_per_node));
  if ((fits_serial_host_ || fits_links_) &&
      std::none_of(cells_.begin(), cells_.end(), [](const auto& c) { return c.fit && c.gpus > 1; }))
    cells.fail("expected a cell of several GPUs whose role is \"fit\", for what is to be fitted");
  const auto fewest =
      std::min_element(cells_.begin(), cells_.end(), [](const auto& a, const auto& b) { return a.gpus < b.gpus; });
  if (fewest == cells_.end() || std::none_of(cells_.begin(), cells_.end(),
                                             [&](const auto& cell) { return cell.fit && cell.gpus == fewest->gpus; }))
    cells.fail("expected a cell of the fewest GPUs whose role is \"fit\"");
}

}  // namespace ganymede::studies

#include "sim/service/generator_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "calibration/batch_fit.hpp"
#include "calibration/kernel_workload.hpp"
#include "calibration/workload_model.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::sim {
namespace {

using Points = std::map<int, std::array<double, 3>>;  // seconds by batch: expected, low, high

/// The seconds of `batch` on straight lines between the points; beyond them each further image takes as long as between
/// the last two, or on average where there is one.
double at(const Points& points, int batch, std::size_t which) {
  const auto after = points.lower_bound(batch);
  if (after != points.end() && after->first == batch) return after->second[which];
  if (after == points.begin()) return after->second[which];  // a smaller batch takes no longer
  auto right = after == points.end() ? std::prev(after) : after;
  if (right == points.begin()) return right->second[which] * batch / right->first;
  const auto left = std::prev(right);
  const double slope = (right->second[which] - left->second[which]) / (right->first - left->first);
  return left->second[which] + slope * (batch - left->first);
}

Points measured_points(const JsonNode& node) {
  Points points;
  for (const auto& [batch, time] : node.as_map()) {
    constexpr int kMostImages = 1 << 20;
    const int images = parse_number<int>(batch).value_or(0);
    if (images < 1 || images > kMostImages) time.fail("its key is not a number of images, such as \"16\"");
    if (points.contains(images)) time.fail(fmt::format("is a second time of {} images", images));
    const double seconds = time.as_positive<Seconds>().si;
    points[images] = {seconds, seconds, seconds};
  }
  if (points.empty()) node.expected("the time of at least one batch, such as { \"1\": \"4ms\" }");
  for (auto next = std::next(points.begin()); next != points.end(); ++next)
    if (next->second[0] < std::prev(next)->second[0])
      node.fail(fmt::format("{} images take longer than {}", std::prev(next)->first, next->first));
  return points;
}

/// The trace of a forward pass of that network alone.
traces::StepTrace forward_trace(traces::LayerList list, const std::string& network, const JsonNode& at,
                                const platforms::Gpu& gpu, const std::vector<int>& batches) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : list.networks) names.push_back(name);
  if (!list.networks.contains(network))
    at.fail(fmt::format("it has no network \"{}\"; \"network\" names one of {}", network, list_of(names)));
  traces::LayerNetwork alone = list.networks.at(network);
  alone.copies = 1;
  list.networks = {{network, std::move(alone)}};
  list.step = {{network + ".forward", network, traces::LayerPass::Kind::forward}};
  list.bytes_per_image = 0;
  traces::StepTrace trace = traces::trace_of(list, batches, calibration::roofline_device(gpu, list.precision));
  for (traces::TraceBatch& entry : trace.batches) entry.buckets.clear();  // nothing is trained
  return trace;
}

/// Seconds of the network's forward pass in a step.
double forward_s(const calibration::StepModel& step, const std::string& phase) {
  for (const calibration::StepPhase& one : step.phases) {
    if (one.name != phase) continue;
    double sum = 0;
    for (std::size_t i = 0; i < step.samples; ++i) sum += one.gap_s[i] + std::max(one.device_s[i], one.host_s[i]);
    return sum / static_cast<double>(step.samples);
  }
  return 0;
}

Points trace_points(traces::StepTrace trace, const std::string& network, const JsonNode& at, const platforms::Gpu& gpu,
                    const platforms::Link* host_link, const std::vector<int>& batches, std::string& how) {
  const std::string phase = network + ".forward";
  Points points;
  for (const int batch : batches) {
    const std::size_t entry = [&] {
      try {
        return calibration::entry_for(trace, trace.batches.front().stage, batch);
      } catch (const ConfigError& error) {
        at.fail(error.what());
      }
    }();
    const calibration::WorkloadModel model = calibration::workload_on(trace, trace.batches[entry], gpu, host_link);
    const double central = forward_s(model.central, phase);
    if (!(central > 0)) at.fail(fmt::format("its steps have no phase \"{}\"", phase));
    const double low = std::min(forward_s(model.low, phase), central) / (1 + model.relative_error);
    const double high = std::max(forward_s(model.high, phase), central) * (1 + model.relative_error);
    points[batch] = {central, low, high};
    how = fmt::format("{}: {}", calibration::to_string(model.provenance), model.rule);
  }
  return points;
}

}  // namespace

GeneratorTimes read_generator(const JsonNode& node, const platforms::Gpu& gpu, const platforms::Link* host_link,
                              int largest_batch) {
  JsonObject in(node);
  const auto measured = in.optional("measured"), recipe = in.optional("recipe"), trace = in.optional("trace");
  const auto network_at = in.optional("network");
  const std::string network = network_at ? network_at->as_string() : "generator";
  in.finish();
  if (int{measured.has_value()} + int{recipe.has_value()} + int{trace.has_value()} != 1)
    node.fail("expected one of \"trace\", \"recipe\" and \"measured\"");
  std::vector<int> batches;
  for (int batch = 1; batch < largest_batch; batch *= 2) batches.push_back(batch);
  batches.push_back(largest_batch);

  GeneratorTimes times;
  Points points;
  if (measured) {
    points = measured_points(*measured);
    times.how = "measured, as the service states";
  } else {
    const JsonNode& named = recipe ? *recipe : *trace;
    const std::string name = named.as_string();
    const auto located = [&](auto&& body) {
      try {
        return body();
      } catch (const ConfigError& error) {
        named.fail(error.what());
      }
    };
    const auto of_layers = [&](const traces::LayerList& list) {
      return trace_points(forward_trace(list, network, named, gpu, batches), network, named, gpu, host_link, batches,
                          times.how);
    };
    if (recipe) {
      points = of_layers(located([&] { return traces::resolve_recipe(name, named.directory()).layers; }));
    } else if (name.starts_with(traces::kLayers)) {
      points = of_layers(located([&] { return traces::built_in_list(name.substr(traces::kLayers.size())); }));
    } else {
      const JsonNode file = JsonNode::parse(traces::trace_text(named), traces::trace_name(named));
      points = file.is_object() && file.value().value("schema", Json()) == "ganymede.layers/1"
                   ? of_layers(traces::read_layer_list(file))
                   : trace_points(traces::read_step_trace(file), network, named, gpu, host_link, batches, times.how);
    }
  }
  for (int batch = 1; batch <= largest_batch; ++batch) {
    times.central_s.push_back(at(points, batch, 0));
    times.low_s.push_back(at(points, batch, 1));
    times.high_s.push_back(at(points, batch, 2));
  }
  return times;
}

}  // namespace ganymede::sim

#include "sim/service/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "calibration/batch_fit.hpp"
#include "calibration/kernel_workload.hpp"
#include "calibration/workload_model.hpp"
#include "common/csv.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "sim/scenario/input_cache.hpp"
#include "sim/scenario/sections.hpp"
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
  for (const traces::LayerPass& pass : list.step)
    if (pass.name == network + ".stem")
      at.fail(
          fmt::format("its {} stands behind the network \"{}\", which a pass of it alone would leave out; state "
                      "\"measured\"",
                      network, pass.network));
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

namespace {

constexpr double kMostRequests = 2e7;  // which take a gigabyte and half a minute
constexpr int kMostReplicas = 4096;

std::vector<double> read_recording(const JsonNode& node) {
  const CsvTable table = CsvTable::load(node.directory() / node.as_string());
  if (!table.has("t_s")) node.fail("expected a CSV with a column \"t_s\": the seconds at which requests arrive");
  std::vector<double> times;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string& cell = table.at(row, "t_s");
    const double value = parse_number<double>(cell).value_or(-1);
    if (!(value >= 0 && value <= 1e9))
      table.fail(row, "t_s", fmt::format("found \"{}\", expected seconds since the beginning, from 0 to 1e9", cell));
    if (!times.empty() && value < times.back()) table.fail(row, "t_s", "is before the row above");
    times.push_back(value);
  }
  if (times.empty()) node.fail("the recording has no request");
  return times;
}

Arrivals read_arrivals(const JsonNode& node) {
  JsonObject in(node);
  Arrivals arrivals;
  const auto recorded = in.optional("recorded"), rate = in.optional("per_second");
  if (recorded.has_value() == rate.has_value()) node.fail("expected one of \"per_second\" and \"recorded\"");
  if (recorded) {
    arrivals.recorded_s = read_recording(*recorded);
    in.finish();
    return arrivals;
  }
  arrivals.per_second = rate->as_number(1e-6, 1e6);
  if (const auto pattern = in.optional("pattern")) arrivals.even = pattern->as_choice({"poisson", "even"}) == "even";
  if (const auto swing = in.optional("swing")) arrivals.swing = swing->as_number(0, 1);
  if (const auto period = in.optional("period")) arrivals.period = period->as_positive<Seconds>();
  if (arrivals.even && arrivals.swing > 0) node.fail("a rate that swings is of a Poisson process, not \"even\"");
  in.finish();
  return arrivals;
}

Autoscaling read_autoscaling(const JsonNode& node) {
  JsonObject in(node);
  Autoscaling scaling;
  scaling.least = static_cast<int>(in.required("min").as_integer(1, kMostReplicas));
  scaling.most = static_cast<int>(in.required("max").as_integer(scaling.least, kMostReplicas));
  const JsonNode target = in.one_of("utilization", "queue");
  scaling.metric = node.value().contains("queue") ? Autoscaling::Metric::queue : Autoscaling::Metric::utilization;
  scaling.target =
      scaling.metric == Autoscaling::Metric::queue ? target.as_number(1e-3, 1e6) : target.as_number(0.01, 1);
  if (const auto every = in.optional("every")) scaling.every = every->as_positive<Seconds>();
  if (const auto window = in.optional("up_window")) scaling.up_window = window->as_quantity<Seconds>();
  if (const auto window = in.optional("down_window")) scaling.down_window = window->as_quantity<Seconds>();
  if (const auto tolerance = in.optional("tolerance")) scaling.tolerance = tolerance->as_number(0, 1);
  in.finish();
  return scaling;
}

void read_goals(const JsonNode& node, Service& service) {
  JsonObject in(node);
  if (const auto p95 = in.optional("p95")) service.p95 = p95->as_positive<Seconds>();
  if (const auto failed = in.optional("failed")) service.failed = failed->as_number(0, 1);
  in.finish();
}

void read_batching(const JsonNode& node, Service& service) {
  JsonObject in(node);
  constexpr int kMostImages = 4096;
  if (const auto largest = in.optional("largest"))
    service.largest_batch = static_cast<int>(largest->as_integer(1, kMostImages));
  if (const auto window = in.optional("window")) service.window = window->as_quantity<Seconds>();
  in.finish();
}

}  // namespace

bool is_service(const Json& document) {
  return document.is_object() && document.value("schema", Json()) == std::string(kServiceSchema);
}

Service read_service(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, kServiceSchema);
  Service service;
  Scenario& scenario = service.scenario;
  if (const auto seed = in.optional("seed")) scenario.seed = seed->as_seed();
  const JsonNode platform = in.required("platform");
  Fingerprint fingerprint(root);
  ScenarioInputCache cache;
  read_pools(platform, scenario, fingerprint, cache);
  if (scenario.pools.size() > 1) platform.child("pools").fail("a service has one pool of nodes");
  const ScenarioPool& pool = scenario.pools.front();
  if (pool.capacity) platform.child("capacity").fail("is not read for services, expected \"lifetimes\" or \"spot\"");
  if (const auto batching = in.optional("batching")) read_batching(*batching, service);
  const auto& link = pool.instance().host_link;
  service.times = read_generator(in.required("generator"), pool.gpu(), link ? &*link : nullptr, service.largest_batch);
  const JsonNode arrivals = in.required("arrivals");
  service.arrivals = read_arrivals(arrivals);
  if (const auto queue = in.optional("queue")) service.queue = static_cast<int>(queue->as_integer(0, 10'000'000));
  if (const auto timeout = in.optional("timeout")) service.timeout = timeout->as_positive<Seconds>();
  if (const auto overhead = in.optional("overhead")) service.overhead = overhead->as_quantity<Seconds>();
  if (const auto load = in.optional("load")) service.load = load->as_quantity<Seconds>();
  if (const auto bytes = in.optional("bytes_per_image")) service.bytes_per_image = bytes->as_number(0, 1e9);
  if (const auto scaling = in.optional("autoscaling")) {
    service.autoscaling = read_autoscaling(*scaling);
    const int nodes = pool.pool.nodes;
    if (nodes < service.autoscaling->least || nodes > service.autoscaling->most)
      scaling->fail(fmt::format("begins with {} nodes, which is not from \"min\" to \"max\"", nodes));
    if (pool.instance().available && service.autoscaling->most > *pool.instance().available)
      scaling->child("max").fail(
          fmt::format("the platform has {} of {}", *pool.instance().available, pool.instance().name));
  }
  constexpr double kMostLooks = 1e6;
  service.duration = service.arrivals.recorded_s.empty() ? Seconds{3600} : Seconds{service.arrivals.recorded_s.back()};
  if (const auto duration = in.optional("duration")) service.duration = duration->as_positive<Seconds>();
  if (!(service.duration.si >= 1)) root.fail("the duration is below a second");
  if (service.autoscaling && service.duration.si / service.autoscaling->every.si > kMostLooks)
    root.child("autoscaling").fail(fmt::format("looks more than {:.0f} times: \"every\" is too short", kMostLooks));
  if (service.arrivals.per_second * service.duration.si > kMostRequests)
    arrivals.fail(fmt::format("{:.3g} requests in all, expected at most {:.3g}: a shorter \"duration\" tells as much",
                              service.arrivals.per_second * service.duration.si, kMostRequests));
  if (const auto goals = in.optional("goals")) read_goals(*goals, service);
  in.finish();
  scenario.file = root.file();
  scenario.hash = fingerprint.hash_without({});
  return service;
}

}  // namespace ganymede::sim

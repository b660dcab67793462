#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "sim/scenario/input_cache.hpp"
#include "sim/scenario/sections.hpp"
#include "sim/service/service.hpp"

namespace ganymede::sim {
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

// "synchronization" of a scenario: how its workers keep in step, and dedicated servers for asynchronous training.

#include "sim/scenario/synchronization.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

BytesPerSecond nic_rate(const platforms::Instance& instance) {
  return instance.nic ? instance.nic->bandwidth * instance.nic->count : BytesPerSecond{0};
}

/// The cheapest host without GPUs whose network is no slower than the workers', or the fastest host if all are slower.
/// Returns null if the platform prices no such host in the workers' region.
const platforms::Instance* cheapest_host(const ScenarioPool& beside) {
  const BytesPerSecond enough = nic_rate(beside.instance());
  const platforms::Instance* best = nullptr;
  const auto price = [&](const platforms::Instance& host) {
    return platforms::find_price(host, beside.pool.region, platforms::Market::on_demand);
  };
  for (const platforms::Instance& instance : beside.platform->instances) {
    const bool host = beside.platform->gpu_of(instance).kind == platforms::Gpu::Kind::cpu && instance.retired.empty();
    if (!host || !instance.nic || !price(instance)) continue;
    const BytesPerSecond rate = std::min(nic_rate(instance), enough);
    const bool faster = best && rate > std::min(nic_rate(*best), enough);
    const bool cheaper =
        best && rate == std::min(nic_rate(*best), enough) && price(instance)->per_hour < price(*best)->per_hour;
    if (!best || faster || cheaper) best = &instance;
  }
  return best;
}

/// Chooses the dedicated machines that the scheme of asynchronous training needs in addition to the pools, with a
/// warning that names the assumptions; none if the workers' nodes hold the weights.
ServerNodes choose_servers(const JsonNode& scheme, Scenario& scenario) {
  ServerNodes servers;
  const ScenarioPool& first = scenario.pools.front();
  try {
    servers.nodes = parameter_servers(scenario.synchronization.scheme, flat(scenario.workers())).machines;
  } catch (const ConfigError& error) {
    scheme.fail(error.what());
  }
  if (servers.nodes == 0) return servers;
  const platforms::Instance* host = cheapest_host(first);
  const platforms::Instance& instance = host ? *host : first.instance();
  servers.instance = instance.name;
  const platforms::Price* price = platforms::find_price(instance, first.pool.region, platforms::Market::on_demand);
  servers.price = price ? *price : first.price;
  if (instance.available && servers.nodes + (host ? 0 : first.max_nodes) > *instance.available)
    scheme.fail(fmt::format("machines of their own for the weights, {} of {}, are more than the platform has",
                            servers.nodes, instance.name));
  const char* why = "of the workers' own type";
  if (host)
    why = nic_rate(*host) >= nic_rate(first.instance())
              ? "the cheapest host without GPUs whose network keeps up with a worker node's"
              : "the host without GPUs with the fastest network, which is slower than a worker node's";
  scenario.warnings.push_back(fmt::format(
      "{} x {} {} the weights, rented on demand from the request to the end: {}, an assumption; never lost, and their "
      "energy is not counted",
      servers.nodes, instance.name, servers.nodes == 1 ? "holds" : "hold", why));
  return servers;
}

}  // namespace

int batches_loaded(const Synchronization& synchronization, int workers) {
  return synchronization.placement == Placement::component_split && workers > 1 ? workers / 2 : workers;
}

int batches_a_step(const Synchronization& synchronization, int workers) {
  const int loaded = batches_loaded(synchronization, workers);
  return std::max(std::min(loaded, 1), loaded - synchronization.backup_workers);
}

namespace {

Mode read_mode(const JsonNode& node) {
  const std::string name = node.as_choice({"all-reduce", "async-parameter-server", "local-sgd", "gossip"});
  return name == "all-reduce"               ? Mode::all_reduce
         : name == "async-parameter-server" ? Mode::async_parameter_server
         : name == "local-sgd"              ? Mode::local_sgd
                                            : Mode::gossip;
}

void read_reduction(const JsonNode& node, const std::optional<JsonNode>& overlap, Synchronization& sync) {
  sync.reduction_stated = true;
  sync.flat_reduction = node.as_choice({"bucketed", "flat"}) == "flat";
  if (!sync.flat_reduction) return;
  if (sync.mode != Mode::all_reduce) node.fail("a flat reduction needs the mode \"all-reduce\"");
  if (overlap && sync.overlap)
    overlap->fail("a flat reduction begins when the backward pass has ended, so nothing overlaps");
}

Placement read_placement(const JsonNode& node, const Scenario& scenario) {
  if (node.as_choice({"data-parallel", "component-split"}) == "data-parallel") return Placement::data_parallel;
  if (scenario.workers() % 2 != 0)
    node.fail(
        fmt::format("generator and discriminator take turns on pairs of GPUs, found {} GPUs", scenario.workers()));
  if (scenario.synchronization.mode != Mode::all_reduce) node.fail("component-split needs the mode \"all-reduce\"");
  return Placement::component_split;
}

std::vector<Bytes> read_variables(const JsonNode& node, const Scheme& scheme) {
  if (!scheme.row->has_servers) node.fail(fmt::format("the scheme {} has no servers to hold variables", scheme.name()));
  std::vector<Bytes> out;
  for (const JsonNode& size : node.as_array()) out.push_back(size.as_positive<Bytes>());
  return out;
}

int read_backup_workers(const JsonNode& node, const Scenario& scenario) {
  if (scenario.synchronization.mode != Mode::all_reduce) node.fail("backup workers need the mode \"all-reduce\"");
  if (scenario.synchronization.placement != Placement::data_parallel)
    node.fail("backup workers need the placement \"data-parallel\"");
  return static_cast<int>(node.as_integer(0, std::max(0, scenario.workers() - 1)));
}

void read_secure_aggregation(const JsonNode& node, Synchronization& sync) {
  if (sync.mode != Mode::local_sgd) node.fail("secure aggregation needs the mode \"local-sgd\"");
  JsonObject in(node);
  if (auto bytes = in.optional("bytes_factor")) sync.secure_bytes = bytes->as_number(1, 1000);
  if (auto cpu = in.optional("cpu_per_gb")) sync.secure_cpu_per_gb = cpu->as_quantity<Seconds>();
  in.finish();
}

}  // namespace

void read_synchronization(const JsonNode& node, Scenario& scenario) {
  constexpr int kDefaultLocalSteps = 16;
  constexpr double kMaxInterference = 0.9;
  JsonObject in(node);
  Synchronization& sync = scenario.synchronization;
  if (auto mode = in.optional("mode")) sync.mode = read_mode(*mode);
  sync.scheme = read_scheme(in.required("scheme"));
  if (auto overlap = in.optional("overlap")) sync.overlap = overlap->as_bool();
  if (auto reduction = in.optional("reduction")) read_reduction(*reduction, in.optional("overlap"), sync);
  if (auto variables = in.optional("variables")) sync.variables = read_variables(*variables, sync.scheme);
  if (auto compression = in.optional("compression")) compression->as_choice({"none"});
  if (auto placement = in.optional("placement")) sync.placement = read_placement(*placement, scenario);
  if (sync.mode == Mode::async_parameter_server) scenario.servers = choose_servers(in.required("scheme"), scenario);
  if (auto jitter = in.optional("jitter")) sync.jitter = jitter->as_number(0, 1);
  if (auto interference = in.optional("interference")) sync.interference = interference->as_number(0, kMaxInterference);
  if (auto backup = in.optional("backup_workers")) sync.backup_workers = read_backup_workers(*backup, scenario);
  if (auto steps = in.optional("local_steps")) {
    if (sync.mode != Mode::local_sgd) steps->fail("local steps need the mode \"local-sgd\"");
    sync.local_steps = static_cast<int>(steps->as_integer(1, 1'000'000));
  } else if (sync.mode == Mode::local_sgd) {
    sync.local_steps = kDefaultLocalSteps;
  }
  if (auto batches = in.optional("batches")) sync.by_speed = batches->as_choice({"equal", "by-speed"}) == "by-speed";
  if (auto secure = in.optional("secure_aggregation")) read_secure_aggregation(*secure, sync);
  in.finish();
}

}  // namespace ganymede::sim

// Machines of their own for the weights of asynchronous training: what to rent for them.

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/sections.hpp"

namespace ganymede {
namespace {

BytesPerSecond nic_rate(const Instance& instance) {
  return instance.nic ? instance.nic->bandwidth * instance.nic->count : BytesPerSecond{0};
}

/// The cheapest host without GPUs whose network is no slower than the workers'; where all are slower the fastest.
const Instance* cheapest_host(const ScenarioPool& beside) {
  const BytesPerSecond enough = nic_rate(beside.instance());
  const Instance* best = nullptr;
  const auto price = [&](const Instance& of) { return find_price(of, beside.pool.region, Market::on_demand); };
  for (const Instance& instance : beside.platform->instances) {
    const bool host = beside.platform->gpu_of(instance).kind == Gpu::Kind::cpu && instance.retired.empty();
    if (!host || !instance.nic || !price(instance)) continue;
    const BytesPerSecond rate = std::min(nic_rate(instance), enough);
    const bool faster = best && rate > std::min(nic_rate(*best), enough);
    const bool cheaper =
        best && rate == std::min(nic_rate(*best), enough) && price(instance)->per_hour < price(*best)->per_hour;
    if (!best || faster || cheaper) best = &instance;
  }
  return best;
}

}  // namespace

ServerNodes read_servers(const JsonNode& scheme, Scenario& scenario) {
  ServerNodes servers;
  const ScenarioPool& first = scenario.pools.front();
  try {
    servers.nodes = parameter_servers(scenario.synchronization.scheme, flat(scenario.workers())).machines;
  } catch (const ConfigError& error) {
    scheme.fail(error.what());
  }
  if (servers.nodes == 0) return servers;
  const Instance* host = cheapest_host(first);
  const Instance& instance = host ? *host : first.instance();
  servers.instance = instance.name;
  const Price* price = find_price(instance, first.pool.region, Market::on_demand);
  servers.price = price ? *price : first.price;
  if (instance.available && servers.nodes + (host ? 0 : first.most) > *instance.available)
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

}  // namespace ganymede

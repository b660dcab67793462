#include "sim/steps/worker_layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// The link between two regions if no link is stated, because a policy only moves runs from one to the other. If nodes
/// are held in both, the link is taken to be that of AWS' regions on one continent: an assumption.
constexpr BytesPerSecond kAssumedRegionBandwidth{5e9 / 8};
constexpr Seconds kAssumedRegionLatency{0.03};

/// The platform with NICs and fabric at `share` of their bandwidth, which is that of a NIC's burst if it has one and
/// `burst` is true.
std::shared_ptr<const platforms::Platform> with_network(const std::shared_ptr<const platforms::Platform>& platform,
                                                        double share, bool burst) {
  if (share == 1 && !burst) return platform;
  auto copy = std::make_shared<platforms::Platform>(*platform);
  for (auto& instance : copy->instances)
    if (instance.nic) {
      if (burst && instance.nic->burst) instance.nic->bandwidth = *instance.nic->burst;
      instance.nic->bandwidth *= share;
      if (instance.nic->per_flow) *instance.nic->per_flow *= share;
      if (instance.nic->tcp && instance.nic->tcp->per_flow) *instance.nic->tcp->per_flow *= share;
    }
  copy->fabric.bandwidth *= share;
  for (auto& link : copy->fabric.links) link.bandwidth *= share;
  return copy;
}

/// Adds the dedicated servers after the workers of the first site. If that site is on another platform than the one
/// that the servers were chosen from, they are taken to be of its workers' instance type: an assumption.
void add_servers(const ServerNodes& servers, Site& site) {
  if (servers.nodes == 0) return;
  const platforms::Instance* instance = site.groups.front().instance;
  for (const platforms::Instance& other : site.platform->instances)
    if (other.name == servers.instance) instance = &other;
  site.groups.push_back({instance, servers.nodes, 1});
}

}  // namespace

bool nics_burst(const Scenario& scenario, const std::vector<int>& nodes) {
  if (std::accumulate(nodes.begin(), nodes.end(), scenario.servers.nodes) < 2) return false;
  for (std::size_t p = 0; p < nodes.size(); ++p)
    if (const auto& nic = scenario.pools[p].instance().nic; nodes[p] > 0 && nic && nic->burst) return true;
  return false;
}

WorkerLayout layout_workers(const Scenario& scenario, const Configuration& configuration) {
  WorkerLayout layout;
  std::vector<bool> taken(scenario.pools.size(), false);
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    if (taken[p] || configuration.nodes[p] == 0) continue;
    const ScenarioPool& first = scenario.pools[p];
    Site site{
        with_network(first.platform, configuration.network, configuration.nic_burst), {}, layout.pool_of.size(), 0};
    for (std::size_t q = p; q < scenario.pools.size(); ++q) {
      const ScenarioPool& pool = scenario.pools[q];
      if (taken[q] || configuration.nodes[q] == 0 || !same_place(first, pool)) continue;
      taken[q] = true;
      const platforms::Instance* instance = &site.platform->instance(pool.pool.instance);
      const int gpus = pool.pool.gpus_per_node;
      if (!site.groups.empty() && site.groups.back().instance == instance && site.groups.back().gpus_per_node == gpus)
        site.groups.back().nodes += configuration.nodes[q];
      else
        site.groups.push_back({instance, configuration.nodes[q], gpus});
      for (int node = 0; node < configuration.nodes[q]; ++node) {
        layout.node_sizes.push_back(gpus);
        layout.pool_of.insert(layout.pool_of.end(), static_cast<std::size_t>(gpus), q);
      }
    }
    site.workers = layout.pool_of.size() - site.first_worker;
    layout.sites.push_back(std::move(site));
  }
  if (!layout.sites.empty()) add_servers(scenario.servers, layout.sites.front());
  return layout;
}

std::vector<SiteLink> site_links(const Scenario& scenario, const Configuration& configuration,
                                 const WorkerLayout& layout) {
  const auto site_of = [&](std::size_t pool) {
    std::size_t site = layout.sites.size() - 1;
    const auto worker = std::find(layout.pool_of.begin(), layout.pool_of.end(), pool) - layout.pool_of.begin();
    while (layout.sites[site].first_worker > static_cast<std::size_t>(worker)) --site;
    return site;
  };
  const auto narrow = [](std::optional<SiteLink>& narrowest, const SiteLink& link) {
    if (!narrowest) narrowest = link;
    narrowest->bandwidth = std::min(narrowest->bandwidth, link.bandwidth);
    narrowest->latency = std::max(narrowest->latency, link.latency);
  };
  std::map<std::pair<std::size_t, std::size_t>, std::optional<SiteLink>> links;
  std::optional<SiteLink> narrowest;
  for (const PoolLink& link : scenario.links) {
    if (configuration.nodes[link.a] == 0 || configuration.nodes[link.b] == 0) continue;
    const bool stated = link.bandwidth.si > 0;
    const auto [low, high] = std::minmax({site_of(link.a), site_of(link.b)});
    const SiteLink known{low, high, configuration.network * (stated ? link.bandwidth : kAssumedRegionBandwidth),
                         stated ? link.latency : kAssumedRegionLatency};
    narrow(narrowest, known);
    if (low != high) narrow(links[{low, high}], known);
  }
  // A policy's links all begin at the first region, so that between two others none need be known.
  if (!narrowest) narrowest = SiteLink{0, 0, configuration.network * kAssumedRegionBandwidth, kAssumedRegionLatency};
  std::vector<SiteLink> out;
  for (std::size_t a = 0; a < layout.sites.size(); ++a)
    for (std::size_t b = a + 1; b < layout.sites.size(); ++b) {
      const auto found = links.find({a, b});
      const SiteLink& link = found == links.end() ? *narrowest : *found->second;
      out.push_back({a, b, link.bandwidth, link.latency});
    }
  return out;
}

}  // namespace ganymede::sim

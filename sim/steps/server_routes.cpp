// Routes of asynchronous training: from each worker to the servers that hold the weights, and back.

#include <algorithm>

#include "common/units.hpp"
#include "sim/steps/communication.hpp"

namespace ganymede::sim {
namespace {

/// A worker or a server: its site, and its rank there.
struct RoutePlace {
  std::size_t site;
  int rank;
};

/// Merges the uses of a transfer, so that each link is listed once.
void merge_uses(ServerTraffic::Transfer& transfer) {
  using Use = ServerTraffic::Transfer::Use;
  std::sort(transfer.uses.begin(), transfer.uses.end(), [](const Use& a, const Use& b) { return a.link < b.link; });
  std::vector<Use> merged;
  for (const Use& use : transfer.uses)
    if (!merged.empty() && merged.back().link == use.link)
      merged.back().busy += use.busy;
    else
      merged.push_back(use);
  transfer.uses = std::move(merged);
}

}  // namespace

ServerRoutes Communication::route_to_servers(Bytes weights, const ParameterServers& servers) const {
  ServerRoutes routes;
  std::vector<RoutePlace> workers, holders;
  std::vector<std::size_t> first;  // of each site's links
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    for (std::size_t rank = 0; rank < sites_[site].workers; ++rank) workers.push_back({site, static_cast<int>(rank)});
    first.push_back(routes.traffic.links);
    routes.traffic.links += inside_[site]->links();
  }
  for (const int rank : servers.ranks) holders.push_back(workers[static_cast<std::size_t>(rank)]);
  for (int machine = 0; machine < servers.machines; ++machine)
    holders.push_back({0, static_cast<int>(sites_.front().workers) + machine});
  // The links of the sites are followed by the lines that join the sites: one line out of each site and one into it.
  const std::size_t lines = routes.traffic.links;
  routes.traffic.links += 2 * sites_.size();
  const Bytes share = weights / static_cast<double>(holders.size());
  const auto add = [&](const RoutePlace& from, const RoutePlace& to, ServerTraffic::Transfer& transfer) {
    if (from.site == to.site) {
      if (from.rank != to.rank) inside_[from.site]->add_transfer(from.rank, to.rank, share, first[from.site], transfer);
      return;
    }
    for (const std::size_t line : {lines + 2 * from.site, lines + 2 * to.site + 1})
      transfer.uses.push_back({line, share / between_->bandwidth});
    transfer.latency = std::max(transfer.latency, between_->latency);
    routes.between_sites[{from.site, to.site}] += share;
  };
  std::vector<Seconds> busy(routes.traffic.links);
  for (const RoutePlace& worker : workers) {
    ServerTraffic::Transfer push, fetch;
    for (const RoutePlace& holder : holders) {
      add(worker, holder, push);
      add(holder, worker, fetch);
    }
    for (auto* transfer : {&push, &fetch}) {
      merge_uses(*transfer);
      for (const auto& use : transfer->uses) busy[use.link] += use.busy;
    }
    routes.traffic.push.push_back(std::move(push));
    routes.traffic.fetch.push_back(std::move(fetch));
  }
  routes.busiest_link = *std::max_element(busy.begin(), busy.end());
  return routes;
}

}  // namespace ganymede::sim

#pragma once
// Communication of a run's steps over the fabrics of one or several sites.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/network.hpp"
#include "sim/steps/site_communication.hpp"

namespace ganymede::sim {

/// Bytes of a step that cross from one site to another, by the two sites, of all workers together.
using SiteTraffic = std::map<std::pair<std::size_t, std::size_t>, Bytes>;

/// The transfers of asynchronous steps, and the load that they put on the fabric.
struct ServerRoutes {
  ServerTraffic traffic;
  Seconds busiest_link;  ///< Time for which a step needs the busiest link at its full bandwidth.
  SiteTraffic between_sites;
};

/// Communication over one or more sites. With several, each site reduces among its own workers; when the last one is
/// done the sites exchange their sums on a ring over the links that join them; the slowest of these links sets the
/// pace. This is how frameworks' hierarchical all-reduce works across regions. At message fidelity a site joins the
/// ring when its own workers are done, and each link of the ring has its own pace.
class Communication {
 public:
  /// `between`: the links that join each pair of sites.
  Communication(std::vector<Site> sites, const Scheme& scheme, std::vector<std::int64_t> buckets, bool message,
                bool jitter, bool pairs, const std::vector<SiteLink>& between);

  /// Shares what is simulated with others on the same platform, by the same scheme; `what` names both. `cache` must
  /// outlive this.
  void share(ReductionCache& cache, const std::string& what);

  // The same functions as in SiteCommunication, over all sites.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);
  Seconds time(std::size_t bucket) const;
  Seconds to_neighbour(Bytes bytes) const;
  Seconds across_pairs(Bytes bytes) const;
  double compute_share_lost(const platforms::Gpu& gpu) const;
  std::string nccl_version() const;  ///< of the first site that states one
  bool starts_late() const;
  double messages_per_step() const;
  double work_per_step() const;  ///< the messages as Schedule::work() counts them
  double simulated_messages_per_step() const;
  Seconds busiest_link() const;

  /// The routes of asynchronous training between the workers and `servers`, which hold the weights between them.
  ServerRoutes route_to_servers(Bytes weights, const ParameterServers& servers) const;
  /// The traffic of the ring of the sites' sums in a step: each site sends to the next one, and the last to the first.
  SiteTraffic ring_traffic() const;
  /// The traffic of gossip averaging: workers average with the next and the previous one in turn, so that each pair
  /// that lies on both sides of a border between sites exchanges its weights in half of the steps.
  SiteTraffic gossip_traffic() const;

 private:
  Seconds exchange(std::int64_t bytes) const;
  void join(const std::vector<SiteLink>& between);
  std::vector<std::vector<Seconds>> exchange_messages(std::span<const Reduction> reductions,
                                                      const std::vector<std::vector<Seconds>>& last);

  std::vector<Site> sites_;
  std::vector<std::int64_t> buckets_;
  std::vector<std::unique_ptr<SiteCommunication>> inside_;  // by site
  // With several sites, the lowest bandwidth and the highest latency of the links between any two, and of those on the
  // ring.
  std::optional<SiteLink> between_, on_ring_;
  // With several sites at message fidelity:
  std::unique_ptr<JoinedNetwork> network_;
  std::shared_ptr<CommunicationEngine> engine_;
  std::vector<Schedule> exchanges_;  // by bucket: among the sites' gateways
};

}  // namespace ganymede::sim

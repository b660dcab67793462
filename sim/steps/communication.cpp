#include "sim/steps/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

void narrow(std::optional<SiteLink>& narrowest, const SiteLink& link) {
  if (!narrowest) narrowest = link;
  narrowest->bandwidth = std::min(narrowest->bandwidth, link.bandwidth);
  narrowest->latency = std::max(narrowest->latency, link.latency);
}

}  // namespace

Communication::Communication(std::vector<Site> sites, const Scheme& scheme, std::vector<std::int64_t> buckets,
                             bool message, bool jitter, bool pairs, const std::vector<SiteLink>& between)
    : sites_(std::move(sites)), buckets_(std::move(buckets)) {
  assert(sites_.size() == 1 || !between.empty());
  for (const SiteLink& link : between) {
    narrow(between_, link);
    if (link.a + 1 == link.b || (link.a == 0 && link.b + 1 == sites_.size())) narrow(on_ring_, link);
  }
  for (const Site& site : sites_)
    inside_.push_back(std::make_unique<SiteCommunication>(site, scheme, buckets_, message, jitter, pairs));
  if (message && sites_.size() > 1) join(between);
}

void Communication::share(ReductionCache& cache, const std::string& what) {
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    std::string key = what;
    for (const std::int64_t bytes : buckets_) key += fmt::format(" {}", bytes);
    // Nodes of two markets are on the same network as so many of one.
    const auto& groups = sites_[s].groups;
    for (std::size_t g = 0, nodes = 0; g < groups.size(); ++g) {
      nodes += static_cast<std::size_t>(groups[g].nodes);
      if (g + 1 < groups.size() && groups[g + 1].instance == groups[g].instance &&
          groups[g + 1].gpus_per_node == groups[g].gpus_per_node)
        continue;
      key += fmt::format(", {} {} {}", nodes, groups[g].instance->name, groups[g].gpus_per_node);
      nodes = 0;
    }
    inside_[s]->share(cache[key]);
  }
}

/// Puts all sites on one SimGrid engine.
void Communication::join(const std::vector<SiteLink>& between) {
  std::vector<const Network*> places;
  for (const auto& site : inside_) places.push_back(&site->network());
  network_ = std::make_unique<JoinedNetwork>(std::move(places), between);
  engine_ = open_communication_engine(*network_);
  for (std::size_t s = 0; s < sites_.size(); ++s) inside_[s]->share_engine(engine_, network_->first_endpoint(s));
  const Scheme ring = parse_scheme("ring");
  for (const std::int64_t bytes : buckets_)
    exchanges_.push_back(ring.plan({flat(static_cast<int>(sites_.size())), bytes, Collective::all_reduce, ""}));
}

Seconds Communication::exchange(std::int64_t bytes) const {
  const auto count = static_cast<double>(sites_.size());
  if (count < 2) return Seconds{0};
  return 2 * (count - 1) * (Bytes{static_cast<double>(bytes) / count} / on_ring_->bandwidth + on_ring_->latency);
}

/// When each site has the sums of all, by reduction and site; `last` tells when its own workers were done.
std::vector<std::vector<Seconds>> Communication::exchange_messages(std::span<const Reduction> reductions,
                                                                   const std::vector<std::vector<Seconds>>& last) {
  Job job{{Communicator{}}};
  for (std::size_t s = 0; s < sites_.size(); ++s) job.communicators[0].members.push_back(network_->gateway(s));
  for (std::size_t i = 0; i < reductions.size(); ++i)
    job.communicators[0].calls.push_back({&exchanges_[reductions[i].bucket], last[i]});
  JobTimes times = engine_->run({&job, 1});
  std::vector<std::vector<Seconds>> done;
  for (auto& call : times[0][0]) done.push_back(std::move(call.done));
  return done;
}

std::vector<std::vector<Seconds>> Communication::reduce(std::span<const Reduction> reductions, bool remember) {
  if (sites_.size() == 1) return inside_.front()->reduce(reductions, remember);
  // By reduction and site: when the site's last worker is done.
  std::vector<std::vector<Seconds>> last(reductions.size(), std::vector<Seconds>(sites_.size()));
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const auto first = static_cast<std::ptrdiff_t>(sites_[s].first_worker);
    const auto end = first + static_cast<std::ptrdiff_t>(sites_[s].workers);
    std::vector<Reduction> own;
    for (const auto& all : reductions)
      own.push_back({all.bucket, {all.arrivals.begin() + first, all.arrivals.begin() + end}});
    const auto ends = sites_[s].workers > 1 ? inside_[s]->reduce(own, remember) : std::vector<std::vector<Seconds>>{};
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto& times = ends.empty() ? own[i].arrivals : ends[i];
      last[i][s] = *std::max_element(times.begin(), times.end());
    }
  }
  if (engine_) last = exchange_messages(reductions, last);
  std::vector<std::vector<Seconds>> done(reductions.size());
  Seconds free{0};
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    free = std::max(free, *std::max_element(last[i].begin(), last[i].end())) + exchange(buckets_[reductions[i].bucket]);
    for (std::size_t s = 0; s < sites_.size(); ++s)
      done[i].insert(done[i].end(), sites_[s].workers, engine_ ? last[i][s] : free);
  }
  return done;
}

Seconds Communication::time(std::size_t bucket) const {
  Seconds longest{0};
  for (std::size_t s = 0; s < sites_.size(); ++s)
    if (sites_[s].workers > 1) longest = std::max(longest, inside_[s]->time(bucket));
  return longest + exchange(buckets_[bucket]);
}

Seconds Communication::to_neighbour(Bytes bytes) const {
  Seconds longest{0};
  for (const auto& site : inside_) longest = std::max(longest, site->to_neighbour(bytes));
  if (on_ring_) longest = std::max(longest, bytes / on_ring_->bandwidth + on_ring_->latency);
  return longest;
}

Seconds Communication::across_pairs(Bytes bytes) const {
  Seconds longest{0};
  for (const auto& site : inside_) longest = std::max(longest, site->across_pairs(bytes));
  const bool apart = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) { return site.workers % 2 != 0; });
  if (on_ring_ && apart) longest = std::max(longest, bytes / on_ring_->bandwidth + on_ring_->latency);
  return longest;
}

double Communication::compute_share_lost(const platforms::Gpu& gpu) const {
  double most = 0;
  for (const auto& site : inside_) most = std::max(most, site->compute_share_lost(gpu));
  return most;
}

std::string Communication::nccl_version() const {
  for (const auto& site : inside_)
    if (!site->nccl_version().empty()) return site->nccl_version();
  return "";
}

bool Communication::starts_late() const {
  return std::any_of(inside_.begin(), inside_.end(), [](const auto& site) { return site->starts_late(); });
}

double Communication::messages_per_step() const {
  double sum = 0;
  for (const auto& site : inside_) sum += site->messages_per_step();
  const auto count = static_cast<double>(sites_.size());
  return sum + static_cast<double>(exchanges_.size()) * 2 * (count - 1) * count;
}

double Communication::work_per_step() const {
  double more = 0;
  for (const auto& site : inside_) more += site->work_per_step() - site->messages_per_step();
  return messages_per_step() + more;
}

double Communication::simulated_messages_per_step() const {
  double sum = 0;
  for (const auto& site : inside_) sum += site->simulated_messages_per_step();
  return sum;
}

Seconds Communication::busiest_link() const {
  Seconds busiest{0};
  for (const auto& site : inside_) busiest = std::max(busiest, site->busiest_link());
  if (on_ring_)
    for (const std::int64_t bytes : buckets_) {
      const auto count = static_cast<double>(sites_.size());
      busiest += Bytes{2 * (count - 1) / count * static_cast<double>(bytes)} / on_ring_->bandwidth;
    }
  return busiest;
}

SiteTraffic Communication::ring_traffic() const {
  SiteTraffic traffic;
  const auto count = static_cast<double>(sites_.size());
  for (std::size_t s = 0; s < sites_.size() && count > 1; ++s)
    for (const std::int64_t bytes : buckets_)
      traffic[{s, (s + 1) % sites_.size()}] += Bytes{2 * (count - 1) / count * static_cast<double>(bytes)};
  return traffic;
}

SiteTraffic Communication::gossip_traffic() const {
  SiteTraffic traffic;
  for (std::size_t s = 0; s < sites_.size() && sites_.size() > 1; ++s)
    for (const std::int64_t bytes : buckets_) {
      const std::size_t next = (s + 1) % sites_.size();
      for (const auto& ends : {std::pair{s, next}, std::pair{next, s}})
        traffic[ends] += Bytes{0.5 * static_cast<double>(bytes)};
    }
  return traffic;
}

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

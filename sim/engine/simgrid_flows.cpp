#include "sim/engine/simgrid_flows.hpp"

#include <fmt/format.h>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>

#include "common/errors.hpp"

namespace ganymede::sim {
namespace {

namespace s4u = simgrid::s4u;

/// Settings that change results if they are left at their defaults.
constexpr const char* kSettings[] = {
    "network/model:CM02",      // flows share links max-min fairly
    "network/optim:Lazy",      //
    "network/crosstraffic:0",  // full duplex: acknowledgements do not steal bandwidth
    "network/bandwidth-factor:1", "network/latency-factor:1",
    "network/weight-S:0",     // shares do not depend on bandwidth along the route
    "network/TCP-gamma:0",    // no cap of window / round-trip time: platforms state limits per flow
    "surf/precision:1e-12",   // seconds; 1e-9 would be visible in messages of microseconds
    "maxmin/precision:1e-9",  // relative to a link's bandwidth
};

constexpr int kMaxLimiters = 64;

/// The routes that are used. SimGrid's zones with explicit routes have a table of all pairs of hosts.
class UsedRoutes final : public simgrid::kernel::routing::NetZoneImpl {
 public:
  using NetPoint = simgrid::kernel::routing::NetPoint;

  explicit UsedRoutes(const std::string& name) : NetZoneImpl(name) {}

  void add_route(NetPoint* from, NetPoint* to, NetPoint* /*gateway*/, NetPoint* /*other_gateway*/,
                 const std::vector<s4u::LinkInRoute>& links, bool /*symmetrical*/) override {
    routes_[key(*from, *to)] = get_link_list_impl(links, false);
  }

 private:
  static std::uint64_t key(const NetPoint& from, const NetPoint& to) {
    return std::uint64_t{from.id()} << 32U | to.id();
  }

  void get_local_route(const NetPoint* from, const NetPoint* to, simgrid::kernel::routing::Route* into,
                       double* /*latency*/) override {
    into->link_list_ = routes_.at(key(*from, *to));
  }

  std::unordered_map<std::uint64_t, std::vector<simgrid::kernel::resource::StandardLinkImpl*>> routes_;
};

/// SimGrid takes whole bytes, but a protocol may send fractions of them. All sizes and rates are in units of 1/1024
/// byte.
constexpr double kUnitsPerByte = 1024;

}  // namespace

SimGridFlows::SimGridFlows(const Network& fabric, int limits, std::size_t disks)
    : fabric_(fabric), paths_per_pair_(fabric.max_paths()), limits_(limits) {
  static bool exists = false;
  if (exists) throw Failure("a second SimGrid engine in one process; run each simulation in a child process");
  exists = true;
  xbt_log_control_set("root.thres:warning");
  char name[] = "ganymede";
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer does not know stacks that SimGrid switches by itself. Later than here SimGrid ignores this setting.
  char threads[] = "--cfg=contexts/factory:thread";
  char* argv[] = {name, threads, nullptr};
#else
  char* argv[] = {name, nullptr};
#endif
  int argc = static_cast<int>(std::size(argv)) - 1;
  engine_ = std::make_unique<s4u::Engine>(&argc, argv);
  for (const char* setting : kSettings) s4u::Engine::set_config(setting);

  zone_ = (new UsedRoutes("fabric"))->get_iface();  // which SimGrid deletes
  for (const auto& link : fabric.links()) {
    links_.push_back(zone_->create_link(link.name, link.bandwidth.si * kUnitsPerByte));
    links_.back()->set_latency(0)->seal();
  }
  const int hosts = static_cast<int>(fabric.endpoints().size()) * paths_per_pair_ * limits_;
  for (int host = 0; host < hosts; ++host) {
    hosts_.push_back(zone_->create_host(fmt::format("host.{}", host), 1.0));
    for (std::size_t disk = 0; host == 0 && disk < disks; ++disk)
      disks_.push_back(hosts_.back()->create_disk(fmt::format("disk.{}", disk), 1e9, 1e9));
    hosts_.back()->seal();
  }
  routed_.resize(hosts_.size());
  for (int i = 0; i < kMaxLimiters; ++i) {  // a sealed zone takes no more links
    unused_limiters_.push_back(zone_->create_link(fmt::format("limit.{}", i), 1));
    unused_limiters_.back()->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->set_latency(0)->seal();
  }
  zone_->seal();
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { finish(activity); });
}

void SimGridFlows::start(const SimGridFlow& flow, std::function<void()> done) {
  const std::size_t from = host_index(flow.source, flow), to = host_index(flow.destination, flow);
  if (routed_[from].insert(flow.destination).second) {
    std::vector<s4u::LinkInRoute> route;
    fabric_.paths(flow.source, flow.destination, paths_);
    const Path& path = paths_[static_cast<std::size_t>(flow.path_index)];
    for (const int link : path.links) route.emplace_back(links_[static_cast<std::size_t>(link)]);
    const double limit = std::min(flow.limit, path.flow_limit.si);
    if (std::isfinite(limit)) route.emplace_back(limiter(limit));
    zone_->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr, nullptr, route, false);
  }
  auto message = s4u::Comm::sendto_init(hosts_[from], hosts_[to]);
  message->set_payload_size(static_cast<std::uint64_t>(std::llround(flow.bytes * kUnitsPerByte)));
  const s4u::Activity* key = message.get();
  active_.emplace(key, Active{message, std::move(done)});
  message->start();
}

void SimGridFlows::run() {
  engine_->run();
  finished_.clear();
  if (!active_.empty())
    throw Failure(fmt::format("{} flows never finished: the schedule waits for itself", active_.size()));
}

/// The host of an endpoint for flows of this path and limit.
std::size_t SimGridFlows::host_index(int endpoint, const SimGridFlow& flow) {
  const auto known = std::find(limit_values_.begin(), limit_values_.end(), flow.limit);
  const int slot = static_cast<int>(known - limit_values_.begin());
  if (known == limit_values_.end()) limit_values_.push_back(flow.limit);
  if (slot >= limits_) throw Failure("more different limits of flows than the engine was made for");
  const int host = (endpoint * paths_per_pair_ + flow.path_index) * limits_ + slot;
  return static_cast<std::size_t>(host);
}

s4u::Link* SimGridFlows::limiter(double limit) {
  auto& link = limiters_[limit];
  if (link == nullptr) {
    if (unused_limiters_.empty()) throw Failure(fmt::format("more than {} different limits of a flow", kMaxLimiters));
    link = unused_limiters_.back();
    unused_limiters_.pop_back();
    link->set_bandwidth(limit * kUnitsPerByte);
  }
  return link;
}

void SimGridFlows::finish(const s4u::Activity& activity) {
  auto node = active_.extract(&activity);
  if (node.empty()) return;
  // SimGrid still uses the activity during this callback, so it is dropped later.
  if (finished_.size() > 4096) finished_.erase(finished_.begin(), finished_.end() - 64);
  finished_.push_back(std::move(node.mapped().flow));
  node.mapped().done();
}

}  // namespace ganymede::sim

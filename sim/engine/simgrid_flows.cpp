#include "sim/engine/simgrid_flows.hpp"

#include <fmt/format.h>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"

namespace ganymede {
namespace {

namespace s4u = simgrid::s4u;

/// Each of these changes results if left at its default.
constexpr const char* kSettings[] = {
    "network/model:CM02",      // flows share links max-min fairly
    "network/optim:Lazy",      //
    "network/crosstraffic:0",  // full duplex: acknowledgements do not steal bandwidth
    "network/bandwidth-factor:1", "network/latency-factor:1",
    "network/weight-S:0",     // shares do not depend on bandwidth along the route
    "network/TCP-gamma:0",    // no cap of window / round-trip time: a platform states its per-flow limits
    "surf/precision:1e-12",   // seconds that count as the same moment; 1e-9 is visible in microsecond messages
    "maxmin/precision:1e-9",  // of a link's bandwidth
};

constexpr int kLimiters = 64;

/// SimGrid takes whole bytes, of which a protocol may send fractions: all sizes and rates are in parts of one.
constexpr double kParts = 1024;

}  // namespace

SimGridFlows::SimGridFlows(const FabricGraph& fabric, int limits)
    : fabric_(fabric), ways_(fabric.most_ways()), limits_(limits) {
  static bool exists = false;
  if (exists) throw Failure("a second SimGrid engine in one process; run each simulation in a child process");
  exists = true;
  xbt_log_control_set("root.thres:warning");
  int argc = 1;
  char name[] = "ganymede";
  char* argv[] = {name, nullptr};
  engine_ = std::make_unique<s4u::Engine>(&argc, argv);
  for (const char* setting : kSettings) s4u::Engine::set_config(setting);

  zone_ = s4u::create_full_zone("fabric");
  for (const auto& link : fabric.links()) {
    links_.push_back(zone_->create_link(link.name, link.bandwidth.si * kParts));
    links_.back()->set_latency(0)->seal();
  }
  const int hosts = static_cast<int>(fabric.endpoints().size()) * ways_ * limits_;
  for (int host = 0; host < hosts; ++host) {
    hosts_.push_back(zone_->create_host(fmt::format("host.{}", host), 1.0));
    hosts_.back()->seal();
  }
  known_.resize(hosts_.size());
  for (int i = 0; i < kLimiters; ++i) {  // now, as a sealed zone takes no more links
    spare_limiters_.push_back(zone_->create_link(fmt::format("limit.{}", i), 1));
    spare_limiters_.back()->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->set_latency(0)->seal();
  }
  zone_->seal();
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { finish(activity); });
}

void SimGridFlows::start(const SimGridFlow& flow, std::function<void()> done) {
  const std::size_t from = host(flow.source, flow), to = host(flow.destination, flow);
  if (known_[from].insert(flow.destination).second) {
    std::vector<s4u::LinkInRoute> route;
    fabric_.paths(flow.source, flow.destination, paths_);
    const Path& path = paths_[static_cast<std::size_t>(flow.way)];
    for (const int link : path.links) route.emplace_back(links_[static_cast<std::size_t>(link)]);
    const double limit = std::min(flow.limit, path.flow_limit.si);
    if (std::isfinite(limit)) route.emplace_back(limiter(limit));
    zone_->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr, nullptr, route, false);
  }
  auto message = s4u::Comm::sendto_init(hosts_[from], hosts_[to]);
  message->set_payload_size(static_cast<std::uint64_t>(std::llround(flow.bytes * kParts)));
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

/// The host of an endpoint for messages of this way and limit.
std::size_t SimGridFlows::host(int endpoint, const SimGridFlow& flow) {
  const auto known = std::find(limit_values_.begin(), limit_values_.end(), flow.limit);
  const int slot = static_cast<int>(known - limit_values_.begin());
  if (known == limit_values_.end()) limit_values_.push_back(flow.limit);
  if (slot >= limits_) throw Failure("more protocols with rates of their own than the engine was made for");
  const int host = (endpoint * ways_ + flow.way) * limits_ + slot;
  return static_cast<std::size_t>(host);
}

s4u::Link* SimGridFlows::limiter(double limit) {
  auto& link = limiters_[limit];
  if (link == nullptr) {
    if (spare_limiters_.empty()) throw Failure(fmt::format("more than {} different limits of a flow", kLimiters));
    link = spare_limiters_.back();
    spare_limiters_.pop_back();
    link->set_bandwidth(limit * kParts);
  }
  return link;
}

void SimGridFlows::finish(const s4u::Activity& activity) {
  auto node = active_.extract(&activity);
  if (node.empty()) return;
  // SimGrid still uses the activity while it tells us of its end: drop it later.
  if (finished_.size() > 4096) finished_.erase(finished_.begin(), finished_.end() - 64);
  finished_.push_back(std::move(node.mapped().flow));
  node.mapped().done();
}

}  // namespace ganymede

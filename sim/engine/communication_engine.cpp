#include "sim/engine/communication_engine.hpp"

#include <fmt/format.h>
#include <xbt/log.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <unordered_map>
#include <unordered_set>

#include "common/errors.hpp"

namespace ganymede {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

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

void at(Seconds date, auto&& callback) { Timer::set(date.si, std::forward<decltype(callback)>(callback)); }
Seconds now() { return Seconds{s4u::Engine::get_clock()}; }

/// One message over one of its ways.
struct Flow {
  int source, destination, way;
  double bytes, limit;
};

/// The SimGrid side of a fabric: hosts, links and routes, and nothing with a latency. Routes are made when they are
/// first needed: most pairs never are.
///
/// A pair of hosts has one route, so an endpoint has a host for each of the ways that its messages may be split over,
/// and for each rate to which a protocol limits a flow: SimGrid 3.32 ignores the rate of a message between hosts, but a
/// link of kind FATPIPE in the route gives every flow that much and no more.
class Flows {
 public:
  Flows(const FabricGraph& fabric, int limits) : fabric_(fabric), ways_(fabric.most_ways()), limits_(limits) {
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
      links_.push_back(zone_->create_link(link.name, link.bandwidth.si));
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

  /// Starts a flow now; `done` runs when its last byte has arrived.
  void start(const Flow& flow, std::function<void()> done) {
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
    message->set_payload_size(static_cast<std::uint64_t>(std::llround(flow.bytes)));
    const s4u::Activity* key = message.get();
    active_.emplace(key, Active{message, std::move(done)});
    message->start();
  }

  /// Until no timer and no flow is left.
  void run() {
    engine_->run();
    finished_.clear();
    if (!active_.empty())
      throw Failure(fmt::format("{} flows never finished: the schedule waits for itself", active_.size()));
  }

 private:
  struct Active {
    s4u::CommPtr flow;
    std::function<void()> done;
  };

  /// The host of an endpoint for messages of this way and limit.
  std::size_t host(int endpoint, const Flow& flow) {
    const auto known = std::find(limit_values_.begin(), limit_values_.end(), flow.limit);
    const int slot = static_cast<int>(known - limit_values_.begin());
    if (known == limit_values_.end()) limit_values_.push_back(flow.limit);
    if (slot >= limits_) throw Failure("more protocols with rates of their own than the engine was made for");
    const int host = (endpoint * ways_ + flow.way) * limits_ + slot;
    return static_cast<std::size_t>(host);
  }

  s4u::Link* limiter(double limit) {
    auto& link = limiters_[limit];
    if (link == nullptr) {
      if (spare_limiters_.empty()) throw Failure(fmt::format("more than {} different limits of a flow", kLimiters));
      link = spare_limiters_.back();
      spare_limiters_.pop_back();
      link->set_bandwidth(limit);
    }
    return link;
  }

  void finish(const s4u::Activity& activity) {
    auto node = active_.extract(&activity);
    if (node.empty()) return;
    // SimGrid still uses the activity while it tells us of its end: drop it later.
    if (finished_.size() > 4096) finished_.erase(finished_.begin(), finished_.end() - 64);
    finished_.push_back(std::move(node.mapped().flow));
    node.mapped().done();
  }

  const FabricGraph& fabric_;
  int ways_;
  int limits_;
  std::vector<double> limit_values_;
  static constexpr int kLimiters = 64;
  std::map<double, s4u::Link*> limiters_;
  std::vector<s4u::Link*> spare_limiters_;
  std::unique_ptr<s4u::Engine> engine_;
  s4u::NetZone* zone_ = nullptr;
  std::vector<s4u::Link*> links_;
  std::vector<s4u::Host*> hosts_;
  std::vector<std::unordered_set<int>> known_;  // by host: where it has a route to
  std::vector<Path> paths_;
  std::unordered_map<const s4u::Activity*, Active> active_;
  std::vector<s4u::CommPtr> finished_;
};

}  // namespace

/// Walks all endpoints through their rounds (the meaning of a schedule is stated in schedule.hpp). A round is expanded
/// when the first endpoint enters it and forgotten when the last has left it.
class CommunicationEngine::Implementation {
 public:
  explicit Implementation(const FabricGraph& fabric) : fabric_(fabric) {}

  JobTimes run(std::span<const Job> jobs, const RecordTransfer& record) {
    record_ = record ? &record : nullptr;
    if (!flows_) flows_ = std::make_unique<Flows>(fabric_, limits_of(jobs));
    start_ = now();
    groups_.clear();
    bool any = false;
    for (const Job& job : jobs) {
      for (const Communicator& communicator : job.communicators) {
        groups_.emplace_back(communicator);
        for (const CollectiveCall& call : communicator.calls)
          for (const Seconds arrival : call.arrivals) first_ = any ? std::min(first_, arrival) : arrival, any = true;
      }
    }
    for (std::size_t group = 0; group < groups_.size(); ++group)
      for (std::size_t rank = 0; rank < groups_[group].ranks.size(); ++rank) next_collective(group, rank);
    flows_->run();

    JobTimes times;
    std::size_t group = 0;
    for (const Job& job : jobs) {
      times.emplace_back();
      for (std::size_t i = 0; i < job.communicators.size(); ++i)
        times.back().push_back(std::move(groups_[group++].result));
    }
    return times;
  }

 private:
  struct Rank {
    std::size_t call = 0;     // index of the collective it is in
    std::int64_t round = -1;  // -1: not entered
    int pending = 0;          // transfers of its round that are not done
    Seconds adder_free;       // when its reduction work so far is done
  };

  struct Round {
    std::vector<Transfer> transfers;
    std::vector<std::uint8_t> entered;  // by transfer: how many of its ends have entered the round
    std::vector<std::uint8_t> flows;    // by transfer: flows that have not arrived
    std::vector<Seconds> started;       // by transfer, where records are kept
    // Transfers in which a rank takes part: mine[first[rank]] … mine[first[rank + 1] - 1].
    std::vector<int> first, mine;
    std::size_t ranks_left = 0;
  };

  /// A communicator on its way through its calls.
  struct Group {
    explicit Group(const Communicator& communicator) : of(&communicator), rounds(communicator.calls.size()) {
      for (const CollectiveCall& call : communicator.calls) {
        ranks.resize(static_cast<std::size_t>(call.schedule->endpoints()));
        result.push_back({std::vector<Seconds>(static_cast<std::size_t>(call.schedule->ranks())), 0});
      }
    }
    const Communicator* of;
    std::vector<Rank> ranks;                                      // and switches
    std::vector<std::unordered_map<std::int64_t, Round>> rounds;  // by call: the rounds that some rank is in
    std::vector<CollectiveTimes> result;

    const Schedule& schedule(std::size_t call) const { return *of->calls[call].schedule; }
    int place(int endpoint) const {
      return of->members.empty() ? endpoint : of->members[static_cast<std::size_t>(endpoint)];
    }
  };

  /// How many hosts an endpoint needs for the rates that protocols limit flows to; where there are any, with some to
  /// spare for the jobs of later runs.
  static int limits_of(std::span<const Job> jobs) {
    constexpr int kSpare = 4;
    std::set<double> limits = {std::numeric_limits<double>::infinity()};
    for (const Job& job : jobs)
      for (const Communicator& communicator : job.communicators)
        for (const CollectiveCall& call : communicator.calls)
          limits.insert({call.schedule->cost().flow_inside.si, call.schedule->cost().flow_between.si});
    return static_cast<int>(limits.size()) + (limits.size() > 1 ? kSpare : 0);
  }

  const Endpoint& endpoint(const Group& group, std::size_t index) const {
    return fabric_.endpoints()[static_cast<std::size_t>(group.place(static_cast<int>(index)))];
  }

  Round& expand(Group& group, std::size_t call, std::int64_t index) {
    auto& round = group.rounds[call][index];
    if (round.ranks_left > 0) return round;
    if (!spare_.empty()) {
      round = std::move(spare_.back());
      spare_.pop_back();
    }
    group.schedule(call).round(index, round.transfers);
    const std::size_t ranks = group.ranks.size(), transfers = round.transfers.size();
    round.entered.assign(transfers, 0);
    round.flows.assign(transfers, 0);
    if (record_ != nullptr) round.started.assign(transfers, Seconds{0});
    round.first.assign(ranks + 1, 0);
    round.mine.resize(2 * transfers);
    for (const Transfer& t : round.transfers)
      ++round.first[static_cast<std::size_t>(t.source)], ++round.first[static_cast<std::size_t>(t.destination)];
    int sum = 0;
    for (int& first : round.first) first = sum += first;
    for (std::size_t i = transfers; i-- > 0;) {
      round.mine[static_cast<std::size_t>(--round.first[static_cast<std::size_t>(round.transfers[i].destination)])] =
          static_cast<int>(i);
      round.mine[static_cast<std::size_t>(--round.first[static_cast<std::size_t>(round.transfers[i].source)])] =
          static_cast<int>(i);
    }
    round.ranks_left = ranks;
    return round;
  }

  void next_collective(std::size_t group_index, std::size_t index) {
    Group& group = groups_[group_index];
    Rank& me = group.ranks[index];
    me.round = -1;
    if (me.call == group.of->calls.size()) return;
    const CollectiveCall& call = group.of->calls[me.call];
    if (index >= call.arrivals.size()) return at(now(), [this, group_index, index] { enter(group_index, index, 0); });
    const Seconds issued = start_ + (call.arrivals[index] - first_);
    at(std::max(issued, now()) + endpoint(group, index).launch + call.schedule->cost().start,
       [this, group_index, index] { enter(group_index, index, 0); });
  }

  /// Enters `round`, and the rounds after it as long as there is nothing to wait for.
  void enter(std::size_t group_index, std::size_t index, std::int64_t round) {
    Group& group = groups_[group_index];
    Rank& me = group.ranks[index];
    const Schedule& schedule = group.schedule(me.call);
    for (; round < schedule.rounds(); ++round) {
      me.round = round;
      Round& here = expand(group, me.call, round);
      me.pending = here.first[index + 1] - here.first[index];
      for (int i = here.first[index]; i < here.first[index + 1]; ++i) {
        const int transfer = here.mine[static_cast<std::size_t>(i)];
        if (++here.entered[static_cast<std::size_t>(transfer)] == 2) send(group_index, me.call, round, here, transfer);
      }
      if (me.pending > 0) return;
      leave(group, me.call, round);
    }
    if (index < group.result[me.call].done.size()) group.result[me.call].done[index] = first_ + (now() - start_);
    ++me.call;
    next_collective(group_index, index);
  }

  void leave(Group& group, std::size_t call, std::int64_t round) {
    auto& rounds = group.rounds[call];
    const auto found = rounds.find(round);
    if (--found->second.ranks_left > 0) return;
    spare_.push_back(std::move(found->second));
    rounds.erase(found);
  }

  void send(std::size_t group_index, std::size_t call, std::int64_t round, Round& here, int index) {
    Group& group = groups_[group_index];
    const Transfer& transfer = here.transfers[static_cast<std::size_t>(index)];
    const ProtocolCost& cost = group.schedule(call).cost();
    const int source = group.place(transfer.source), destination = group.place(transfer.destination);
    ++group.result[call].messages;
    if (record_ != nullptr) here.started[static_cast<std::size_t>(index)] = now();
    fabric_.paths(source, destination, paths_);
    here.flows[static_cast<std::size_t>(index)] = static_cast<std::uint8_t>(paths_.size());
    const double bytes = static_cast<double>(transfer.length) * cost.wire;
    for (std::size_t way = 0; way < paths_.size(); ++way) {
      const Path& path = paths_[way];
      const Seconds latency = latency_of(path, cost);
      const BytesPerSecond limit = path.between_nodes ? cost.flow_between : cost.flow_inside;
      const Flow flow{source, destination, static_cast<int>(way), bytes * path.share, limit.si};
      at(now() + latency, [this, flow, group_index, call, round, index] {
        flows_->start(flow, [this, group_index, call, round, index] { arrived(group_index, call, round, index); });
      });
    }
  }

  void arrived(std::size_t group_index, std::size_t call, std::int64_t round, int index) {
    Group& group = groups_[group_index];
    Round& here = group.rounds[call].at(round);
    if (--here.flows[static_cast<std::size_t>(index)] > 0) return;
    const Transfer transfer = here.transfers[static_cast<std::size_t>(index)];
    if (record_ != nullptr)
      (*record_)({group_index, call, round, transfer, first_ + (here.started[static_cast<std::size_t>(index)] - start_),
                  first_ + (now() - start_)});
    done(group_index, static_cast<std::size_t>(transfer.source));
    const auto destination = static_cast<std::size_t>(transfer.destination);
    const BytesPerSecond memory = endpoint(group, destination).memory_bandwidth;
    if (!transfer.reduce || group.schedule(call).cost().reduction_is_free || std::isinf(memory.si))
      return done(group_index, destination);
    Rank& adder = group.ranks[destination];
    adder.adder_free = std::max(adder.adder_free, now()) +
                       Bytes{static_cast<double>(transfer.length) * kMemoryBytesPerReducedByte} / memory;
    at(adder.adder_free, [this, group_index, destination] { done(group_index, destination); });
  }

  void done(std::size_t group_index, std::size_t index) {
    Group& group = groups_[group_index];
    Rank& me = group.ranks[index];
    if (--me.pending > 0) return;
    const std::int64_t finished = me.round;
    leave(group, me.call, finished);
    enter(group_index, index, finished + 1);
  }

  const FabricGraph& fabric_;
  std::unique_ptr<Flows> flows_;
  std::vector<Group> groups_;
  std::vector<Round> spare_;  // memory to use again
  std::vector<Path> paths_;
  const RecordTransfer* record_ = nullptr;
  Seconds first_;  // the earliest arrival: the clock runs on from one run() to the next, arrivals are counted from here
  Seconds start_;
};

CommunicationEngine::CommunicationEngine(const FabricGraph& fabric)
    : implementation_(std::make_unique<Implementation>(fabric)) {}
CommunicationEngine::~CommunicationEngine() = default;

JobTimes CommunicationEngine::run(std::span<const Job> jobs, const RecordTransfer& record) {
  return implementation_->run(jobs, record);
}

}  // namespace ganymede

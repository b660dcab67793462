#include "sim/engine/communication_engine.hpp"

#include <fmt/format.h>
#include <xbt/log.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <unordered_map>

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

/// The SimGrid side of a fabric: hosts, links and routes, and nothing with a latency.
class Flows {
 public:
  explicit Flows(const FabricGraph& fabric) {
    static bool exists = false;
    if (exists) throw Failure("a second SimGrid engine in one process; run each simulation in a child process");
    exists = true;
    xbt_log_control_set("root.thres:warning");
    int argc = 1;
    char name[] = "ganymede";
    char* argv[] = {name, nullptr};
    engine_ = std::make_unique<s4u::Engine>(&argc, argv);
    for (const char* setting : kSettings) s4u::Engine::set_config(setting);

    auto* zone = s4u::create_full_zone("fabric");
    std::vector<s4u::Link*> links;
    for (const auto& link : fabric.links()) {
      links.push_back(zone->create_link(link.name, link.bandwidth.si));
      links.back()->set_latency(0)->seal();
    }
    for (int rank = 0; rank < fabric.ranks(); ++rank) {
      hosts_.push_back(zone->create_host(fmt::format("gpu.{}", rank), 1.0));
      hosts_.back()->seal();
    }
    for (int source = 0; source < fabric.ranks(); ++source) {
      for (int destination = 0; destination < fabric.ranks(); ++destination) {
        if (source == destination) continue;
        std::vector<s4u::LinkInRoute> path;
        for (const int link : fabric.route(source, destination).links)
          path.emplace_back(links[static_cast<std::size_t>(link)]);
        zone->add_route(host(source)->get_netpoint(), host(destination)->get_netpoint(), nullptr, nullptr, path, false);
      }
    }
    zone->seal();
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { finish(activity); });
  }

  /// Starts a flow now; `done` runs when its last byte has arrived.
  void start(int source, int destination, std::int64_t bytes, std::function<void()> done) {
    auto flow = s4u::Comm::sendto_init(host(source), host(destination));
    flow->set_payload_size(static_cast<std::uint64_t>(bytes));
    const s4u::Activity* key = flow.get();
    active_.emplace(key, Active{flow, std::move(done)});
    flow->start();
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

  s4u::Host* host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  void finish(const s4u::Activity& activity) {
    auto node = active_.extract(&activity);
    if (node.empty()) return;
    // SimGrid still uses the activity while it tells us of its end: drop it later.
    if (finished_.size() > 4096) finished_.erase(finished_.begin(), finished_.end() - 64);
    finished_.push_back(std::move(node.mapped().flow));
    node.mapped().done();
  }

  std::unique_ptr<s4u::Engine> engine_;
  std::vector<s4u::Host*> hosts_;
  std::unordered_map<const s4u::Activity*, Active> active_;
  std::vector<s4u::CommPtr> finished_;
};

}  // namespace

/// Walks all ranks through their rounds (the meaning of a schedule is stated in schedule.hpp). A round is expanded when
/// the first rank enters it and forgotten when the last has left it.
class CommunicationEngine::Implementation {
 public:
  Implementation(const FabricGraph& fabric, const ReductionCost& cost) : fabric_(fabric), cost_(cost), flows_(fabric) {}

  std::vector<CollectiveTimes> run(std::span<const CollectiveCall> calls) {
    const auto n = static_cast<std::size_t>(fabric_.ranks());
    calls_ = calls;
    ranks_.assign(n, Rank{});
    rounds_.assign(calls.size(), {});
    result_.assign(calls.size(), CollectiveTimes{std::vector<Seconds>(n), 0});
    if (calls.empty()) return {};

    // The clock runs on from one call of run() to the next; arrivals are counted from the earliest so that they lose no
    // digits.
    first_ = *std::min_element(calls[0].arrivals.begin(), calls[0].arrivals.end());
    start_ = now();
    for (std::size_t rank = 0; rank < n; ++rank) next_collective(rank);
    flows_.run();
    return std::move(result_);
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
    std::vector<std::uint8_t> entered;      // by transfer: how many of its ends have entered the round
    std::vector<std::vector<int>> of_rank;  // transfers in which a rank takes part
    std::size_t ranks_left = 0;
  };

  Rank& rank(std::size_t index) { return ranks_[index]; }

  Round& expand(std::size_t call, std::int64_t index) {
    auto& round = rounds_[call][index];
    if (!round.of_rank.empty()) return round;
    calls_[call].schedule->round(index, round.transfers);
    round.entered.assign(round.transfers.size(), 0);
    round.of_rank.resize(ranks_.size());
    round.ranks_left = ranks_.size();
    for (std::size_t i = 0; i < round.transfers.size(); ++i) {
      round.of_rank[static_cast<std::size_t>(round.transfers[i].source)].push_back(static_cast<int>(i));
      round.of_rank[static_cast<std::size_t>(round.transfers[i].destination)].push_back(static_cast<int>(i));
    }
    return round;
  }

  void next_collective(std::size_t index) {
    Rank& me = rank(index);
    me.round = -1;
    if (me.call == calls_.size()) return;
    const Seconds issued = start_ + (calls_[me.call].arrivals[index] - first_);
    at(std::max(issued, now()) + cost_.launch, [this, index] { enter(index, 0); });
  }

  /// Enters `round`, and the rounds after it as long as there is nothing to wait for.
  void enter(std::size_t index, std::int64_t round) {
    Rank& me = rank(index);
    const Schedule& schedule = *calls_[me.call].schedule;
    for (; round < schedule.rounds(); ++round) {
      me.round = round;
      Round& here = expand(me.call, round);
      const auto& mine = here.of_rank[index];
      me.pending = static_cast<int>(mine.size());
      for (const int transfer : mine)
        if (++here.entered[static_cast<std::size_t>(transfer)] == 2)
          send(me.call, round, here.transfers[static_cast<std::size_t>(transfer)]);
      if (me.pending > 0) return;
      leave(me.call, round);
    }
    result_[me.call].done[index] = first_ + (now() - start_);
    ++me.call;
    next_collective(index);
  }

  void leave(std::size_t call, std::int64_t round) {
    auto& rounds = rounds_[call];
    const auto found = rounds.find(round);
    if (--found->second.ranks_left == 0) rounds.erase(found);
  }

  void send(std::size_t call, std::int64_t round, const Transfer& transfer) {
    ++result_[call].messages;
    at(now() + fabric_.route(transfer.source, transfer.destination).latency, [this, call, round, transfer] {
      flows_.start(transfer.source, transfer.destination, transfer.length,
                   [this, call, round, transfer] { arrived(call, round, transfer); });
    });
  }

  void arrived([[maybe_unused]] std::size_t call, [[maybe_unused]] std::int64_t round, const Transfer& transfer) {
    assert(rank(static_cast<std::size_t>(transfer.source)).call == call &&
           rank(static_cast<std::size_t>(transfer.source)).round == round);
    done(static_cast<std::size_t>(transfer.source));
    const auto destination = static_cast<std::size_t>(transfer.destination);
    if (!transfer.reduce) return done(destination);
    Rank& adder = rank(destination);
    adder.adder_free =
        std::max(adder.adder_free, now()) +
        Bytes{static_cast<double>(transfer.length) * kMemoryBytesPerReducedByte} / cost_.memory_bandwidth;
    at(adder.adder_free, [this, destination] { done(destination); });
  }

  void done(std::size_t index) {
    Rank& me = rank(index);
    if (--me.pending > 0) return;
    const std::int64_t finished = me.round;
    leave(me.call, finished);
    enter(index, finished + 1);
  }

  FabricGraph fabric_;
  ReductionCost cost_;
  Flows flows_;
  std::span<const CollectiveCall> calls_;
  std::vector<Rank> ranks_;
  std::vector<std::unordered_map<std::int64_t, Round>> rounds_;  // by call: the rounds that some rank is in
  std::vector<CollectiveTimes> result_;
  Seconds first_;
  Seconds start_;
};

CommunicationEngine::CommunicationEngine(const FabricGraph& fabric, const ReductionCost& cost)
    : implementation_(std::make_unique<Implementation>(fabric, cost)) {}
CommunicationEngine::~CommunicationEngine() = default;

std::vector<CollectiveTimes> CommunicationEngine::run(std::span<const CollectiveCall> calls) {
  return implementation_->run(calls);
}

}  // namespace ganymede

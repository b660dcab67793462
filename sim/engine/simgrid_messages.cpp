#include "sim/engine/simgrid_messages.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <unordered_map>

#include "common/units.hpp"
#include "sim/engine/simgrid_flows.hpp"

namespace ganymede::sim {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

void at(Seconds date, auto&& callback) { Timer::set(date.si, std::forward<decltype(callback)>(callback)); }
Seconds now() { return Seconds{s4u::Engine::get_clock()}; }

}  // namespace

/// Leads all endpoints through their rounds, by the rules of schedule.hpp. A round is expanded when the first endpoint
/// enters it and dropped when the last one has left it.
class SimGridMessages::Implementation {
 public:
  Implementation(const Network& fabric, SimGridFlows* flows) : fabric_(fabric), flows_(flows) {}

  JobTimes run(std::span<const Job> jobs, const RecordTransfer& record) {
    record_ = record ? &record : nullptr;
    if (flows_ == nullptr) {
      own_flows_ = std::make_unique<SimGridFlows>(fabric_, count_limits(jobs));
      flows_ = own_flows_.get();
    }
    start_ = now();
    groups_.clear();
    unused_groups_.clear();
    bool any = false;
    for (const Job& job : jobs) {
      for (const Communicator& communicator : job.communicators) {
        groups_.push_back(std::make_unique<Group>(communicator));
        for (const CollectiveCall& call : communicator.calls)
          for (const Seconds arrival : call.arrivals) first_ = any ? std::min(first_, arrival) : arrival, any = true;
      }
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) begin(group);
    flows_->run();

    JobTimes times;
    std::size_t group = 0;
    for (const Job& job : jobs) {
      times.emplace_back();
      for (std::size_t i = 0; i < job.communicators.size(); ++i)
        times.back().push_back(std::move(groups_[group++]->result));
    }
    return times;
  }

  /// Precondition: start_ and first_ are 0, because run() was not called.
  void start(const Communicator& communicator, Finished finished) {
    auto group = std::make_unique<Group>(communicator);
    group->finished = std::move(finished);
    std::size_t index = groups_.size();
    if (unused_groups_.empty()) {
      groups_.push_back(std::move(group));
    } else {
      index = unused_groups_.back();
      unused_groups_.pop_back();
      groups_[index] = std::move(group);
    }
    begin(index);
  }

 private:
  struct Rank {
    std::size_t call = 0;     // index of its present collective
    std::int64_t round = -1;  // -1: it has not entered the collective
    int pending = 0;          // transfers of its round that are not done
    Seconds adder_free;       // when its additions so far are done
  };

  struct Round {
    std::vector<Transfer> transfers;
    // The number of ends of each transfer that have entered the round. With an eager protocol the arrival of the bytes
    // counts instead of the entry of the source.
    std::vector<std::uint8_t> ready;
    std::vector<std::uint8_t> leaving;   // by transfer: flows that have not left the source
    std::vector<std::uint8_t> arriving;  // by transfer: flows that have not reached the destination
    std::vector<Seconds> started;        // by transfer, if messages are recorded
    // The transfers of a rank are mine[first[rank]] ... mine[first[rank + 1] - 1].
    std::vector<int> first, mine;
    std::size_t ranks_left = 0;  // that have not left the round
  };

  /// A communicator that goes through its calls.
  struct Group {
    explicit Group(const Communicator& communicator) : of(&communicator), rounds(communicator.calls.size()) {
      for (const CollectiveCall& call : communicator.calls) {
        endpoints = static_cast<std::size_t>(call.schedule->endpoints());
        ranks.resize(std::max(ranks.size(), endpoints * static_cast<std::size_t>(call.schedule->lanes())));
        result.push_back({std::vector<Seconds>(static_cast<std::size_t>(call.schedule->ranks())), 0});
      }
      ranks_left = ranks.size();
    }
    const Communicator* of;
    std::size_t endpoints = 0;
    std::vector<Rank> ranks;                                      // ranks and switches, lane after lane
    std::vector<std::unordered_map<std::int64_t, Round>> rounds;  // by call: rounds that some rank is in
    std::vector<CollectiveTimes> result;
    std::size_t ranks_left = 0;  // that have not left the last call
    Finished finished;

    const Schedule& schedule(std::size_t call) const { return *of->calls[call].schedule; }
    /// The indices of both ends of a transfer in `ranks`.
    std::size_t source(const Transfer& t) const {
      return static_cast<std::size_t>(t.lane) * endpoints + static_cast<std::size_t>(t.source);
    }
    std::size_t destination(const Transfer& t) const {
      return static_cast<std::size_t>(t.lane) * endpoints + static_cast<std::size_t>(t.destination);
    }
    /// The fabric's endpoint of an endpoint of the schedules.
    int fabric_endpoint(int endpoint) const {
      return of->members.empty() ? endpoint : of->members[static_cast<std::size_t>(endpoint)];
    }
  };

  /// The number of different limits that the protocols of the jobs set on flows, plus four for the jobs of later runs
  /// if there are any. An endpoint needs a host for each limit.
  int count_limits(std::span<const Job> jobs) const {
    constexpr int kForLaterRuns = 4;
    std::set<double> limits = {std::numeric_limits<double>::infinity()};
    for (const Job& job : jobs)
      for (const Communicator& communicator : job.communicators)
        for (const CollectiveCall& call : communicator.calls) {
          const ProtocolCost& cost = call.schedule->cost();
          limits.insert({cost.flow_inside.si, cost.flow_between.si});
          for (const BytesPerSecond limit : fabric_.connection_limits())
            limits.insert(std::min(cost.flow_between, cost.connections * limit).si);
        }
    return static_cast<int>(limits.size()) + (limits.size() > 1 ? kForLaterRuns : 0);
  }

  const Endpoint& endpoint(const Group& group, std::size_t index) const {
    return fabric_
        .endpoints()[static_cast<std::size_t>(group.fabric_endpoint(static_cast<int>(index % group.endpoints)))];
  }

  /// The state of a round, which the first rank to enter creates.
  Round& expand(Group& group, std::size_t call, std::int64_t index) {
    auto& round = group.rounds[call][index];
    if (round.ranks_left > 0) return round;
    if (!reusable_.empty()) {
      round = std::move(reusable_.back());
      reusable_.pop_back();
    }
    group.schedule(call).round(index, round.transfers);
    const std::size_t ranks = group.endpoints * static_cast<std::size_t>(group.schedule(call).lanes());
    const std::size_t transfers = round.transfers.size();
    round.ready.assign(transfers, 0);
    round.leaving.assign(transfers, 0);
    round.arriving.assign(transfers, 0);
    if (record_ != nullptr) round.started.assign(transfers, Seconds{0});
    round.first.assign(ranks + 1, 0);
    round.mine.resize(2 * transfers);
    for (const Transfer& t : round.transfers) ++round.first[group.source(t)], ++round.first[group.destination(t)];
    int sum = 0;
    for (int& first : round.first) first = sum += first;
    for (std::size_t i = transfers; i-- > 0;) {
      const Transfer& t = round.transfers[i];
      round.mine[static_cast<std::size_t>(--round.first[group.destination(t)])] = static_cast<int>(i);
      round.mine[static_cast<std::size_t>(--round.first[group.source(t)])] = static_cast<int>(i);
    }
    round.ranks_left = ranks;
    return round;
  }

  void begin(std::size_t group) {
    for (std::size_t rank = 0; rank < groups_[group]->ranks.size(); ++rank) next_collective(group, rank);
  }

  void rank_finished(std::size_t group_index) {
    Group& group = *groups_[group_index];
    if (--group.ranks_left > 0 || !group.finished) return;
    const std::unique_ptr<Group> done = std::move(groups_[group_index]);
    unused_groups_.push_back(group_index);
    done->finished(std::move(done->result));
  }

  /// Schedules the rank's entry into its next collective, if there is one.
  void next_collective(std::size_t group_index, std::size_t index) {
    Group& group = *groups_[group_index];
    Rank& me = group.ranks[index];
    me.round = -1;
    if (me.call == group.of->calls.size()) return rank_finished(group_index);
    const CollectiveCall& call = group.of->calls[me.call];
    const std::size_t rank = index % group.endpoints;
    if (rank >= call.arrivals.size()) return at(now(), [this, group_index, index] { enter(group_index, index, 0); });
    const Seconds issued = start_ + (call.arrivals[rank] - first_);
    at(std::max(issued, now()) + endpoint(group, index).launch + call.schedule->cost().start,
       [this, group_index, index] { enter(group_index, index, 0); });
  }

  /// Enters `round`, and further rounds while there is nothing to wait for.
  void enter(std::size_t group_index, std::size_t index, std::int64_t round) {
    Group& group = *groups_[group_index];
    Rank& me = group.ranks[index];
    const Schedule& schedule = group.schedule(me.call);
    const bool takes_part = index / group.endpoints < static_cast<std::size_t>(schedule.lanes());
    for (; takes_part && round < schedule.rounds(); ++round) {
      me.round = round;
      Round& here = expand(group, me.call, round);
      me.pending = here.first[index + 1] - here.first[index];
      for (int i = here.first[index]; i < here.first[index + 1]; ++i) {
        const int transfer = here.mine[static_cast<std::size_t>(i)];
        auto& ready = here.ready[static_cast<std::size_t>(transfer)];
        if (!schedule.cost().eager) {
          if (++ready == 2) send(group_index, me.call, round, here, transfer);
        } else if (group.source(here.transfers[static_cast<std::size_t>(transfer)]) == index) {
          send(group_index, me.call, round, here, transfer);
        } else if (++ready == 2 && receive(group_index, here.transfers[static_cast<std::size_t>(transfer)])) {
          --me.pending;
        }
      }
      if (me.pending > 0) return;
      leave(group, me.call, round);
    }
    auto& done = group.result[me.call].done;
    if (takes_part && index % group.endpoints < done.size()) done[index % group.endpoints] = first_ + (now() - start_);
    ++me.call;
    next_collective(group_index, index);
  }

  void leave(Group& group, std::size_t call, std::int64_t round) {
    auto& rounds = group.rounds[call];
    const auto found = rounds.find(round);
    if (--found->second.ranks_left > 0) return;
    reusable_.push_back(std::move(found->second));
    rounds.erase(found);
  }

  void send(std::size_t group_index, std::size_t call, std::int64_t round, Round& here, int index) {
    Group& group = *groups_[group_index];
    const Transfer& transfer = here.transfers[static_cast<std::size_t>(index)];
    const ProtocolCost& cost = group.schedule(call).cost();
    const int source = group.fabric_endpoint(transfer.source),
              destination = group.fabric_endpoint(transfer.destination);
    ++group.result[call].messages;
    if (record_ != nullptr) here.started[static_cast<std::size_t>(index)] = now();
    fabric_.paths(source, destination, paths_);
    here.leaving[static_cast<std::size_t>(index)] = here.arriving[static_cast<std::size_t>(index)] =
        static_cast<std::uint8_t>(paths_.size());
    const double bytes = static_cast<double>(transfer.length) * cost.wire;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      const Path& path = paths_[i];
      const Seconds latency = latency_of(path, cost);
      const BytesPerSecond limit =
          std::min(cost.connections * path.connection_limit, path.between_nodes ? cost.flow_between : cost.flow_inside);
      const SimGridFlow flow{source, destination, static_cast<int>(i), bytes * path.share, limit.si};
      // With an eager protocol bytes leave at once; the message arrives one latency after its last byte has left.
      const Seconds before = cost.eager ? Seconds{0} : latency, after = latency - before;
      at(now() + before, [this, flow, group_index, call, round, index, after] {
        flows_->start(flow, [this, group_index, call, round, index, after] {
          flow_left(group_index, call, round, index);
          const auto arrive = [this, group_index, call, round, index] {
            flow_arrived(group_index, call, round, index);
          };
          after > Seconds{0} ? at(now() + after, arrive) : arrive();
        });
      });
    }
  }

  void flow_left(std::size_t group_index, std::size_t call, std::int64_t round, int index) {
    Round& here = groups_[group_index]->rounds[call].at(round);
    if (--here.leaving[static_cast<std::size_t>(index)] == 0)
      transfer_done(group_index, groups_[group_index]->source(here.transfers[static_cast<std::size_t>(index)]));
  }

  void flow_arrived(std::size_t group_index, std::size_t call, std::int64_t round, int index) {
    Group& group = *groups_[group_index];
    Round& here = group.rounds[call].at(round);
    if (--here.arriving[static_cast<std::size_t>(index)] > 0) return;
    const Transfer transfer = here.transfers[static_cast<std::size_t>(index)];
    if (record_ != nullptr)
      (*record_)({group_index, call, round, transfer, first_ + (here.started[static_cast<std::size_t>(index)] - start_),
                  first_ + (now() - start_)});
    if (group.schedule(call).cost().eager && ++here.ready[static_cast<std::size_t>(index)] < 2) return;
    if (receive(group_index, transfer)) transfer_done(group_index, group.destination(transfer));
  }

  /// Receives a message. True if the destination has nothing to add; else a timer is set for when it has added.
  bool receive(std::size_t group_index, const Transfer& transfer) {
    Group& group = *groups_[group_index];
    const std::size_t destination = group.destination(transfer);
    Rank& adder = group.ranks[destination];
    const BytesPerSecond memory = endpoint(group, destination).memory_bandwidth;
    const ProtocolCost& cost = group.schedule(adder.call).cost();
    if (!transfer.reduce || cost.reduction_is_free || std::isinf(memory.si)) return true;
    adder.adder_free = std::max(adder.adder_free, now()) +
                       Bytes{cost.stretch * static_cast<double>(transfer.length) * kMemoryBytesPerReducedByte} / memory;
    at(adder.adder_free, [this, group_index, destination] { transfer_done(group_index, destination); });
    return false;
  }

  void transfer_done(std::size_t group_index, std::size_t index) {
    Group& group = *groups_[group_index];
    Rank& me = group.ranks[index];
    if (--me.pending > 0) return;
    const std::int64_t finished = me.round;
    leave(group, me.call, finished);
    enter(group_index, index, finished + 1);
  }

  const Network& fabric_;
  std::unique_ptr<SimGridFlows> own_flows_;
  SimGridFlows* flows_ = nullptr;
  std::vector<std::unique_ptr<Group>> groups_;  // null: has finished
  std::vector<std::size_t> unused_groups_;      // indices of groups that have finished
  std::vector<Round> reusable_;                 // rounds whose memory is used again
  std::vector<Path> paths_;
  const RecordTransfer* record_ = nullptr;
  Seconds first_;  // the earliest arrival of this run; arrivals are relative to it
  Seconds start_;  // SimGrid's clock at the start of this run: the clock never goes back
};

SimGridMessages::SimGridMessages(const Network& fabric, SimGridFlows* flows)
    : implementation_(std::make_unique<Implementation>(fabric, flows)) {}
SimGridMessages::~SimGridMessages() = default;

void SimGridMessages::start(const Communicator& communicator, Finished finished) {
  implementation_->start(communicator, std::move(finished));
}

JobTimes SimGridMessages::run(std::span<const Job> jobs, const RecordTransfer& record) {
  return implementation_->run(jobs, record);
}

}  // namespace ganymede::sim

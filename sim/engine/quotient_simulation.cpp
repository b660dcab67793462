#include "sim/engine/quotient_simulation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "common/errors.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/repeatable_state.hpp"

namespace ganymede {
namespace {

/// Events that rounding has set apart by less, as a share of the time, are one moment: shares are found once for them.
constexpr double kSameMoment = 1e-12;
/// Rounds left in a stage below which looking for repetitions is not worth the while.
constexpr std::int64_t kWorthFolding = 8;
/// A period is looked for among so many rounds back.
constexpr std::size_t kRemembered = 16;

}  // namespace

class QuotientSimulation::Implementation {
 public:
  explicit Implementation(const Quotient& quotient) : quotient_(quotient), fluid_(quotient.link_bandwidths) {
    ranks_.resize(quotient.ranks.size());
    rounds_.resize(quotient.calls.size());
    done_.resize(quotient.ranks.size());
    for (std::size_t i = 0; i < quotient.calls.size(); ++i) rounds_[i].resize(quotient.calls[i].size());
  }

  void run() {
    if (ranks_.empty()) return;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) next_call(rank);
    while (!events_.empty()) {
      now_ = events_.top().time;
      const double moment = now_ * (1 + kSameMoment);
      while (!events_.empty() && events_.top().time <= moment) handle(events_.pop());
      fluid_.settle(now_);
      for (const int slot : fluid_.changed()) schedule_end(slot);
      fluid_.changed().clear();
      if (lead_entered_) look_for_repetition();
    }
    for (const Rank& rank : ranks_)
      if (rank.call < calls_of(rank).size()) throw Failure("a rank never finished: the schedule waits for itself");
  }

  const std::vector<double>& done(std::size_t rank) const { return done_[rank]; }
  std::int64_t flows() const { return flows_started_; }
  std::int64_t skipped() const { return rounds_skipped_; }

 private:
  struct Rank {
    std::size_t call = 0;
    std::int64_t round = -1;  // -1: not entered
    int pending = 0;
    double adder_free = 0;
    int communicator = 0;
  };

  struct Round {
    std::vector<std::uint8_t> entered;  // by transfer: how many of its ends; eager: its destination, and its bytes
    std::vector<std::uint8_t> flows;    // by transfer: those that have not ended
    std::vector<std::uint8_t> ways;     // by transfer: flows that have not arrived
    std::size_t ranks_left = 0;
  };

  struct ActiveFlow {
    int communicator = 0;
    std::size_t call = 0;
    std::int64_t round = 0;
    int transfer = 0;
    int way = 0;
    std::int64_t version = 0;
    bool active = false;
  };

  const std::vector<QuotientCall>& calls_of(const Rank& rank) const {
    return quotient_.calls[static_cast<std::size_t>(rank.communicator)];
  }

  static const QuotientStage& stage_at(const QuotientCall& call, std::int64_t round) {
    assert(round >= call.stages.front().first_round);
    const auto next =
        std::upper_bound(call.stages.begin(), call.stages.end(), round,
                         [](std::int64_t r, const QuotientStage& stage) { return r < stage.first_round; });
    return *std::prev(next);
  }

  void handle(const Event& event) {
    switch (event.what) {
      case What::enter:
        return enter(static_cast<std::size_t>(event.subject), 0);
      case What::start_flow:
        return start_flow(event);
      case What::end_flow:
        return end_flow(event);
      case What::arrive:
        return arrive(event.communicator, static_cast<std::size_t>(event.subject), event.round, event.transfer);
      case What::added:
        return done_with_one(static_cast<std::size_t>(event.subject));
    }
  }

  void next_call(std::size_t index) {
    Rank& me = ranks_[index];
    const QuotientRank& rank = quotient_.ranks[index];
    me.communicator = rank.communicator;
    me.round = -1;
    if (me.call == calls_of(me).size()) return;
    const double issued = rank.issue[me.call];
    const double entry =
        issued < 0 ? now_ : std::max(issued - skipped_s_, now_) + rank.launch + calls_of(me)[me.call].start;
    events_.push({entry, 0, What::enter, static_cast<int>(index), 0, 0, 0, 0, 0});
  }

  Round& open(const Rank& rank, std::int64_t index) {
    auto& rounds = rounds_[static_cast<std::size_t>(rank.communicator)][rank.call];
    Round& round = rounds[index];
    if (round.ranks_left > 0) return round;
    const QuotientStage& stage = stage_at(calls_of(rank)[rank.call], index);
    round.entered.assign(stage.transfers.size(), 0);
    round.ways.resize(stage.transfers.size());
    for (std::size_t i = 0; i < stage.transfers.size(); ++i)
      round.ways[i] = static_cast<std::uint8_t>(stage.transfers[i].flows.size());
    round.flows = round.ways;
    round.ranks_left = class_count(rank.communicator, rank.call);
    return round;
  }

  std::size_t class_count(int communicator, std::size_t call) {
    if (class_counts_.empty()) {
      for (const auto& calls : quotient_.calls) class_counts_.emplace_back(calls.size());
      for (const QuotientRank& rank : quotient_.ranks)
        for (std::size_t i = 0; i < rank.takes_part.size(); ++i)
          class_counts_[static_cast<std::size_t>(rank.communicator)][i] += rank.takes_part[i] ? 1 : 0;
    }
    return class_counts_[static_cast<std::size_t>(communicator)][call];
  }

  /// Enters `round`, and the rounds after it as long as there is nothing to wait for.
  void enter(std::size_t index, std::int64_t round) {
    Rank& me = ranks_[index];
    const QuotientCall& call = calls_of(me)[me.call];
    for (; quotient_.ranks[index].takes_part[me.call] && round < call.rounds; ++round) {
      me.round = round;
      if (index == 0) lead_entered_ = true;
      const QuotientStage& stage = stage_at(call, round);
      const auto& mine = stage.of_class[index];
      Round& here = open(me, round);
      me.pending = static_cast<int>(mine.size());
      if (call.eager)
        enter_eagerly(index, round, stage, here);
      else
        for (const int transfer : mine)
          if (++here.entered[static_cast<std::size_t>(transfer)] == 2) send(me, round, stage, transfer);
      if (me.pending > 0) return;
      leave(me, round);
    }
    done_[index].push_back(now_ + skipped_s_);
    ++me.call;
    next_call(index);
  }

  /// A class at both ends of a transfer finds it twice, one after the other: it sends first.
  void enter_eagerly(std::size_t index, std::int64_t round, const QuotientStage& stage, Round& here) {
    Rank& me = ranks_[index];
    int sent = -1;
    for (const int i : stage.of_class[index]) {
      const QuotientTransfer& transfer = stage.transfers[static_cast<std::size_t>(i)];
      if (transfer.source == static_cast<int>(index) && sent != i) {
        send(me, round, stage, i);
        sent = i;
      } else if (++here.entered[static_cast<std::size_t>(i)] == 2 && receive(transfer)) {
        --me.pending;
      }
    }
  }

  void leave(const Rank& rank, std::int64_t index) {
    auto& rounds = rounds_[static_cast<std::size_t>(rank.communicator)][rank.call];
    const auto found = rounds.find(index);
    if (--found->second.ranks_left == 0) rounds.erase(found);
  }

  void send(const Rank& rank, std::int64_t round, const QuotientStage& stage, int transfer) {
    const auto& flows = stage.transfers[static_cast<std::size_t>(transfer)].flows;
    for (std::size_t way = 0; way < flows.size(); ++way)
      events_.push({calls_of(rank)[rank.call].eager ? now_ : now_ + flows[way].latency, 0, What::start_flow,
                    static_cast<int>(rank.call), rank.communicator, round, transfer, static_cast<int>(way), 0});
  }

  void start_flow(const Event& event) {
    ++flows_started_;
    const auto& call =
        quotient_.calls[static_cast<std::size_t>(event.communicator)][static_cast<std::size_t>(event.subject)];
    const QuotientFlow& flow = stage_at(call, event.round)
                                   .transfers[static_cast<std::size_t>(event.transfer)]
                                   .flows[static_cast<std::size_t>(event.way)];
    const int slot = fluid_.start(now_, flow.bytes, flow.limit, flow.uses);
    if (static_cast<std::size_t>(slot) >= active_.size()) active_.resize(static_cast<std::size_t>(slot) + 1);
    ActiveFlow& active = active_[static_cast<std::size_t>(slot)];
    active = {event.communicator,
              static_cast<std::size_t>(event.subject),
              event.round,
              event.transfer,
              event.way,
              active.version + 1,
              true};
  }

  void schedule_end(int slot) {
    ActiveFlow& active = active_[static_cast<std::size_t>(slot)];
    if (!active.active) return;
    Event event;
    event.time = std::max(now_, fluid_.end(slot));
    event.what = What::end_flow;
    event.subject = slot;
    event.version = ++active.version;
    events_.push(event);
  }

  void end_flow(const Event& event) {
    ActiveFlow& active = active_[static_cast<std::size_t>(event.subject)];
    if (!active.active || active.version != event.version) return;
    active.active = false;
    fluid_.finish(now_, event.subject);
    auto& round = rounds_[static_cast<std::size_t>(active.communicator)][active.call].at(active.round);
    const ActiveFlow flow = active;
    const auto& call = quotient_.calls[static_cast<std::size_t>(flow.communicator)][flow.call];
    const QuotientTransfer& transfer = stage_at(call, flow.round).transfers[static_cast<std::size_t>(flow.transfer)];
    if (call.eager)
      events_.push({now_ + transfer.flows[static_cast<std::size_t>(flow.way)].latency, 0, What::arrive,
                    static_cast<int>(flow.call), flow.communicator, flow.round, flow.transfer, 0, 0});
    if (--round.flows[static_cast<std::size_t>(flow.transfer)] == 0)
      done_with_one(static_cast<std::size_t>(transfer.source));
    if (!call.eager) arrive(flow.communicator, flow.call, flow.round, flow.transfer);
  }

  void arrive(int communicator, std::size_t call_index, std::int64_t round_index, int index) {
    const auto& call = quotient_.calls[static_cast<std::size_t>(communicator)][call_index];
    auto& round = rounds_[static_cast<std::size_t>(communicator)][call_index].at(round_index);
    if (--round.ways[static_cast<std::size_t>(index)] > 0) return;
    if (call.eager && ++round.entered[static_cast<std::size_t>(index)] < 2) return;
    const QuotientTransfer& transfer = stage_at(call, round_index).transfers[static_cast<std::size_t>(index)];
    if (receive(transfer)) done_with_one(static_cast<std::size_t>(transfer.destination));
  }

  /// Whether the destination has nothing to add; else it will be done later.
  bool receive(const QuotientTransfer& transfer) {
    if (transfer.adding <= 0) return true;
    Rank& adder = ranks_[static_cast<std::size_t>(transfer.destination)];
    adder.adder_free = std::max(adder.adder_free, now_) + transfer.adding;
    Event added;
    added.time = adder.adder_free;
    added.what = What::added;
    added.subject = transfer.destination;
    events_.push(added);
    return false;
  }

  void done_with_one(std::size_t index) {
    Rank& me = ranks_[index];
    if (--me.pending > 0) return;
    const std::int64_t finished = me.round;
    leave(me, finished);
    enter(index, finished + 1);
  }

  // ---- rounds that repeat ----

  using State = RepeatableState;

  void look_for_repetition() {
    lead_entered_ = false;
    const Rank& lead = ranks_[0];
    // It may have left its call in the same moment, and wait for the next one.
    if (quotient_.calls.size() != 1 || lead.call >= calls_of(lead).size() || lead.round < 0) return remembered_.clear();
    const QuotientStage& stage = stage_at(calls_of(lead)[lead.call], lead.round);
    const std::int64_t end = stage.first_round + stage.rounds;
    if (end - lead.round < kWorthFolding) return remembered_.clear();
    State state = capture(stage);
    if (state.first < stage.first_round || state.last >= end) return remembered_.clear();
    for (auto earlier = remembered_.rbegin(); earlier != remembered_.rend(); ++earlier) {
      if (!alike(*earlier, state)) continue;
      const std::int64_t period = state.round - earlier->round;
      const std::int64_t times = (end - 1 - state.last) / period;
      if (times > 0) repeat(times * period, static_cast<double>(times) * (state.time - earlier->time));
      return remembered_.clear();
    }
    remembered_.push_back(std::move(state));
    if (remembered_.size() > kRemembered) remembered_.pop_front();
  }

  State capture(const QuotientStage& stage) {
    State state;
    state.time = now_;
    state.round = state.first = state.last = ranks_[0].round;
    const auto add = [&](double value, double scale) {
      state.near.push_back(value);
      state.scale.push_back(scale);
    };
    for (const Rank& rank : ranks_) {
      if (rank.call != ranks_[0].call) state.first = -1;
      if (rank.round < 0) state.first = -1;
      state.first = std::min(state.first, rank.round);
      state.last = std::max(state.last, rank.round);
      state.exact.push_back(rank.round - state.round);
      state.exact.push_back(rank.pending);
      add(std::max(0.0, rank.adder_free - now_), 1);
    }
    if (state.first < stage.first_round) return state;
    std::vector<std::pair<std::vector<std::int64_t>, std::pair<double, double>>> parts;
    for (std::size_t slot = 0; slot < active_.size(); ++slot) {
      const ActiveFlow& flow = active_[slot];
      if (!flow.active) continue;
      if (flow.call != ranks_[0].call || flow.round < stage.first_round ||
          flow.round >= stage.first_round + stage.rounds) {  // of another stage, still under way
        state.first = -1;
        return state;
      }
      const auto& definition =
          stage.transfers[static_cast<std::size_t>(flow.transfer)].flows[static_cast<std::size_t>(flow.way)];
      const double rate = quotient_.link_bandwidths[static_cast<std::size_t>(definition.uses[0].link)];
      parts.push_back({{0, flow.round - state.round, flow.transfer, flow.way},
                       {fluid_.remaining(now_, static_cast<int>(slot)), rate}});
    }
    for (const Event& event : events_.all()) {
      if (event.what == What::end_flow) continue;  // follows from the flows
      parts.push_back({{1 + static_cast<int>(event.what), event.subject,
                        has_round(event) ? event.round - state.round : 0, event.transfer, event.way},
                       {event.time - now_, 1}});
    }
    for (const auto& [index, round] : rounds_[0][ranks_[0].call])  // what has come before its destination
      for (std::size_t i = 0; i < round.ways.size(); ++i)
        if (round.ways[i] == 0 && round.entered[i] == 1)
          parts.push_back({{-1, index - state.round, static_cast<int>(i), 0}, {0, 1}});
    std::sort(parts.begin(), parts.end());
    for (const auto& [what, value] : parts) {
      state.exact.insert(state.exact.end(), what.begin(), what.end());
      add(value.first, value.second);
    }
    return state;
  }

  /// Moves everything on by `rounds`, and the clock that is told outside by `seconds`.
  void repeat(std::int64_t rounds, double seconds) {
    skipped_s_ += seconds;
    rounds_skipped_ += rounds * static_cast<std::int64_t>(ranks_.size());
    auto& open_rounds = rounds_[0][ranks_[0].call];
    std::unordered_map<std::int64_t, Round> moved;
    for (auto& [index, round] : open_rounds) moved.emplace(index + rounds, std::move(round));
    open_rounds = std::move(moved);
    for (Rank& rank : ranks_) rank.round += rounds;
    for (ActiveFlow& flow : active_)
      if (flow.active) flow.round += rounds;
    for (Event& event : events_.all())
      if (has_round(event)) event.round += rounds;
  }

  const Quotient& quotient_;
  Fluid fluid_;
  Events events_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::unordered_map<std::int64_t, Round>>> rounds_;  // by communicator and call
  std::vector<ActiveFlow> active_;                                            // by slot of the fluid
  std::vector<std::vector<double>> done_;                                     // by class: when each call ended
  std::vector<std::vector<std::size_t>> class_counts_;                        // by communicator and call
  std::deque<State> remembered_;
  bool lead_entered_ = false;
  double now_ = 0;
  double skipped_s_ = 0;  // of repetitions
  std::int64_t flows_started_ = 0;
  std::int64_t rounds_skipped_ = 0;
};

QuotientSimulation::QuotientSimulation(const Quotient& quotient)
    : implementation_(std::make_unique<Implementation>(quotient)) {
  implementation_->run();
}
QuotientSimulation::~QuotientSimulation() = default;

const std::vector<double>& QuotientSimulation::done(std::size_t rank) const { return implementation_->done(rank); }
std::int64_t QuotientSimulation::flows() const { return implementation_->flows(); }
std::int64_t QuotientSimulation::rounds_skipped() const { return implementation_->skipped(); }

}  // namespace ganymede

#include "sim/engine/folded_simulation.hpp"

#include <algorithm>
#include <array>
#include <deque>

#include "common/errors.hpp"
#include "sim/engine/transfer_progress.hpp"

namespace ganymede::sim {
namespace {

/// Events whose times differ by at most this, relative to the time, happen at one moment: only rounding sets them
/// apart, and rates are found once for all of them.
constexpr double kSameMoment = 1e-12;
/// Repetitions are sought if at least as many rounds of the stage are left.
constexpr std::int64_t kMinRoundsToFold = 8;
/// The longest period that is found, in rounds of the lead.
constexpr std::size_t kMaxPeriod = 16;

/// The stage of a call to which a round belongs.
const QuotientStage& stage_at(const QuotientCall& call, std::int64_t round) {
  const auto next = std::upper_bound(call.stages.begin(), call.stages.end(), round,
                                     [](std::int64_t r, const QuotientStage& stage) { return r < stage.first_round; });
  return *std::prev(next);
}

}  // namespace

class FoldedSimulation::Implementation {
 public:
  explicit Implementation(const Quotient& quotient)
      : quotient_(quotient), solver_(quotient.link_bandwidths), progress_(quotient) {
    ranks_.resize(quotient.ranks.size());
    done_.resize(quotient.ranks.size());
  }

  /// Runs until every class has finished its calls.
  void run() {
    if (ranks_.empty()) return;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) next_call(rank);
    while (!events_.empty()) {
      now_ = events_.next_time();
      const double moment = now_ * (1 + kSameMoment);
      while (!events_.empty() && events_.next_time() <= moment) handle(events_.pop());
      solver_.update_rates(now_);
      for (const int slot : solver_.changed_flows()) schedule_end(slot);
      solver_.changed_flows().clear();
      if (lead_entered_) find_repetition();
    }
    for (const Rank& rank : ranks_)
      if (rank.call < calls_of(rank).size()) throw Failure("a rank never finished: the schedule waits for itself");
  }

  const std::vector<double>& done(std::size_t rank) const { return done_[rank]; }
  std::int64_t flows() const { return flows_started_; }
  std::int64_t skipped() const { return rounds_skipped_; }

 private:
  /// A class of ranks on its way through its calls.
  struct Rank {
    std::size_t call = 0;
    std::int64_t round = -1;  // -1: it has not entered its call
    int pending = 0;          // transfers of its round that are not done
    double adder_free = 0;    // when its additions so far are done
    int communicator = 0;
  };

  /// A flow of the solver.
  struct ActiveFlow {
    int transfer = 0;
    std::int64_t round = 0;
    int path_index = 0;
    int end = -1;  // the event of its end; -1: not yet known
    bool active = false;
  };

  const QuotientTransfer& transfer_at(int index) const { return quotient_.transfers[static_cast<std::size_t>(index)]; }
  bool is_eager(const QuotientTransfer& transfer) const {
    return quotient_.calls[static_cast<std::size_t>(transfer.communicator)][transfer.call].eager;
  }
  const std::vector<QuotientCall>& calls_of(const Rank& rank) const {
    return quotient_.calls[static_cast<std::size_t>(rank.communicator)];
  }

  void handle(const FlowEvent& event) {
    switch (event.kind) {
      case FlowEventKind::enter:
        return enter(static_cast<std::size_t>(event.subject), 0);
      case FlowEventKind::start_flow:
        return start_flow(event);
      case FlowEventKind::end_flow:
        return end_flow(event);
      case FlowEventKind::arrive:
        return arrive(event.subject, event.path_index);
      case FlowEventKind::added:
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
    events_.push({entry, FlowEventKind::enter, static_cast<int>(index), 0, 0});
  }

  /// Enters `round`, and further rounds while there is nothing to wait for.
  void enter(std::size_t index, std::int64_t round) {
    Rank& me = ranks_[index];
    const QuotientCall& call = calls_of(me)[me.call];
    for (; quotient_.ranks[index].takes_part[me.call] && round < call.rounds; ++round) {
      me.round = round;
      if (index == 0) lead_entered_ = true;
      me.pending = 0;
      for (const int transfer : quotient_.transfers_of(index, me.call)) me.pending += is_busy(transfer, round) ? 1 : 0;
      begin_round(index, round);
      if (me.pending > 0) return;
    }
    done_[index].push_back(now_ + skipped_s_);
    ++me.call;
    next_call(index);
  }

  bool is_busy(int transfer, std::int64_t round) const {
    return transfer_at(transfer).first_round <= round && round < transfer_at(transfer).end_round;
  }

  /// Sends what can be sent in a round, and receives what has come. A class at both ends of a transfer meets it twice
  /// in a row: first it is the source.
  void begin_round(std::size_t index, std::int64_t round) {
    Rank& me = ranks_[index];
    const bool eager = calls_of(me)[me.call].eager;
    int sent = -1;
    for (const int i : quotient_.transfers_of(index, me.call)) {
      if (!is_busy(i, round)) continue;
      const bool is_source = transfer_at(i).source == static_cast<int>(index) && sent != i;
      if (is_source) sent = i;
      if (!eager) {
        if (is_source ? progress_.offer(i) : progress_.accept(i)) send(i, round);
      } else if (is_source) {
        send(i, round);
      } else if (progress_.accept(i) && receive(transfer_at(i))) {
        --me.pending;
      }
    }
  }

  void send(int index, std::int64_t round) {
    const QuotientTransfer& transfer = transfer_at(index);
    const bool eager = is_eager(transfer);
    progress_.start(index);
    for (std::size_t i = 0; i < transfer.flows.size(); ++i) {
      const double before = eager ? 0 : transfer.flows[i].latency;
      const FlowEvent start{now_ + before, FlowEventKind::start_flow, index, round, static_cast<int>(i)};
      if (eager)
        start_flow(start);
      else
        events_.push(start);
    }
  }

  void start_flow(const FlowEvent& event) {
    ++flows_started_;
    const QuotientFlow& flow = transfer_at(event.subject).flows[static_cast<std::size_t>(event.path_index)];
    const int slot = solver_.start(now_, flow.bytes, flow.limit, flow.uses);
    if (static_cast<std::size_t>(slot) >= active_.size()) active_.resize(static_cast<std::size_t>(slot) + 1);
    active_[static_cast<std::size_t>(slot)] = {event.subject, event.round, event.path_index, -1, true};
  }

  void schedule_end(int slot) {
    ActiveFlow& active = active_[static_cast<std::size_t>(slot)];
    if (!active.active) return;
    const double end = std::max(now_, solver_.end_time(slot));
    if (active.end < 0)
      active.end = events_.push({end, FlowEventKind::end_flow, slot, 0, 0});
    else
      events_.move(active.end, end);
  }

  void end_flow(const FlowEvent& event) {
    ActiveFlow& active = active_[static_cast<std::size_t>(event.subject)];
    active.active = false;
    solver_.finish(now_, event.subject);
    const ActiveFlow flow = active;
    const QuotientTransfer& transfer = transfer_at(flow.transfer);
    const bool eager = is_eager(transfer);
    if (eager)
      events_.push({now_ + transfer.flows[static_cast<std::size_t>(flow.path_index)].latency, FlowEventKind::arrive,
                    flow.transfer, flow.round, flow.path_index});
    if (progress_.leave(flow.transfer)) done_with_one(static_cast<std::size_t>(transfer.source));
    if (!eager) arrive(flow.transfer, flow.path_index);
  }

  void arrive(int index, int path) {
    const QuotientTransfer& transfer = transfer_at(index);
    if (!progress_.arrive(index, path)) return;
    if (is_eager(transfer) && !progress_.offer(index)) return;
    if (receive(transfer)) done_with_one(static_cast<std::size_t>(transfer.destination));
  }

  /// Receives a transfer. True if the destination has nothing to add; else an event follows when it has added.
  bool receive(const QuotientTransfer& transfer) {
    if (transfer.adding <= 0) return true;
    Rank& adder = ranks_[static_cast<std::size_t>(transfer.destination)];
    adder.adder_free = std::max(adder.adder_free, now_) + transfer.adding;
    FlowEvent added;
    added.time = adder.adder_free;
    added.kind = FlowEventKind::added;
    added.subject = transfer.destination;
    events_.push(added);
    return false;
  }

  void done_with_one(std::size_t index) {
    Rank& me = ranks_[index];
    if (--me.pending > 0) return;
    enter(index, me.round + 1);
  }

  // ---- rounds that repeat ----

  void find_repetition() {
    lead_entered_ = false;
    const Rank& lead = ranks_[0];
    // The lead may have left its call at this moment and wait for the next one.
    if (quotient_.calls.size() != 1 || lead.call >= calls_of(lead).size() || lead.round < 0) return snapshots_.clear();
    const QuotientStage& stage = stage_at(calls_of(lead)[lead.call], lead.round);
    const std::int64_t end = stage.first_round + stage.rounds;
    if (end - lead.round < kMinRoundsToFold) return snapshots_.clear();
    StateSnapshot state = capture(stage);
    if (state.earliest_round < stage.first_round || state.latest_round >= end) return snapshots_.clear();
    for (auto earlier = snapshots_.rbegin(); earlier != snapshots_.rend(); ++earlier) {
      if (!repeats(*earlier, state)) continue;
      const std::int64_t period = state.round - earlier->round;
      const std::int64_t times = (end - 1 - state.latest_round) / period;
      if (times > 0) skip_repetitions(times * period, static_cast<double>(times) * (state.time - earlier->time));
      return snapshots_.clear();
    }
    snapshots_.push_back(std::move(state));
    if (snapshots_.size() > kMaxPeriod) snapshots_.pop_front();
  }

  /// The present state; its earliest_round is -1 if classes or flows are outside `stage`.
  StateSnapshot capture(const QuotientStage& stage) {
    StateSnapshot state;
    state.time = now_;
    state.round = state.earliest_round = state.latest_round = ranks_[0].round;
    const auto add = [&](double value, double unit_per_second) {
      state.approximate.push_back(value);
      state.unit_per_second.push_back(unit_per_second);
    };
    for (const Rank& rank : ranks_) {
      if (rank.call != ranks_[0].call) state.earliest_round = -1;
      if (rank.round < 0) state.earliest_round = -1;
      state.earliest_round = std::min(state.earliest_round, rank.round);
      state.latest_round = std::max(state.latest_round, rank.round);
      state.exact.push_back(rank.round - state.round);
      state.exact.push_back(rank.pending);
      add(std::max(0.0, rank.adder_free - now_), 1);
    }
    if (state.earliest_round < stage.first_round) return state;
    // Collects everything under way: values that must be equal, and one value that must be nearly equal, with its unit.
    // The entries are sorted, because their order in memory has no meaning.
    std::vector<std::pair<std::array<std::int64_t, 4>, std::pair<double, double>>> entries;
    for (std::size_t slot = 0; slot < active_.size(); ++slot) {
      const ActiveFlow& flow = active_[slot];
      if (!flow.active) continue;
      if (transfer_at(flow.transfer).call != ranks_[0].call || flow.round < stage.first_round ||
          flow.round >= stage.first_round + stage.rounds) {  // a flow of another stage is still active
        state.earliest_round = -1;
        return state;
      }
      const auto& definition = transfer_at(flow.transfer).flows[static_cast<std::size_t>(flow.path_index)];
      const double rate = quotient_.link_bandwidths[static_cast<std::size_t>(definition.uses[0].link)];
      entries.push_back({{0, flow.round - state.round, flow.transfer, flow.path_index},
                         {solver_.remaining_bytes(now_, static_cast<int>(slot)), rate}});
    }
    events_.each([&](const FlowEvent& event) {
      if (event.kind == FlowEventKind::end_flow) return;  // determined by the flows
      entries.push_back({{1 + static_cast<int>(event.kind), event.subject,
                          has_round(event) ? event.round - state.round : 0, event.path_index},
                         {event.time - now_, 1}});
    });
    // Messages that have come before their destination entered the round, and parts of messages that have come.
    for (int transfer = 0; transfer < static_cast<int>(quotient_.transfers.size()); ++transfer) {
      if (const auto waiting = progress_.waiting(transfer); waiting != 0)
        entries.push_back({{-1, transfer, waiting, 0}, {0, 1}});
      const int paths = static_cast<int>(transfer_at(transfer).flows.size());
      for (int path = 0; paths > 1 && path < paths; ++path)
        entries.push_back({{-2, transfer, path, progress_.ahead(transfer, path)}, {0, 1}});
    }
    std::sort(entries.begin(), entries.end());
    for (const auto& [what, value] : entries) {
      state.exact.insert(state.exact.end(), what.begin(), what.end());
      add(value.first, value.second);
    }
    return state;
  }

  /// Advances everything by `rounds`, and the clock that callers see by `seconds`.
  void skip_repetitions(std::int64_t rounds, double seconds) {
    skipped_s_ += seconds;
    rounds_skipped_ += rounds * static_cast<std::int64_t>(ranks_.size());
    for (Rank& rank : ranks_) rank.round += rounds;
    for (ActiveFlow& flow : active_)
      if (flow.active) flow.round += rounds;
    events_.each([&](FlowEvent& event) {
      if (has_round(event)) event.round += rounds;
    });
  }

  const Quotient& quotient_;
  MaxMinSolver solver_;
  FlowEventQueue events_;
  std::vector<Rank> ranks_;
  TransferProgress progress_;
  std::vector<ActiveFlow> active_;         // by number of the flow in the solver
  std::vector<std::vector<double>> done_;  // by class: when each of its calls ended
  std::deque<StateSnapshot> snapshots_;
  bool lead_entered_ = false;
  double now_ = 0;
  double skipped_s_ = 0;  // seconds of skipped repetitions
  std::int64_t flows_started_ = 0;
  std::int64_t rounds_skipped_ = 0;
};

FoldedSimulation::FoldedSimulation(const Quotient& quotient)
    : implementation_(std::make_unique<Implementation>(quotient)) {
  implementation_->run();
}
FoldedSimulation::~FoldedSimulation() = default;

const std::vector<double>& FoldedSimulation::done(std::size_t rank) const { return implementation_->done(rank); }
std::int64_t FoldedSimulation::flows() const { return implementation_->flows(); }
std::int64_t FoldedSimulation::rounds_skipped() const { return implementation_->skipped(); }

}  // namespace ganymede::sim

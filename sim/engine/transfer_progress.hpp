#pragma once
// How far the transfers of a folded simulation are.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/engine/symmetry.hpp"

namespace ganymede::sim {

/// A transfer sends one message a round, and the messages of a path arrive in the order of their rounds, because a
/// source leaves a round when its message has left. So numbers of messages say all, and none need be kept open.
class TransferProgress {
 public:
  /// `quotient` must outlive the object.
  explicit TransferProgress(const Quotient& quotient) : quotient_(quotient) {
    transfers_.resize(quotient.transfers.size());
    std::uint32_t flows = 0;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      transfers_[i].first_flow = flows;
      flows += static_cast<std::uint32_t>(quotient.transfers[i].flows.size());
    }
    arrived_.resize(flows);
  }

  /// One more message is ready for the destination: its source has entered the round or, with an eager protocol, it has
  /// arrived. True if the destination is already in the round.
  bool offer(int transfer) { return ++at(transfer).offered <= at(transfer).accepted; }
  /// The destination has entered one more round. True if the message is already ready for it.
  bool accept(int transfer) { return ++at(transfer).accepted <= at(transfer).offered; }
  /// The number of messages that are ready and wait for their destination; negative: rounds that wait for a message.
  std::int32_t waiting(int transfer) const {
    const Transfer& progress = transfers_[static_cast<std::size_t>(transfer)];
    return progress.offered - progress.accepted;
  }

  void start(int transfer) { at(transfer).leaving = static_cast<std::int32_t>(flows_of(transfer)); }
  /// One flow of the message has left the source. True if all have.
  bool leave(int transfer) { return --at(transfer).leaving == 0; }
  /// One flow has arrived. True if the message to which it belongs is complete with it.
  bool arrive(int transfer, int path) {
    const auto first = arrived_.begin() + at(transfer).first_flow, last = first + static_cast<int>(flows_of(transfer));
    const std::int32_t before = *std::min_element(first, last);
    ++*(first + path);
    return *std::min_element(first, last) > before;
  }
  /// Flows of this path that have arrived beyond those of the path that is furthest behind.
  std::int32_t ahead(int transfer, int path) const {
    const auto first = arrived_.begin() + transfers_[static_cast<std::size_t>(transfer)].first_flow;
    return *(first + path) - *std::min_element(first, first + static_cast<int>(flows_of(transfer)));
  }

 private:
  struct Transfer {
    std::int32_t offered = 0, accepted = 0;  // messages
    std::int32_t leaving = 0;                // flows of the present message that have not left the source
    std::uint32_t first_flow = 0;            // in arrived_
  };
  Transfer& at(int transfer) { return transfers_[static_cast<std::size_t>(transfer)]; }
  std::size_t flows_of(int transfer) const {
    return quotient_.transfers[static_cast<std::size_t>(transfer)].flows.size();
  }

  const Quotient& quotient_;
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> arrived_;  // by transfer and path: flows that have arrived
};

// Detects that a simulated collective repeats itself: its states at two moments differ only in the number of the round.

/// The largest difference of two states that count as the same, relative to the time between them. Even if differences
/// of all repetitions add up, the relative error of the time stays at this.
inline constexpr double kStateTolerance = 1e-10;

/// The state at a moment at which the first class of ranks, the lead, has just entered a round. Rounds are relative to
/// the lead's, and times to `time`.
struct StateSnapshot {
  double time = 0;                                    ///< seconds
  std::int64_t round = 0;                             ///< the round of the lead
  std::int64_t earliest_round = 0, latest_round = 0;  ///< over all classes
  std::vector<std::int64_t> exact;                    ///< values that must be equal
  std::vector<double> approximate;                    ///< times and bytes that must be nearly equal
  std::vector<double> unit_per_second;                ///< 1 for a time; a bandwidth for bytes
};

/// True if the later snapshot equals the earlier one except for time and round.
inline bool repeats(const StateSnapshot& earlier, const StateSnapshot& later) {
  const std::size_t values = earlier.approximate.size();
  if (earlier.exact != later.exact || values != later.approximate.size() || later.time <= earlier.time) return false;
  const double tolerance = kStateTolerance * (later.time - earlier.time);
  for (std::size_t i = 0; i < values; ++i)
    if (std::abs(earlier.approximate[i] - later.approximate[i]) > tolerance * earlier.unit_per_second[i]) return false;
  return true;
}

// The event queue of a folded simulation.

enum class FlowEventKind { enter, start_flow, end_flow, arrive, added };

struct FlowEvent {
  double time = 0;  ///< seconds
  FlowEventKind kind = FlowEventKind::enter;
  int subject = 0;  ///< enter, added: a class of ranks; start_flow, arrive: a transfer; end_flow: a flow of the solver
  std::int64_t round = 0;  ///< of start_flow and arrive
  int path_index = 0;      ///< of start_flow
};
inline bool has_round(const FlowEvent& event) {
  return event.kind == FlowEventKind::start_flow || event.kind == FlowEventKind::arrive;
}

/// A priority queue whose events can be moved in time, inspected, and changed in place. Events happen in the order of
/// time, then of creation or of their last move, so that runs are alike on every machine.
///
/// The heap has four children a node and holds only what orders events: a queue of a million events is otherwise slow
/// because each comparison misses the cache.
class FlowEventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  double next_time() const { return heap_.front().time; }

  /// Returns a handle, which is valid until the event is popped.
  int push(const FlowEvent& event) {
    if (free_.empty()) {
      free_.push_back(static_cast<int>(events_.size()));
      events_.emplace_back();
      places_.push_back(0);
    }
    const int handle = free_.back();
    free_.pop_back();
    events_[static_cast<std::size_t>(handle)] = event;
    heap_.emplace_back();
    rise(heap_.size() - 1, {event.time, ++order_, handle});
    return handle;
  }

  /// Moves an event to another time, as if it had been popped and pushed.
  void move(int handle, double time) {
    const std::size_t place = places_[static_cast<std::size_t>(handle)];
    const Entry entry{time, ++order_, handle};
    events_[static_cast<std::size_t>(handle)].time = time;
    if (is_before(entry, heap_[place]))
      rise(place, entry);
    else
      sink(place, entry);
  }

  FlowEvent pop() {
    const int handle = heap_.front().handle;
    free_.push_back(handle);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0, last);
    return events_[static_cast<std::size_t>(handle)];
  }

  /// Calls `visit` with all events, in no particular order. It may change what does not affect the order.
  template <class Visit>
  void each(Visit visit) {
    for (const Entry& entry : heap_) visit(events_[static_cast<std::size_t>(entry.handle)]);
  }

 private:
  struct Entry {
    double time = 0;
    std::int64_t order = 0;
    int handle = 0;
  };
  static constexpr std::size_t kChildren = 4;

  static bool is_before(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  }
  void put(std::size_t place, const Entry& entry) {
    heap_[place] = entry;
    places_[static_cast<std::size_t>(entry.handle)] = static_cast<std::uint32_t>(place);
  }
  void rise(std::size_t place, const Entry& entry) {
    for (; place > 0 && is_before(entry, heap_[(place - 1) / kChildren]); place = (place - 1) / kChildren)
      put(place, heap_[(place - 1) / kChildren]);
    put(place, entry);
  }
  void sink(std::size_t place, const Entry& entry) {
    while (true) {
      const std::size_t first = place * kChildren + 1, end = std::min(first + kChildren, heap_.size());
      if (first >= end) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (is_before(heap_[child], heap_[least])) least = child;
      if (!is_before(heap_[least], entry)) break;
      put(place, heap_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> heap_;
  std::vector<FlowEvent> events_;      // by handle
  std::vector<std::uint32_t> places_;  // by handle: its place in the heap
  std::vector<int> free_;              // handles that can be reused
  std::int64_t order_ = 0;
};

}  // namespace ganymede::sim

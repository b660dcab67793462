#pragma once
// The event queue of a folded simulation.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ganymede::sim {

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

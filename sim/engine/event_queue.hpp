#pragma once
// The event queue of a folded simulation.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ganymede {

enum class EventKind { enter, start_flow, end_flow, arrive, added };

/// Events happen in the order of time, then of creation, so that runs are alike on every machine.
struct Event {
  double time = 0;         ///< seconds
  std::int64_t order = 0;  ///< number in the order of creation, which the queue sets
  EventKind kind = EventKind::enter;
  int subject = 0;  ///< enter, added: a class of ranks; start_flow, arrive: a call; end_flow: a flow of the solver
  // The next four are set for start_flow and arrive alone.
  int communicator = 0;
  std::int64_t round = 0;
  int transfer = 0;  ///< index in its stage
  int path_index = 0;
  // Set for end_flow alone: the event is void if the flow has another version by then.
  std::int64_t version = 0;
};
inline bool has_round(const Event& event) {
  return event.kind == EventKind::start_flow || event.kind == EventKind::arrive;
}
struct IsLater {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

/// A priority queue whose events can be inspected and changed in place.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }
  void push(Event event) {
    event.order = ++order_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), IsLater{});
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  /// All events, in no particular order. Callers may change what does not affect the order.
  std::vector<Event>& events() { return heap_; }

 private:
  std::vector<Event> heap_;
  std::int64_t order_ = 0;
};

}  // namespace ganymede

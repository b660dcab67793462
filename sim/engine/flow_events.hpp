#pragma once
// The event queue of a folded simulation.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ganymede::sim {

enum class FlowEventKind { enter, start_flow, end_flow, arrive, added };

/// Events happen in the order of time, then of creation, so that runs are alike on every machine.
struct FlowEvent {
  double time = 0;         ///< seconds
  std::int64_t order = 0;  ///< number in the order of creation, which the queue sets
  FlowEventKind kind = FlowEventKind::enter;
  int subject = 0;  ///< enter, added: a class of ranks; start_flow, arrive: a call; end_flow: a flow of the solver
  // The next four members are set only for start_flow and arrive.
  int communicator = 0;
  std::int64_t round = 0;
  int transfer = 0;  ///< index in its stage
  int path_index = 0;
  // Set only for end_flow: the event is ignored if the flow has another version when the event comes.
  std::int64_t version = 0;
};
inline bool has_round(const FlowEvent& event) {
  return event.kind == FlowEventKind::start_flow || event.kind == FlowEventKind::arrive;
}
struct IsLater {
  bool operator()(const FlowEvent& a, const FlowEvent& b) const {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

/// A priority queue whose events can be inspected and changed in place.
class FlowEventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const FlowEvent& top() const { return heap_.front(); }
  void push(FlowEvent event) {
    event.order = ++order_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), IsLater{});
  }
  FlowEvent pop() {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater{});
    const FlowEvent event = heap_.back();
    heap_.pop_back();
    return event;
  }
  /// All events, in no particular order. Callers may change what does not affect the order.
  std::vector<FlowEvent>& events() { return heap_; }

 private:
  std::vector<FlowEvent> heap_;
  std::int64_t order_ = 0;
};

}  // namespace ganymede::sim

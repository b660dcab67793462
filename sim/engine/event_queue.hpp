#pragma once
// What happens next in a quotient simulation.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ganymede {

enum class What { enter, start_flow, end_flow, arrive, added };

/// By time, then by order of creation, so that runs are alike on every machine.
struct Event {
  double time = 0;
  std::int64_t order = 0;
  What what = What::enter;
  int subject = 0;         ///< class of ranks; end_flow: the flow's slot
  int communicator = 0;    ///< start_flow, arrive; their subject is the call
  std::int64_t round = 0;  ///< start_flow, arrive
  int transfer = 0;        ///< start_flow, arrive: of its stage
  int way = 0;             ///< start_flow
  std::int64_t version = 0;
};
inline bool has_round(const Event& event) { return event.what == What::start_flow || event.what == What::arrive; }
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

/// A queue whose events can be looked at.
class Events {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }
  void push(Event event) {
    event.order = ++order_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  std::vector<Event>& all() { return heap_; }

 private:
  std::vector<Event> heap_;
  std::int64_t order_ = 0;
};

}  // namespace ganymede

#pragma once
// What can happen in a run: one type for each kind of event, and the queue that orders them by time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <variant>
#include <vector>

#include "sim/run/run_clock.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

// Nodes. `node` is an index into the fleet, `pool` into the scenario's pools.

/// The provider answers a request: it grants the node or has none.
struct RequestAnswered {
  std::size_t node;
};
/// A granted node has booted and pulled its image.
struct NodeReady {
  std::size_t node;
};
/// The provider announces that it takes a node back.
struct NoticeGiven {
  std::size_t node;
};
/// The last moment at which a checkpoint can be complete before nodes under notice go.
struct FinalCheckpointDue {};
/// The provider takes a node back.
struct NodeReclaimed {
  std::size_t node;
};
struct NodeCrashed {
  std::size_t node;
};

// Capacity: how many nodes of a pool there may be.

/// Capacity changes now, or a change comes within the notice that the provider gives.
struct CapacityChanged {
  std::size_t pool;
};
/// The provider takes back nodes of a pool for which known capacity leaves no room.
struct ReclaimDue {
  std::size_t pool;
};
/// Requests that wait for nodes of a pool are tried again.
struct WaitingRetried {
  std::size_t pool;
};

// Training.

/// The start of the training program, or a checkpoint written while nothing trains, is complete.
struct PauseEnded {};
/// The last step of the segment under way is done: the target, a stage or the first epoch is complete.
struct SegmentCompleted {};
/// Storage, or NICs, fall back to the rate that they sustain.
struct BurstCreditsUsedUp {
  bool nics = false;
};

// Faults.

/// A slowdown that the scenario draws at random begins.
struct SlowdownStarted {
  InjectedEvent::Kind kind;
};
/// One or more slowdowns end now.
struct SlowdownEnded {};
/// An event of the scenario's "faults".
struct FaultInjected {
  std::size_t index;
};

/// A periodic policy is consulted.
struct PolicyReviewDue {};

using SimulationEvent =
    std::variant<RequestAnswered, NodeReady, NoticeGiven, FinalCheckpointDue, NodeReclaimed, NodeCrashed,
                 CapacityChanged, ReclaimDue, WaitingRetried, PauseEnded, SegmentCompleted, BurstCreditsUsedUp,
                 SlowdownStarted, SlowdownEnded, FaultInjected, PolicyReviewDue>;

/// An event and its time.
struct ScheduledEvent {
  Nanoseconds at = 0;
  SimulationEvent event;
  /// Number of the phase (segment or pause) that the event ends; the event is dropped if that phase is already over. 0:
  /// it always happens.
  std::uint64_t phase = 0;
};

/// Events in the order of their times; those of equal time in the order in which they were scheduled.
class SimulationQueue {
 public:
  bool empty() const { return queue_.empty(); }
  /// Events after the end of a run's clock (285 years) are dropped.
  void schedule(ScheduledEvent event);
  /// Time of the next event. The queue must not be empty.
  Nanoseconds next_at() const { return queue_.top().scheduled.at; }
  /// Removes the next event and returns it. The queue must not be empty.
  ScheduledEvent pop();

 private:
  struct Entry {
    ScheduledEvent scheduled;
    std::uint64_t order;
    /// Reversed, because std::priority_queue returns the largest entry first.
    bool operator<(const Entry& other) const {
      return scheduled.at != other.scheduled.at ? scheduled.at > other.scheduled.at : order > other.order;
    }
  };
  std::priority_queue<Entry> queue_;
  std::uint64_t order_ = 0;
};

}  // namespace ganymede::sim

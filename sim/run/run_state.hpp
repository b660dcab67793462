#pragma once
// The state of a run at one moment, its constant context, and the actions that a transition asks for. Transitions
// (transitions.hpp) change a RunState and return Actions; the loop (run_simulation.hpp) applies them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/random.hpp"
#include "policies/policy.hpp"
#include "sim/run/capacity.hpp"
#include "sim/run/fleet.hpp"
#include "sim/run/result.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/run/training.hpp"
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

/// What stays the same during a run.
struct RunContext {
  const Scenario& scenario;
  /// The steps of a configuration: the same distribution for the same configuration, at the same address.
  std::function<const StepDistribution&(const Configuration&)> steps_of;
  /// Relative error of the step time of a pool in a stage if that time was measured; 0 if it is transferred.
  std::function<double(std::size_t pool, std::size_t stage)> measured_error;
  std::vector<double> pool_speeds;  ///< for each pool the speed of one GPU on this workload; the first pool's is 1
  std::vector<double> stage_ends;   ///< in the target's unit; the last is the target
  double target = 0;                ///< steps or images
};

/// Draws the lengths of the stages of a growing model. They sum to `target`.
std::vector<double> draw_stage_ends(std::uint64_t seed, std::span<const double> shares, double variation,
                                    double target);

enum class RunPhase {
  idle,        ///< nothing trains
  starting,    ///< the training program starts, or loads a checkpoint
  training,    ///< a segment is under way
  evaluating,  ///< the model's quality is measured while nothing trains
  saving,      ///< a checkpoint is written while nothing trains, before all nodes go or at the end
};

/// A slowdown that lasts until a time.
struct ActiveSlowdown {
  InjectedEvent::Kind kind;
  double factor;  ///< times as long (straggler), or share of the rate that is left (network, storage)
  int nodes;      ///< nodes that are slow (straggler)
  Nanoseconds until;
};

/// What a run knows about one of the scenario's pools in addition to its nodes.
struct PoolState {
  Capacity capacity;
  RandomStream lifetimes;       ///< draws lifetimes of nodes and times without nodes
  Nanoseconds empty_until = 0;  ///< no node is granted before this time
  bool lacks_data = false;      ///< the dataset is in another region; entering the pool's region moves it there
};

/// Measures how long a run has made no progress. After too long the run is given up: modelled capacity never ends, so
/// the simulation would go on for ever.
struct Stagnation {
  Nanoseconds idle_since = 0;
  std::int64_t idle_reviews = 0;         ///< reviews of a periodic policy since training last ran
  std::int64_t fruitless_starts = 0;     ///< successive starts without new durable work
  double durable_at_last_start = -1;     ///< units of the target
  std::int64_t losses_when_trained = 0;  ///< nodes lost so far when the run last trained
};

/// What has happened, for the run's record.
struct RunFacts {
  std::vector<Span> trained;
  /// Steps trained from each distribution, in the order in which training first came to it.
  std::vector<std::pair<const StepDistribution*, double>> steps;
  std::int64_t losses = 0;
  int most_gpus = 0;
  BytesBetween moved;         ///< dataset and checkpoints on their way to other regions
  double gone_nodes_usd = 0;  ///< price of the time for which nodes that are gone were held
};

struct RunState {
  Nanoseconds now = 0;
  RunPhase phase = RunPhase::idle;
  std::uint64_t phase_number = 0;  ///< grows with each segment and pause; events of an older one are stale
  Nanoseconds phase_end = 0;       ///< when the pause under way ends
  Nanoseconds loading_from = 0;    ///< when the pause under way begins to read a checkpoint, until its end
  bool finished = false;

  policies::Decision decision = {};  ///< the last decision of the policy
  Fleet fleet;
  std::vector<PoolState> pools;
  TrainingProgress training;
  std::size_t stage = 0;
  bool evaluation_due = false;  ///< the segment under way ends with an evaluation
  bool must_load = false;       ///< the next start reads the last checkpoint
  bool has_trained = false;     ///< training has begun at least once
  bool restoring = false;       ///< nodes were lost since training last began

  std::vector<ActiveSlowdown> slowdowns = {};
  std::int64_t slowdowns_drawn = 0;
  bool burst_credits_left = true;  ///< of storage
  bool nic_credits_left = true;
  Seconds nic_burst{0};  ///< time trained with NICs in their burst
  Stagnation stagnation = {};
  Nanoseconds accounted_until = 0;  ///< until when the ledgers contain rented time without training

  RandomStream delays;          ///< lengths of queues, boots, image pulls and starts
  RandomStream picks;           ///< which nodes are lost
  RandomStream slowdown_draws;  ///< when slowdowns come and whether they hit the run
  RunFacts facts = {};
};

/// The state at the request. `scenario` must outlive it.
RunState initial_state(const Scenario& scenario);

/// What a transition asks of the loop, to be done in this order.
struct Actions {
  std::vector<RunEvent> log;
  std::vector<ScheduledEvent> schedule;
  bool consult_policy = false;
  /// Events that happen now, one after the other, before any event of the queue.
  std::vector<SimulationEvent> next;
};

/// Adds a line to the log.
void log_event(Actions& actions, const RunState& state, std::string what, std::string pool = "", int nodes = 0,
               std::string detail = "", std::int64_t times = 1);

/// Moves the clock to `to`. Adds to the ledgers how nodes that did not train spent the time since the last event: new
/// nodes, starts, evaluations and checkpoints. The time of a segment is added when it ends; time that is never added is
/// idle.
void advance_clock(const RunContext& context, RunState& state, Nanoseconds to);

/// Throws Infeasible: the run would never finish, because of `why`.
[[noreturn]] void throw_never_finishes(const RunContext& context, const RunState& state, const std::string& why);

/// Throws Infeasible if the run has made no progress for too long. `review`: the event at hand is a review of a
/// periodic policy.
void give_up_if_stagnant(const RunContext& context, RunState& state, bool review);

}  // namespace ganymede::sim

#pragma once
// The life of a run: requests, boots, training, interruptions, checkpoints, what the policy decides and what becomes of
// it, as discrete events. Between two of them a segment of training is a formula, so that a run costs as much as it has
// events, whatever its number of steps.

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "sim/run/capacity.hpp"
#include "sim/run/controller.hpp"
#include "sim/run/fleet.hpp"
#include "sim/run/result.hpp"
#include "sim/run/run_record.hpp"
#include "sim/run/training.hpp"

namespace ganymede {

class Life {
 public:
  /// Both must outlive this. `controller` decides instead of the scenario's policy, if there is one.
  Life(const Scenario& scenario, StepTimes& times, std::unique_ptr<Controller> controller = nullptr);

  /// From the request to the end. Infeasible: the run would never finish, and why. Failure: its policy failed.
  void run();

  /// Afterwards.
  RunRecord record();

 private:
  enum class State {
    idle,      ///< nothing trains
    starting,  ///< the training program starts, or loads a checkpoint
    training,
    saving,  ///< a checkpoint before all nodes go
  };
  struct Event {
    enum class Kind {
      grant,
      back,
      ready,
      notice,
      last_save,
      taken,
      crash,
      capacity,
      take_back,
      resume,
      reached,
      slow_node,
      slow_network,
      slow_storage,
      recovered,
      injected,
      out_of_credits,
      look,
    };
    Nanoseconds at;
    std::uint64_t order;  // events of one time come in the order in which they were made
    Kind kind;
    std::size_t index = 0;         // of a node, a pool or an injected event
    std::uint64_t generation = 0;  // of the segment or pause that it ends; stale ones are dropped
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };
  /// Something is slow until a time.
  struct Slow {
    InjectedEvent::Kind kind;
    double factor;
    int nodes;
    Nanoseconds until;
  };

  // life.cpp
  std::vector<const StepDistribution*> used() const;
  void post(Nanoseconds at, Event::Kind kind, std::size_t index = 0, std::uint64_t generation = 0);
  void handle(const Event& event);
  void log(std::string what, std::string pool = "", int nodes = 0, std::string detail = "", std::int64_t times = 1);
  void draw_stages();
  double slack() const;
  std::size_t stage_at(double done) const;
  Configuration configuration() const;
  void begin_segment(bool goes_on = false);
  void change_pace();
  void cut(bool lost);
  void reached();
  void pause(State state, Nanoseconds length);
  void resume();
  void start(bool load);
  double usd_to_enter(std::size_t pool) const;
  void reconcile();
  std::vector<std::size_t> crew() const;
  void account_waiting();
  void slow(const InjectedEvent& event);
  void schedule(Event::Kind kind);
  void slowdown_came(Event::Kind kind);
  [[noreturn]] void never(const std::string& why) const;
  void check_hope(const Event& event);
  Nanoseconds write_time() const;
  Nanoseconds read_time() const;
  double steps_between_checkpoints(const StepDistribution& steps) const;

  // life_nodes.cpp
  void request(std::size_t pool, int nodes);
  void grant(std::size_t node);
  void grant_waiting(std::size_t pool);
  bool available(std::size_t pool);
  void ready(std::size_t node);
  bool warn(std::size_t node, Nanoseconds leaves);
  void give_notice(std::size_t node);
  void lose(std::size_t node, bool crash);
  void inject(const InjectedEvent& event);
  void save_before_end();

  // life_capacity.cpp
  struct CapacityFrom {
    Nanoseconds at;
    std::size_t nodes;
  };
  std::vector<CapacityFrom> known_capacity(std::size_t pool);
  bool has_room(std::size_t pool);
  void capacity_changed(std::size_t pool);
  void take_back(std::size_t pool);

  // life_policy.cpp
  void look();
  Observation observe() const;
  PoolView view_of(std::size_t pool) const;
  void apply(const Decision& decision);
  void release(std::size_t pool, int nodes);

  const Scenario& scenario_;
  StepTimes& times_;
  std::unique_ptr<Controller> controller_;
  Fleet fleet_;
  Training training_;
  RandomStream delays_, picks_, slow_nodes_;
  std::vector<RandomStream> lifetimes_;  // by pool
  std::vector<Capacity> capacity_;       // by pool

  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::uint64_t order_ = 0, generation_ = 0;
  Nanoseconds now_ = 0, accounted_ = 0;
  State state_ = State::idle;
  bool done_ = false;
  Decision decision_;
  bool loads_ = false;       // the next start reads a checkpoint
  bool started_ = false;     // has ever trained
  bool lost_since_ = false;  // the next start is a restoration
  Nanoseconds idle_since_ = 0;
  Nanoseconds load_from_ = 0;  // of the pause under way: the part at its end that reads a checkpoint
  Nanoseconds pause_end_ = 0;
  std::vector<double> stage_ends_;  // in the target's unit
  std::size_t stage_ = 0;
  double target_ = 0;
  std::vector<Slow> slow_;
  bool credits_left_ = true;
  std::vector<Nanoseconds> empty_until_;  // by pool: no node is to be had
  std::vector<bool> away_;                // by pool: the dataset is not there yet
  std::vector<double> speed_;             // by pool, of one GPU, against the first

  std::vector<RunEvent> events_;
  std::vector<Span> trained_;
  std::map<const StepDistribution*, double> used_;
  bool events_truncated_ = false;
  std::int64_t losses_ = 0, idle_looks_ = 0, tries_ = 0;
  double tried_durable_ = -1;
  int most_gpus_ = 0;
  double moved_usd_ = 0;
};

/// Simulates a run from the request to its end. Infeasible: the run would never finish, and why. Failure: its policy
/// failed.
RunRecord simulate_run(const Scenario& scenario, StepTimes& times);

}  // namespace ganymede

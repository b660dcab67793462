#pragma once
// Simulates a run: a loop that takes the next event, lets its transition change the state, and does what the transition
// asks for. The same loop drives a run whose processes are real (RunWorld).

#include <functional>
#include <optional>

#include "sim/run/controller.hpp"
#include "sim/run/run_record.hpp"
#include "sim/run/run_state.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {

// Where a run takes place. A simulated run needs none: all events happen at their scheduled times. A rehearsed run has
// real processes, and what they do happens when they have done it (rehearsal/local_cluster.hpp).

class RunWorld {
 public:
  virtual ~RunWorld() = default;

  /// True: the world itself finds out when this event happens, and will return it from next(); its scheduled time is
  /// what was predicted. `state` is the state that scheduled it.
  virtual bool takes(const RunState& state, const ScheduledEvent& event) = 0;
  /// Waits for the next event, be it the world's own or one of the queue that is due, and returns it with the time at
  /// which it really happened; none: nothing will ever happen.
  virtual std::optional<ScheduledEvent> next(SimulationQueue& queue) = 0;
  /// Replaces what was predicted of the segment under way by what was measured.
  virtual void measure(RunState& state) = 0;
  /// Lets the workers end the step under way, after which none of them trains; returns the time at which it ended.
  virtual Nanoseconds stop_training() = 0;
  /// Does what the state asks for: starts and ends nodes, workers, checkpoints and evaluations.
  virtual void follow(const RunContext& context, const RunState& state) = 0;
};

/// Asked now and then while a run is simulated, with the time and all nodes so far. If it returns true the run ends.
using GivesUp = std::function<bool(Nanoseconds now, const std::vector<Node>& nodes)>;

class RunSimulation {
 public:
  /// All must outlive this. `controller` is the policy that decides. `world` is where the run takes place; null: it is
  /// simulated.
  RunSimulation(const Scenario& scenario, ScenarioSteps& steps, Controller& controller, RunWorld* world = nullptr);

  /// Simulates from the request to the end. Throws Infeasible, which says why, if the run would never finish, and
  /// Failure if its policy failed.
  RunRecord run();
  /// The same; none if `gives_up` ended it.
  std::optional<RunRecord> run(const GivesUp& gives_up);

 private:
  using Change = std::function<Actions(RunState&)>;
  std::optional<ScheduledEvent> next_event();
  void advance(Nanoseconds to);
  void schedule(const ScheduledEvent& event);
  /// Applies a change; if it makes the workers of a real training stop, once they have ended their step.
  void enact(const Change& change);
  bool stops_training(const Change& change) const;
  void apply(Actions actions);
  void consult_policy();
  [[noreturn]] void throw_nothing_happens() const;
  RunRecord record() const;

  ScenarioSteps& steps_;
  Controller& controller_;
  RunWorld* world_;
  RunContext context_;
  RunState state_;
  SimulationQueue queue_;
  EventLog log_;
};

/// Simulates the run of a scenario under the policy that it names, or under `controller`. Throws as
/// RunSimulation::run().
RunRecord simulate_run(const Scenario& scenario, ScenarioSteps& steps);
RunRecord simulate_run(const Scenario& scenario, ScenarioSteps& steps, Controller& controller);

}  // namespace ganymede::sim

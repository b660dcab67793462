#pragma once
// Simulates a run: a loop that takes the next event, lets its transition change the state, and does what the transition
// asks for. The same loop drives a run whose processes are real (run_world.hpp).

#include <functional>
#include <optional>

#include "sim/run/controller.hpp"
#include "sim/run/event_log.hpp"
#include "sim/run/run_record.hpp"
#include "sim/run/run_state.hpp"
#include "sim/run/run_world.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {

class RunSimulation {
 public:
  /// All must outlive this. `controller` is the policy that decides. `world` is where the run takes place; null: it is
  /// simulated.
  RunSimulation(const Scenario& scenario, ScenarioSteps& steps, Controller& controller, RunWorld* world = nullptr);

  /// Simulates from the request to the end. Throws Infeasible, which says why, if the run would never finish, and
  /// Failure if its policy failed.
  RunRecord run();

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

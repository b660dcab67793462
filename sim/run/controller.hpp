#pragma once
// The source of a run's decisions: a built-in policy, or a program of the user.

#include <memory>
#include <string>

#include "policies/policy.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

class Controller {
 public:
  virtual ~Controller() = default;
  /// Asks for a decision and checks that the scenario's pools can serve it. Throws Failure if the policy asks for nodes
  /// that do not exist, or if an external policy does not answer in time, ends, or gives an invalid answer.
  policies::Decision decide(const policies::Observation& seen);

 protected:
  /// `scenario` must outlive this.
  explicit Controller(const Scenario& scenario) : scenario_(scenario) {}
  /// The policy's decision, unchecked.
  virtual policies::Decision ask(const policies::Observation& seen) = 0;
  const Scenario& scenario_;
};

/// The controller of the scenario's policy. `scenario` must outlive it. Throws Failure if an external policy cannot be
/// started.
std::unique_ptr<Controller> make_controller(const Scenario& scenario);

/// A blind policy sees this in control runs: the time, its goals and its nodes by state; not progress, prices, notices
/// or losses, by which it would steer.
policies::Observation blinded(const policies::Observation& seen);

/// Reads an external policy's answer, such as {"nodes": {"spot": 2}}. Throws PolicyFault for anything else.
policies::Decision parse_decision(const std::string& line, const Scenario& scenario);

/// The observation as one line of JSON, which an external policy reads.
std::string observation_json(const Scenario& scenario, const policies::Observation& seen);

}  // namespace ganymede::sim

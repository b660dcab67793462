#pragma once
// Whoever decides: a policy of the table, or a program of the user's.

#include <memory>
#include <string>

#include "policies/policy.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede {

class Controller {
 public:
  virtual ~Controller() = default;
  /// A decision that the scenario's pools can serve. Failure: the policy asks for what does not exist, or an external
  /// one hangs, dies or writes rubbish; the run has failed then, and says why.
  Decision decide(const Observation& seen);

 protected:
  explicit Controller(const Scenario& scenario) : scenario_(scenario) {}
  virtual Decision ask(const Observation& seen) = 0;
  const Scenario& scenario_;
};

/// The scenario's own. `scenario` must outlive it.
std::unique_ptr<Controller> make_controller(const Scenario& scenario);

/// What a policy that is blinded sees: what it holds and the clock, and nothing that it would steer by.
Observation blinded(const Observation& seen);

/// One observation as a line of JSON, as an external policy gets it.
std::string observation_json(const Scenario& scenario, const Observation& seen);

}  // namespace ganymede

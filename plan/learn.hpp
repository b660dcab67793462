#pragma once
// Trains the table of a policy that learns, by simulating runs.

#include <cstdint>
#include <functional>
#include <string>

#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

struct LearnOptions {
  int episodes = 200;  ///< simulated runs
  /// Seed of the first episode; each further one has the next seed. The table must be judged on other seeds.
  std::uint64_t first_seed = 1'000'000;
  double usd_per_hour_waited = 5;  ///< dollars that an hour of waiting for the result costs
  double rate = 0.2;               ///< learning rate
  double explore = 0.3;            ///< share of random decisions in the first episode; falls linearly to a tenth of it
};

/// Returns a table for the policy `q-learning` as `ganymede.q-table/1`, trained by tabular Q-learning (Watkins & Dayan,
/// 1992) on simulated runs of the scenario. The cost of a decision is the money spent and the time waited until the
/// next decision. The same scenario and options give the same bytes. `progress` gets the number of episodes done.
/// Throws Infeasible if no episode ever finishes.
std::string learn_q_table(const sim::Scenario& scenario, const LearnOptions& options,
                          const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede::plan

#pragma once
// Trains the table of a policy that learns, by simulating runs.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

struct LearnOptions {
  int episodes = 200;  ///< simulated runs
  /// Seed of the first episode; each further one has the next seed. The table must be judged on other seeds.
  std::uint64_t first_seed = 1'000'000;
  double usd_per_hour_waited = 5;  ///< dollars that an hour of waiting for the result costs
  double rate = 0.2;               ///< learning rate
  double explore = 0.3;            ///< share of random decisions in the first episode; falls linearly to a tenth of it
  int held_out = 30;               ///< runs on seeds after those of the episodes, on which the table is judged
};

/// What a policy cost on the held-out seeds: means over the runs that finish.
struct JudgedPolicy {
  std::string policy;
  int finished = 0;  ///< of LearnOptions::held_out runs
  double hours = 0, usd = 0;
  double cost_usd = 0;  ///< what learning minimizes: money for nodes, and hours at what an hour of waiting is worth
};

struct LearnedTable {
  std::string json;                  ///< `ganymede.q-table/1`; its member "judged" holds what follows
  std::uint64_t held_out_first = 0;  ///< the first of the held-out seeds
  std::vector<JudgedPolicy> judged;  ///< q-learning with this table first, then the others by rising cost
};

/// Returns a table for the policy `q-learning`, trained by tabular Q-learning (Watkins & Dayan, 1992) on simulated runs
/// of the scenario. The cost of a decision is the money spent and the time waited until the next decision. The table is
/// then judged on other seeds, beside every policy with its default settings that needs nothing which the scenario
/// lacks. The same scenario and options give the same bytes. `progress` gets the number of episodes done. Throws
/// Infeasible if no episode ever finishes.
LearnedTable learn_q_table(const sim::Scenario& scenario, const LearnOptions& options,
                           const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede::plan

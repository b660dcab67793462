#pragma once
// Training of policies that learn, by simulating runs.

#include <cstdint>
#include <functional>
#include <string>

#include "sim/scenario/scenario.hpp"

namespace ganymede {

struct LearnOptions {
  int episodes = 200;
  std::uint64_t first_seed = 1'000'000;  ///< of the episodes, one each: judge the table on others
  double usd_per_hour_waited = 5;        ///< what an hour of waiting for the result is worth
  double rate = 0.2;                     ///< learning rate
  double explore = 0.3;                  ///< share of random decisions at the start; falls to a tenth of it
};

/// A table for `q-learning`, as `ganymede.q-table/1`: tabular Q-learning (Watkins & Dayan, 1992) over simulated runs of
/// the scenario. A decision's cost is the money and the waiting until the next one. The same bytes for the same
/// scenario and options.
std::string learn_q_table(const Scenario& scenario, const LearnOptions& options,
                          const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede

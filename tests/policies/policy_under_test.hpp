#pragma once
// A policy of the register with its memory, and observations to show it.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "policies/policy.hpp"

namespace ganymede::policies {

inline constexpr double kHour = 3600;  ///< seconds

class PolicyUnderTest {
 public:
  /// `settings` take the place of defaults.
  explicit PolicyUnderTest(std::string_view name, const std::map<std::string, double>& settings = {})
      : policy_(*find_policy(name)) {
    for (const PolicySetting& setting : policy_.settings) {
      const auto stated = settings.find(std::string(setting.name));
      settings_.push_back(stated == settings.end() ? setting.default_value : stated->second);
    }
  }

  Decision decide(const Observation& observation) {
    return policy_.decide({observation, settings_, memory_, random_, &table});
  }
  std::vector<int> nodes(const Observation& observation) { return decide(observation).nodes; }

  PolicyTable table;

 private:
  const Policy& policy_;
  std::vector<double> settings_;
  PolicyMemory memory_;
  RandomStream random_{1, "test"};
};

/// A pool of nodes with one GPU, of which the scenario asks for `requested` and a policy may hold `most`.
inline PoolView pool_of(platforms::Market market, int requested, int most, double usd_per_hour) {
  PoolView pool;
  pool.market = market;
  pool.requested = requested;
  pool.most = most;
  pool.usd_per_hour = usd_per_hour;
  return pool;
}

/// All nodes of pool `pool` that are held train, at `units_per_hour` together, with `hours_left` of that to go. GPUs
/// wait for nothing; changes of the allocation take no time.
inline Observation training(std::vector<PoolView> pools, std::size_t pool, int nodes, double units_per_hour,
                            double hours_left) {
  Observation observation;
  observation.pools = std::move(pools);
  observation.pools[pool].ready = nodes;
  observation.training = true;
  observation.training_gpus = nodes * observation.pools[pool].gpus_per_node;
  observation.rate = units_per_hour / kHour;
  observation.step_s = 1;
  observation.left = units_per_hour * hours_left;
  return observation;
}

}  // namespace ganymede::policies

#pragma once
// Allocation policies: Observation -> Decision, nothing else. A policy is a pure function: it keeps no state between
// calls, reads no clock and draws no random number.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede {

/// Some nodes of the same instance type, all at one price.
struct Pool {
  std::string instance, region;
  Market market = Market::on_demand;
  int nodes = 0;
  int gpus_per_node = 0;
  bool operator==(const Pool&) const = default;
};

/// What is rented at a moment.
struct Allocation {
  std::vector<Pool> pools;
  bool operator==(const Allocation&) const = default;
};

/// What a policy may look at.
struct Observation {
  Seconds now;           ///< since the request
  Allocation requested;  ///< what the scenario asks for
  Allocation held;       ///< what is rented now; empty at the start
  std::int64_t steps_done = 0, steps_left = 0;
};

/// What is to be rented from now on.
struct Decision {
  Allocation allocation;
};

struct Policy {
  std::string_view name, summary;
  Decision (*decide)(const Observation& seen);
};

Decision decide_fixed(const Observation& seen);

/// The only list; `list policies` and the tests walk it.
std::span<const Policy> policies();
/// nullptr: there is no such policy.
const Policy* find_policy(std::string_view name);

}  // namespace ganymede

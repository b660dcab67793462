#pragma once
// The all-reduce schemes: one file a scheme, one row of the table in allreduce.cpp.
//
//   const AllReduceScheme& scheme = find_scheme("ring");
//   const Schedule schedule = scheme.plan(Topology{.ranks = 8, .gpus_per_node = 4}, 64 << 20);

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "sim/collectives/closed_form.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede {

struct AllReduceScheme {
  std::string_view name;
  std::string_view summary;
  /// Who sends what to whom. Pure, and O(1) in bytes and rounds. One rank or no bytes: no rounds.
  Schedule (*plan)(const Topology& topology, std::int64_t bytes);
  /// The time of `plan` when its ranks hang on a star, whatever their nodes.
  Seconds (*on_star)(const Topology& topology, std::int64_t bytes, const Star& star);
};

Schedule plan_ring(const Topology& topology, std::int64_t bytes);
Schedule plan_hierarchical_copy(const Topology& topology, std::int64_t bytes);
Schedule plan_reduce_to_one(const Topology& topology, std::int64_t bytes);

/// In the order in which they are listed to the user.
std::span<const AllReduceScheme> allreduce_schemes();
std::vector<std::string> allreduce_scheme_names();

/// The scheme of that name; an unknown one is a ConfigError with the list and the nearest.
const AllReduceScheme& find_scheme(std::string_view name);

}  // namespace ganymede

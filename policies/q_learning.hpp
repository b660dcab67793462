#pragma once
// States and actions of the policy q-learning, which the training of its table needs too.

#include <cstddef>
#include <string>

#include "policies/policy.hpp"

namespace ganymede::policies {

/// Actions: 0 halves the nodes of the first pool, 1 keeps them, 2 doubles them.
inline constexpr std::size_t kQActions = 3;

/// Row of the table for what is observed, such as "useful4/nodes2^1max/left2": the useful share in fifths, the
/// doublings of the nodes ("max": the pool holds no more), and whether less than 3, less than 30 or more restarts of
/// training are left (0, 1, 2).
std::string q_state(const Observation& observation);
/// Nodes of the first pool after an action; from 1 to as many as it may hold.
int q_nodes(const Observation& observation, std::size_t action);

}  // namespace ganymede::policies

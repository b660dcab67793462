#pragma once
// Where nodes come from and where they go: requests, grants, the capacity of pools, and what the provider announces.

#include <vector>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Requests `nodes` more of a pool; none if that is not positive. Those that the provider grants at once boot.
void request_nodes(const RunContext& context, RunState& state, Actions& actions, std::size_t pool, int nodes);

/// The provider answers a request: the node boots from now on, or waits. Nothing happens if the request was given up.
void answer_request(const RunContext& context, RunState& state, Actions& actions, std::size_t node);

/// Grants the requests that wait for nodes of a pool, the oldest first, as far as there are nodes.
void retry_waiting(const RunContext& context, RunState& state, Actions& actions, std::size_t pool);

/// The provider will take a node back at `leaves`. Does nothing if the node is not held or goes by then anyway. Returns
/// true if the node is told before it goes and the policy has not heard of it.
bool announce_reclaim(const RunContext& context, RunState& state, Actions& actions, std::size_t node,
                      Nanoseconds leaves);

/// Takes a node away and adds up what it cost.
void remove_node(const RunContext& context, RunState& state, std::size_t node, bool lost);

/// How many nodes of a pool there may be from a time on.
struct CapacityFrom {
  Nanoseconds at;
  std::size_t nodes;
};
/// The capacity that holds now, then each change to come within a notice: the provider knows so far ahead.
std::vector<CapacityFrom> known_capacity(const RunContext& context, RunState& state, std::size_t pool);

/// Schedules the next moment at which a pool's capacity changes, or at which notice of a change is due.
void schedule_capacity_change(const RunContext& context, RunState& state, Actions& actions, std::size_t pool);

/// Dollars an hour of one node of a pool at a time.
double price_at(const ScenarioPool& pool, Nanoseconds now);
/// Price of the time that the run's nodes were held up to now, without the provider's rounding, in dollars.
double spent_usd(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim

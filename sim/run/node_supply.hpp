#pragma once
// The supply of nodes: requests, grants, the capacity of pools, and what the provider announces.

#include <vector>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Requests `nodes` more nodes of a pool; does nothing if `nodes` is not positive. Nodes that the provider grants at
/// once start to boot.
void request_nodes(const RunContext& context, RunState& state, Actions& actions, std::size_t pool, int nodes);

/// Lets the provider answer a request: the node boots from now on, or waits. Does nothing if the request was given up.
void answer_request(const RunContext& context, RunState& state, Actions& actions, std::size_t node);

/// Grants the requests that wait for nodes of a pool, the oldest first, until no more nodes can be had.
void retry_waiting(const RunContext& context, RunState& state, Actions& actions, std::size_t pool);

/// Records that the provider will take a node back at `leaves`. Does nothing if the node is not held or leaves by then
/// anyway. Returns true if the provider gives notice of this and the policy has not heard of it yet.
bool announce_reclaim(const RunContext& context, RunState& state, Actions& actions, std::size_t node,
                      Nanoseconds leaves);

/// Removes a node from the fleet and adds its cost to the record.
void remove_node(const RunContext& context, RunState& state, std::size_t node, bool lost);

/// From the time `at` on at most `nodes` nodes of a pool can be held.
struct CapacityFrom {
  Nanoseconds at;
  std::size_t nodes;
};
/// Returns the present capacity, then each change within the provider's notice time: the provider knows that far ahead.
std::vector<CapacityFrom> known_capacity(const RunContext& context, RunState& state, std::size_t pool);

/// Schedules the next moment at which a pool's capacity changes, or at which notice of a change is due.
void schedule_capacity_change(const RunContext& context, RunState& state, Actions& actions, std::size_t pool);

/// Price of one node of a pool at `now`, in dollars per hour.
double price_at(const ScenarioPool& pool, Nanoseconds now);
/// Price of the time that the run's nodes were held up to now, without the provider's rounding, in dollars.
double spent_usd(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim

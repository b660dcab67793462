#pragma once
// What a run costs: the provider's meters, what it rents besides nodes, and where the money of the nodes went.

#include "sim/run/life.hpp"
#include "sim/run/result.hpp"

namespace ganymede {

/// Time that a pool's nodes are held: from their grant to their end, and the idle tail after the last step; in
/// a run that is stretched.
Nanoseconds held_with_tail(const Scenario& scenario, const Fleet& fleet, std::size_t pool, Nanoseconds end,
                           const Stretch& stretch = Stretch());

/// That time in a stretched run over what it was: what its energy grows by, at the same power.
double held_longer(const Scenario& scenario, const Life& life, std::size_t pool, const Stretch& stretch);

/// Fills in the bill of a finished run, its interval and where the nodes' money went; `result` knows its time, its
/// GPU-seconds and its energy by pool. Failure when an amount does not fit.
void add_costs(Result& result, const Scenario& scenario, Life& life);

}  // namespace ganymede

#pragma once
// The simulated time of a schedule that is executed for real.

#include "sim/collectives/schedule.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::rehearsal {

/// The time from the common start of all ranks to the last end, over the fabric's links.
Seconds predicted_time(const sim::FabricGraph& fabric, const sim::Schedule& schedule);

}  // namespace ganymede::rehearsal

#pragma once
// A cluster at message fidelity: its jobs are processes on SimGrid, which compute on hosts, read from disks and send
// every message of their collectives over the links of the whole cluster. It is the reference for the rates that the
// fast simulation takes from formulas; the scheduler's decisions come from the same code.

#include "sim/cluster/cluster_record.hpp"

namespace ganymede::sim {

/// A job's steps are drawn and simulated one by one, and a job ends with a whole step. A job that is stopped loses the
/// step under way, whose messages still end. Throws what simulate_cluster() throws, and BudgetExceeded
/// before a job begins that would send too many messages. A process may call this once.
ClusterRecord simulate_on_simgrid(const Cluster& cluster);

}  // namespace ganymede::sim

#pragma once
// The life of a cluster: a loop over arrivals, ends and the scheduler's rounds. Between two events every job goes on at
// one pace, so that the cost grows with events, not with steps.

#include "sim/cluster/cluster_state.hpp"

namespace ganymede::sim {

/// Simulates the cluster until its last job has ended. Throws Infeasible if a job can run nowhere or is starved for
/// ever, and Failure if an external scheduler fails. At message fidelity a process may call this once.
ClusterRecord simulate_cluster(const Cluster& cluster);

/// The same at the fidelity of formulas, or with jobs that go on as `runner` says. `speeds` must be those of `cluster`.
ClusterRecord simulate_cluster(const Cluster& cluster, JobSpeeds& speeds, JobRunner* runner = nullptr);

}  // namespace ganymede::sim

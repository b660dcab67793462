#pragma once
// The jobs of a cluster use more than its nodes: stores, and dedicated parameter servers.

#include "sim/cluster/cluster_record.hpp"
#include "sim/cluster/job_speeds.hpp"

namespace ganymede::sim {

/// The charges for the stores and servers of a finished life, whose jobs and end `record` must have. Workloads with
/// the same class, rate and IOPS in a place read from one store, as in `shared_storage.hpp`, which holds the datasets
/// of all of them for the cluster's whole life; if each node has a volume of its own, one for each node on which one of
/// their jobs ever ran. A job has a checkpoint of its own from its start to its end, and servers while it has GPUs.
OtherUse other_use(const Cluster& cluster, const ClusterRecord& record, JobSpeeds& speeds);

}  // namespace ganymede::sim

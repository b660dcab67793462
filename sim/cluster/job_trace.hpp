#pragma once
// Jobs from a CSV file, in this program's own columns or in those of Gavel's traces.

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace ganymede::sim {

/// Adds the jobs of a CSV file to the cluster, and the owners and workloads that only the file names. Columns:
///   arrival_s, gpus: needed;
///   workload: one of the cluster's; or model and batch_per_gpu: of the measured throughputs; or duration_s;
///   steps or total_steps; job, owner, priority, deadline_s, min_gpus, max_gpus, after (names, separated by spaces);
///   virtual_cluster: only rows of `virtual_cluster` are read, all if it is empty.
/// Other columns are named in the cluster's warnings. Throws ConfigError with file and line for what cannot be read,
/// for arrivals that are not in order, for two jobs of one name, for a column that is likely to be misspelt, and if no
/// row is left.
void read_job_trace(const JsonNode& at, const std::string& virtual_cluster, Cluster& cluster);

/// The index of an owner or workload of that name, which is added if it is new.
std::size_t owner_of(const std::string& name, Cluster& cluster);
/// Warns if the model was not measured with that batch. Precondition: the cluster has throughputs.
void warn_of_estimate(const MeasuredModel& model, Cluster& cluster);
std::size_t measured_workload_of(const std::string& model, const std::string& batch, Cluster& cluster);
/// The index of the workload of a job that states its duration.
std::size_t timed_workload_of(Cluster& cluster);

/// Resolves the names of jobs that others wait for, which no two jobs share. `names[i]` are those of job i. Throws
/// ConfigError at `at` for an unknown name and for a cycle.
void resolve_after(const JsonNode& at, const std::vector<std::vector<std::string>>& names, Cluster& cluster);

}  // namespace ganymede::sim

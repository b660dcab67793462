#pragma once
// Recorded jobs of other programs as a job trace of a cluster.

#include <string>
#include <string_view>
#include <vector>

namespace ganymede::sim {

struct ImportedJobs {
  std::string csv;  ///< as read_job_trace() reads it
  std::vector<std::string> remarks;
};

/// Reads Slurm's accounting (`sacct` with -P, with --json, or with columns of fixed width) and queue
/// (`squeue --json`), a trace of Gavel (its own,
/// or CSV with virtual_cluster, arrival_s, gpus, model, batch_per_gpu, total_steps), the traces of Philly, Helios, ACME
/// and Alibaba's PAI, workloads of Pollux, other CSV whose columns have usual names, the standard workload format, or a
/// workload of Batsim. Times count from the first submission. A job that cannot be read is left out, counted and shown.
/// Throws ConfigError with file and, where there is one, line if none can be read, and for a virtual cluster of what
/// has none. Remarks name columns that are not read.
ImportedJobs import_jobs(std::string_view text, const std::string& name, const std::string& virtual_cluster);

}  // namespace ganymede::sim

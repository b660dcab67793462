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

/// Reads what `sacct -P` prints (cells separated by '|') or a trace of Gavel (CSV with virtual_cluster, arrival_s,
/// gpus, model, batch_per_gpu, total_steps). Times count from the first submission. Throws ConfigError with file and
/// line for what cannot be read, and for a virtual cluster of what `sacct -P` prints. Remarks name columns that are not
/// read.
ImportedJobs import_jobs(std::string_view text, const std::string& name, const std::string& virtual_cluster);

}  // namespace ganymede::sim

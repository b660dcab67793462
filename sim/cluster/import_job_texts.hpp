#pragma once
// Recorded jobs in files that are no tables with a line of names: JSON, Gavel's own traces, and those of parallel
// machines.

#include <string>
#include <string_view>

#include "sim/cluster/import_jobs.hpp"

namespace ganymede::sim {

bool is_json(std::string_view text);
/// Reads Microsoft's Philly log, what `sacct --json` prints, or a workload of Batsim. Throws ConfigError for others.
ImportedJobs import_job_json(std::string_view text, const std::string& name);

/// True for the standard workload format of the Parallel Workloads Archive: rows of 18 numbers below comments with ';'.
bool is_swf(std::string_view text);
/// Reads one; a processor counts as a GPU, because the format has no GPUs.
ImportedJobs import_swf(std::string_view text, const std::string& name);

/// A trace as Gavel's own simulator reads it (stanford-futuredata/gavel, scheduler/utils.py, parse_trace): cells
/// separated by tabs, of which the first is "ResNet-18 (batch size 32)". Versions differ in the last ones.
ImportedJobs import_gavel_tabs(std::string_view text, const std::string& name);

/// What `sacct -P` prints as CSV.
std::string cells_as_csv(std::string_view text, char separator);
/// True for what `sacct` prints without -P: a line of names, a line of dashes, and cells as wide as those.
bool is_fixed_width(std::string_view text);
std::string fixed_width_as_csv(std::string_view text);

}  // namespace ganymede::sim

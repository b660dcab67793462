#pragma once
// The life of a cluster as text, as CSV and as sections of the page.

#include <string>

#include "documents/cluster_result.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// Returns a ganymede.cluster-result/1 in full; of many jobs, those that were slowed down most.
std::string cluster_text(const documents::ClusterResult& result, std::size_t width = kAnyWidth);
/// Returns a ganymede.cluster-result/1 as CSV with one line for each job.
std::string cluster_csv(const documents::ClusterResult& result);

/// A row for each owner, and one for what nobody held.
Table cluster_owners(const documents::ClusterResult& result);
/// A row for each job; of more than `most`, those that were slowed down most.
Table cluster_jobs(const documents::ClusterResult& result, std::size_t most);

}  // namespace ganymede::report

#pragma once
// The life of a cluster as text and as CSV; as sections of the page in page_sections.hpp.

#include <string>

#include "documents/cluster_result.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// Returns a ganymede.cluster-result/1 in full; of many jobs, those that were slowed down most.
std::string cluster_text(const documents::ClusterResult& result, std::size_t width = kAnyWidth);
/// Returns a ganymede.cluster-result/1 as CSV with one line for each job.
std::string cluster_csv(const documents::ClusterResult& result);

}  // namespace ganymede::report

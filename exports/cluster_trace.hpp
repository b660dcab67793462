#pragma once
// The life of a cluster as a Chrome trace, which ui.perfetto.dev opens.

#include <string>

#include "documents/cluster_result.hpp"

namespace ganymede::exports {

/// The trace of a `ganymede.cluster-result/1`: one process for each pool with a track for each of its nodes, which
/// shows the jobs there, and one process "queue" with a track for each owner, which shows the jobs that wait.
std::string cluster_trace(const documents::ClusterResult& result);

}  // namespace ganymede::exports

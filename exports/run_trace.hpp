#pragma once
// What was simulated or rehearsed as a Chrome trace, which ui.perfetto.dev opens.

#include <string>

#include "common/json_fwd.hpp"
#include "documents/cluster_result.hpp"
#include "documents/result.hpp"

namespace ganymede::exports {

/// The trace of a `ganymede.result/1`: one process "cluster" with a track for the run's events and one for each pool,
/// and one process for each worker with the steps of `step_spans`: its computation, its collectives, its input
/// pipeline. Those steps are placed at the moment when training begins.
std::string run_trace(const documents::Result& run);

/// The trace of a `ganymede.rehearsal/1`: the clusters of both lives, "predicted" over "measured", from one moment on.
std::string rehearsal_trace(const Json& rehearsal);

/// The trace of a `ganymede.cluster-result/1`: one process for each pool with a track for each of its nodes, which
/// shows the jobs there, and one process "queue" with a track for each owner, which shows the jobs that wait.
std::string cluster_trace(const documents::ClusterResult& result);

/// The trace of rows of `allreduce --format json` that have "spans", each of which is [source, destination, round,
/// bytes, start in seconds, end in seconds]: one process for each row, one track for each sender. Endpoints from
/// `ranks` on are switches.
std::string collectives_trace(const Json& rows, int ranks);

}  // namespace ganymede::exports

#pragma once
// Spans of time as a Chrome trace (the JSON object format of the Trace Event Format), which ui.perfetto.dev opens.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "documents/cluster_result.hpp"
#include "documents/result.hpp"

namespace ganymede::exports {

struct TimelineSpan {
  std::string process;  ///< the viewer groups the tracks of a process
  int track = 0;        ///< place among the tracks of its process
  std::string track_name;
  std::string name;
  Seconds start, end;  ///< end >= start; a span without length is drawn as an instant
  std::vector<std::pair<std::string, std::string>> details;
};

/// Returns the trace as JSON. Spans of one track must not overlap in this format: those that do are placed on further
/// tracks of the same name.
std::string chrome_trace(const std::vector<TimelineSpan>& spans);

// Traces of simulated and rehearsed runs, and of clusters, which ui.perfetto.dev opens.

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

#pragma once
// A simulated run as a Chrome trace, which ui.perfetto.dev opens.

#include <string>

#include "common/json_fwd.hpp"
#include "documents/result.hpp"

namespace ganymede::exports {

/// The trace of a `ganymede.result/1`: one process "cluster" with a track for the run's events and one for each pool,
/// and one process for each worker with the steps of `step_spans`: its computation, its collectives, its input
/// pipeline. Those steps are placed at the moment when training begins.
std::string run_trace(const documents::Result& run);

/// The trace of a `ganymede.rehearsal/1`: the clusters of both lives, "predicted" over "measured", from one moment on.
std::string rehearsal_trace(const Json& rehearsal);

}  // namespace ganymede::exports

#pragma once
// The messages of timed collectives as a Chrome trace, which ui.perfetto.dev opens.

#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::exports {

/// The trace of rows of `allreduce --format json` that have "spans", each of which is [source, destination, round,
/// bytes, start in seconds, end in seconds]: one process for each row, one track for each sender. Endpoints from
/// `ranks` on are switches.
std::string collectives_trace(const Json& rows, int ranks);

}  // namespace ganymede::exports

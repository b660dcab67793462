#pragma once
// Tables of what `ganymede calibrate` recorded, at most `width` columns wide (report/table.hpp).

#include <string>

#include "report/wrap.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::cli {

/// The device's limits, then for each batch size its phases, memory by kind and mean utilization.
std::string phase_table(const StepTrace& trace, std::size_t width = kAnyWidth);
/// What a fit over the batch sizes says, and how well it predicts each of them from the others.
std::string fit_table(const StepTrace& trace, std::size_t width = kAnyWidth);

}  // namespace ganymede::cli

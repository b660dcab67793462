#pragma once
// Recorded traces as tables that fit `width` columns (report/table.hpp).

#include <string>

#include "report/wrap.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::cli {

/// Returns the device's limits, then for each batch size its phases, memory by kind and mean utilization.
std::string phase_table(const traces::StepTrace& trace, std::size_t width = report::kAnyWidth);
/// Returns the fit over the batch sizes, and how well it predicts each of them from the others.
std::string fit_table(const traces::StepTrace& trace, std::size_t width = report::kAnyWidth);

}  // namespace ganymede::cli

#pragma once
// Recorded traces for people: tables that fit `width` columns (report/table.hpp), and how far they can be trusted.

#include <string>

#include "report/table.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// The device's limits, then for each batch size its phases, memory by kind and mean utilization.
std::string phase_table(const traces::StepTrace& trace, std::size_t width = report::kAnyWidth);
/// The fit over the batch sizes, and how well it predicts each of them from the others.
std::string fit_table(const traces::StepTrace& trace, std::size_t width = report::kAnyWidth);

/// The mean number of threads that waited for a processor while `batch` was recorded; 0 if the trace does not say.
double mean_waiting_threads(const traces::TraceBatch& batch);
/// A warning for each batch size whose steps vary so much that their mean is of no use.
std::string noise_warning(const traces::StepTrace& trace);
/// The text to write into a platform file for the device; empty if some catalog has it.
std::string gpu_entry(const traces::TraceDevice& device);

}  // namespace ganymede::calibration

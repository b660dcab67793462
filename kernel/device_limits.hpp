#pragma once
// Measures what a device can do at best: the limits that a step trace records of it.

#include <filesystem>
#include <optional>

#include "kernel/ops/backend.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Measures the rate of matrix products and of copies in device memory, with growing sizes and the best of several runs
/// each; takes less than a second. On a GPU the products have the precision of its training.
traces::TraceDevice measure_device(const Backend& backend);

/// Measures what `calibrate` needs besides: the rate of a DCGAN's convolution, the time between the starts of two of
/// the smallest operations, and the copy from the host's memory; takes another second.
void measure_details(TensorOps& ops, traces::TraceDevice& device);

/// Measures the copy from the host's memory, pinned for a GPU, to the device's.
BytesPerSecond measure_host_copy(TensorOps& ops);

/// Measures reading a temporary file of 96 MiB in `folder` that is dropped from the system's cache first. Returns
/// nothing if the folder cannot be written to or has no room.
std::optional<BytesPerSecond> measure_storage_read(const std::filesystem::path& folder);

/// Memory that this process may use: the machine's, or less if its control group has a limit.
Bytes host_memory();

}  // namespace ganymede::kernel

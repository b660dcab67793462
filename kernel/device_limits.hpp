#pragma once
// What the device can do at best, measured, not taken from a data sheet.

#include <filesystem>
#include <optional>

#include "kernel/ops/backend.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Products and copies of growing size, the best of several each; below a second. On a GPU the products are in the
/// precision of its training.
TraceDevice measure_device(const Backend& backend);

/// What else `calibrate` wants to know of it: the rate of a convolution as DCGANs have it, the time between the starts
/// of two of the smallest operations, the copy from the host's memory; a second more.
void measure_details(TensorOps& ops, TraceDevice& device);

/// Reading a file of some 100 MB in `folder` that was written for it and dropped from the system's cache. None where
/// the folder cannot be written or has no room.
std::optional<BytesPerSecond> measure_storage_read(const std::filesystem::path& folder);

/// Memory that this process may use: the machine's or its control group's.
Bytes host_memory();

}  // namespace ganymede::kernel

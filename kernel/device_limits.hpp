#pragma once
// What the device can do at best, measured, not taken from a data sheet.

#include "kernel/ops.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Products and copies of growing size, the best of several each; below a second. On a GPU the products are in the
/// precision of its training.
TraceDevice measure_device(Ops& ops);

/// Memory that this process may use: the machine's or its control group's.
Bytes host_memory();

}  // namespace ganymede::kernel

#pragma once
// What the device can do at best, measured, not taken from a data sheet.

#include "kernel/ops.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// A short product and a copy, the best of several each; below half a second.
TraceDevice measure_device(Ops& ops);

/// Memory that this process may use: the machine's or its control group's.
Bytes host_memory();

}  // namespace ganymede::kernel

#pragma once
// Step traces (documents/step_trace.hpp) by short names.

#include "documents/step_trace.hpp"

namespace ganymede::traces {

using documents::CarriedBatch;
using documents::kStepTraceSchema;
using documents::load_step_trace;
using documents::read_step_trace;
using documents::StepTrace;
using documents::TraceBatch;
using documents::TraceBucket;
using documents::TraceDevice;
using documents::TraceKernel;
using documents::TraceNetwork;
using documents::TracePhase;
using documents::TraceSoftware;
using documents::TraceUtilization;
using documents::write_step_trace;

}  // namespace ganymede::traces

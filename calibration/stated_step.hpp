#pragma once
// A step that somebody measured by hand: "0.11 s at batch 128 on an RTX 3090". With the kernels of the model it becomes
// a trace of one step, which is carried to other GPUs by the model of kernel times.

#include <string>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// TraceSoftware::backend of a trace whose only step was stated.
inline constexpr const char* kStatedBackend = "stated by the user";

struct StatedStep {
  Seconds step;
  int batch = 0;    ///< images of the step, on one GPU
  std::string gpu;  ///< its name in the table of data sheets
};

/// Half of the 95 % interval of how far a stated step may be off, relative: an assumption, because nobody knows whether
/// warm-up, evaluation and saving were left out of it.
inline constexpr double kStatedError = 0.1;

/// Reads { "step": "0.11s", "batch": 128, "gpu": "RTX3090" }; "images_per_second" may stand in place of "step". Throws
/// ConfigError, for a GPU that is not known with the nearest name.
StatedStep read_stated_step(const JsonNode& node);

/// The trace of `model` as if its only recorded step were the stated one. Its phases share the step as the model of
/// kernel times says. Throws ConfigError, located at `at`, if the trace lists no kernels or is of a growing model.
traces::StepTrace with_stated_step(traces::StepTrace model, const StatedStep& stated, const JsonNode& at);

/// True for traces that with_stated_step() made.
bool is_stated(const traces::StepTrace& trace);

/// "a step of 110 ms at batch 128 on RTX3090, measured (stated by the user)". Precondition: is_stated(trace).
std::string stated_text(const traces::StepTrace& trace);

}  // namespace ganymede::calibration

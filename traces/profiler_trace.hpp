#pragma once
// Makes a step trace from a PyTorch profiler trace: what one GPU computes in each phase of a step, without the time in
// which it waits for others, and what it sends.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/layer_list.hpp"
#include "traces/profiler_steps.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::traces {

/// `software.backend` of a step trace that was made from a profiler trace.
inline constexpr std::string_view kProfilerBackend = "profiler";

struct ProfilerOptions {
  int batch = 0;  ///< images per GPU and step, which the trace does not say
  std::string model;
  RooflineDevice device;            ///< the recorded GPU, under the name that platforms give it
  std::int64_t parameters = 0;      ///< number of trainable parameters; 0: as many as the all-reduces carry
  std::optional<LayerList> layers;  ///< for FLOPs and bytes; without it a trace can predict only its own device
};

struct ProfilerImport {
  StepTrace trace;
  ProfilerBreakdown mean;
  std::size_t steps = 0;
  std::vector<std::string> notes;  ///< messages about what could not be attributed, and other cautions
};

/// Phases are the outermost annotations of the thread that calls step(). A kernel belongs to the phase in which the
/// host launched it, or to the one before if it was launched between two. Time in which a collective runs and nothing
/// is computed is removed, because the simulation adds its own. Steps whose phases come in another order than in most
/// steps are left out. Throws ConfigError if no step has a kernel, or if there are neither collectives nor
/// `parameters`.
ProfilerImport import_profiler(const ProfilerEvents& events, const ProfilerOptions& options);

}  // namespace ganymede::traces

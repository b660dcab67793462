#pragma once
// From the events of a PyTorch profiler trace to a step trace: what one GPU computes in each phase of a step, without
// waiting for others, and what it sends.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/layer_list.hpp"
#include "traces/profiler_events.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

/// `software.backend` of such a trace.
inline constexpr std::string_view kProfilerBackend = "profiler";

struct ProfilerOptions {
  int batch = 0;  ///< images a GPU and step, which the trace does not say
  std::string model;
  RooflineDevice device;            ///< its name is what a platform calls the GPU that was recorded
  std::int64_t parameters = 0;      ///< trainable; 0: as the all-reduces say
  std::optional<LayerList> layers;  ///< gives FLOPs and bytes, without which a trace predicts its own device alone
};

/// Of a mean step of those kept, seconds.
struct ProfilerBreakdown {
  double step = 0, compute = 0;
  double exposed = 0, overlapped = 0;  ///< collectives beside which nothing, or something, is computed
  double copies = 0;                   ///< to and from the host, beside which nothing else runs
  double idle = 0;
  double unattributed = 0;  ///< share of `compute` launched outside any annotation
};

struct ProfilerImport {
  StepTrace trace;
  ProfilerBreakdown mean;
  std::size_t steps = 0, left_out = 0;
  std::vector<std::string> notes;  ///< what could not be attributed, and what to beware of
};

/// Phases are the outermost annotations of the thread that calls step(), by when the host launched each kernel; kernels
/// launched outside them count to the phase before. Time in which a collective runs and nothing is computed is taken
/// out: the simulation puts its own there. Steps whose phases come in another order than in most are left out.
/// ConfigError: fewer than two steps alike, no kernel in any of them, no collectives and no `parameters`.
ProfilerImport import_profiler(const ProfilerEvents& events, const ProfilerOptions& options);

}  // namespace ganymede

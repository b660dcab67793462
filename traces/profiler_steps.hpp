#pragma once
// Divides the GPU's time of a profiler trace into steps, and each step into phases.

#include <string>
#include <vector>

#include "traces/profiler_events.hpp"

namespace ganymede::traces {

/// The parts of the mean of the steps that are kept, in seconds.
struct ProfilerBreakdown {
  double step = 0, compute = 0;
  double exposed = 0, overlapped = 0;  ///< collectives without and with computation at the same time
  double copies = 0;                   ///< copies to and from the host while nothing else runs
  double idle = 0;
  double unattributed = 0;  ///< share of `compute` that was launched outside of any annotation
};

struct ProfilerPhase : ProfilerSpan {
  std::string name;
  std::int64_t launches = 0;
};

struct ProfilerGpuStep {
  double start = 0, wall = 0;  ///< seconds: when the GPU begins this step, and how long until it begins the next
  std::vector<const ProfilerGpuEvent*> events;  ///< in the order in which the host launched them
  std::vector<std::size_t> phase_of;            ///< of those of `events` that compute, in their order
  std::vector<ProfilerPhase> phases;
  std::vector<ProfilerSpan> exposed;
  ProfilerBreakdown breakdown;

  /// The names of its phases, one a line.
  std::string order() const;
  /// Seconds of exposed communication in this step before the given time.
  double exposed_before(double time) const;
};

/// The places of the kernel with which steps begin among the kernels of one stream, in the order in which they ran;
/// none if nothing repeats.
std::vector<std::size_t> step_begins(std::vector<const ProfilerGpuEvent*> kernels);

/// Makes the steps of a trace that marks none, or that does not say when the host launched the kernels, so that the
/// host's marks tell nothing of a GPU that lags: those in which the kernels of the stream that computes longest repeat,
/// but for the last one, whose end is not known. Where nothing repeats, or not as often as steps are marked, the marks
/// stay, else the trace as a whole is the step. Sets `steps` and `steps_are`.
void find_steps(ProfilerEvents& events);

/// The outermost annotations of the thread that calls step(), by time.
std::vector<ProfilerAnnotation> outermost_annotations(const ProfilerEvents& events);

/// The steps that compute something. A step begins with its first event on the stream that computes longest, and lasts
/// until the next one begins there: a GPU that lags its host works on one step while copies and kernels of the next
/// ones run on other streams. All steps sum to the time from the first one's begin to the last one's end. That is when
/// both its work on the stream and the host's step are over, and a GPU that takes as long as on average to begin the
/// next one would do so.
std::vector<ProfilerGpuStep> gpu_steps(const ProfilerEvents& events, const std::vector<ProfilerAnnotation>& outer);

}  // namespace ganymede::traces

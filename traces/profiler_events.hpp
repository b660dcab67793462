#pragma once
// The events of a PyTorch profiler trace (Kineto's Chrome trace), plain or gzipped, read as a stream: of gigabytes of
// text only what a step trace needs is kept, some fifty bytes an event of the GPU.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ganymede {

/// Times in seconds, on the trace's own clock.
struct ProfilerSpan {
  double start = 0, end = 0;
};

struct ProfilerStep : ProfilerSpan {
  std::int64_t number = 0;
  std::string thread;
};

/// A named stretch of a host thread: record_function.
struct ProfilerAnnotation : ProfilerSpan {
  std::string name, thread;
};

struct ProfilerGpuEvent : ProfilerSpan {
  enum class Kind : std::uint8_t { compute, collective, copy_in, copy_out };
  Kind kind = Kind::compute;
  std::int64_t stream = 0;
  double launched = -1;    ///< when the host launched it; negative: not recorded
  std::int64_t bytes = 0;  ///< of a collective's message, of a copy; 0: not recorded
  std::int32_t what = -1;  ///< of a collective: an index into `collectives`
};

struct ProfilerEvents {
  std::string file, device;  ///< the first GPU's name; may be empty
  int rank = 0, ranks = 1;
  std::vector<ProfilerStep> steps;              ///< by time
  std::vector<ProfilerAnnotation> annotations;  ///< by time; steps and the profiler's own left out
  std::vector<ProfilerGpuEvent> gpu;            ///< by time
  std::vector<std::string> collectives;         ///< kinds seen: "allreduce RING_LL"
  std::int64_t events = 0;                      ///< in the file
};

/// ConfigError with the file and, where it applies, the byte: not JSON, truncated, no "traceEvents", no steps
/// ("ProfilerStep#"), no events of a GPU.
/// `progress` hears how many bytes of the file, as it is stored, have been read.
ProfilerEvents read_profiler_events(const std::filesystem::path& file,
                                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace ganymede

#pragma once
// Reads the events of a PyTorch profiler trace (Kineto's Chrome trace), plain or gzipped. The file is read as a stream,
// because it may be gigabytes long; some fifty bytes are kept for each GPU event.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ganymede::traces {

/// A stretch of time in seconds, by the trace's own clock.
struct ProfilerSpan {
  double start = 0, end = 0;
};

struct ProfilerStep : ProfilerSpan {
  std::int64_t number = 0;
  std::string thread;
};

/// A named stretch of time of a host thread, as record_function() writes it.
struct ProfilerAnnotation : ProfilerSpan {
  std::string name, thread;
};

struct ProfilerGpuEvent : ProfilerSpan {
  enum class Kind : std::uint8_t { compute, collective, copy_in, copy_out };
  Kind kind = Kind::compute;
  bool matrix = false;  ///< by its name it is a convolution or a product, or a part of one
  std::int64_t stream = 0;
  double launched = -1;    ///< when the host launched it, in seconds; negative: unknown
  std::int64_t bytes = 0;  ///< size of a collective's message or of a copy; 0: unknown
  std::int32_t what = -1;  ///< index into `collectives`; -1: not a collective
  std::uint32_t name = 0;  ///< a hash of its name
};

struct ProfilerEvents {
  /// What the steps are: those that the trace marks, those in which the kernels repeat (where none is marked, or where
  /// marks of the host tell nothing of the GPU, because no launch is known), or the trace as one step.
  enum class Steps : std::uint8_t { marked, repeated, repeated_unlaunched, whole };
  std::string file, device;  ///< the first GPU's name; may be empty
  int rank = 0, ranks = 1;
  int gpus = 1;            ///< with events; those of the one that is busiest are kept
  bool cut_short = false;  ///< the file ends before its content does
  Steps steps_are = Steps::marked;
  std::vector<ProfilerStep> steps;              ///< by time
  std::vector<ProfilerAnnotation> annotations;  ///< by time, without steps and the profiler's own
  std::vector<ProfilerGpuEvent> gpu;            ///< by time
  std::vector<std::string> collectives;         ///< kinds that occur: "allreduce RING_LL"
  std::int64_t events = 0;                      ///< number of events in the file
};

/// The traces that are named: a file itself, or those in a folder, by name, as TensorBoard's handler writes one for
/// each rank. Throws ConfigError if the folder has none.
std::vector<std::string> profiler_files(const std::string& path);

/// Reads a trace: of Kineto, as an object or as a bare list of events, or of the profiler of PyTorch before 1.8. A file
/// that is cut short is read as far as it goes. Throws ConfigError with the file and, where known, the byte if it is
/// not JSON, or has no events of a GPU. `progress` is called with the number of bytes of the stored file that have been
/// read. At most `max_size` bytes may be in it once it is inflated; 0: 64 MiB and 100 times its size.
ProfilerEvents read_profiler_events(const std::filesystem::path& file,
                                    const std::function<void(std::int64_t)>& progress = {}, std::int64_t max_size = 0);

}  // namespace ganymede::traces

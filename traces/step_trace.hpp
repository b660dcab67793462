#pragma once
// The step trace, `ganymede.step-trace/1`: what a real training did, step by step, on one device. The kernel writes it,
// calibration reads it, nothing else carries measurements into a simulation. docs/step-trace.md describes the file.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/units.hpp"

namespace ganymede {

/// The device a trace was recorded on. Limits are what was measured on it, not its data sheet.
struct TraceDevice {
  std::string name;                 ///< "AMD EPYC, 2 threads" or "V100": compared with the GPU names of a platform
  std::string kind;                 ///< "cpu" or "gpu"
  int threads = 1;                  ///< host threads that the kernel used
  FlopsPerSecond fp32;              ///< best measured dense fp32 rate
  BytesPerSecond memory_bandwidth;  ///< measured copy bandwidth (bytes read + bytes written per second)
  Bytes memory;
  // Measured too by `calibrate`; absent: not measured.
  std::optional<FlopsPerSecond> convolution = {};   ///< of a layer of a DCGAN
  std::optional<Seconds> launch = {};               ///< between the starts of two of the smallest operations
  std::optional<BytesPerSecond> host_copy = {};     ///< from the host's memory to the device's
  std::optional<BytesPerSecond> storage_read = {};  ///< of a file that no cache holds
};

/// Whose step it was: "ganymede" or "PyTorch", its version and the backend that ran ("eigen", "cuda").
struct TraceSoftware {
  std::string name;
  std::string version;
  std::string backend;
};

struct TraceNetwork {
  std::int64_t parameters = 0;  ///< trainable
  /// In one whole step, divided by the batch; matrix work, a multiply-add is 2. Of all phases that name the network:
  /// the generator's include the passes through the discriminator in its update.
  double flops_per_image = 0;
  std::int64_t gradient_bytes = 0;  ///< what one replica contributes to the all-reduce
};

/// One timed part of the step. Vectors are index-aligned: entry i is step i after warm-up.
struct TracePhase {
  std::string name;     ///< unique within a batch entry: "discriminator.backward"
  std::string network;  ///< "generator", "discriminator", or "" for phases of neither (load, copy)
  std::string
      stream;  ///< "compute": on the device, in order; "host": input work that a prefetch queue may hide; "copy"
  std::vector<double> start_s;  ///< from the step's start
  std::vector<double> seconds;
  std::vector<double>
      host_s;             ///< host time inside the phase that is not the device's own work (launching, bookkeeping)
  double flops = 0;       ///< work of one step; matrix work
  double bytes_read = 0;  ///< minimal traffic of its kernels with device memory
  double bytes_written = 0;
  std::int64_t launches = 0;  ///< kernels launched
};

/// Gradients that are reduced together. Listed in the order in which they become ready.
struct TraceBucket {
  std::string network;
  std::int64_t bytes = 0;
  std::string after_phase;    ///< the phase that produces it
  double ready_fraction = 1;  ///< share of that phase's time after which it is ready, (0, 1]
  /// The phase that needs it reduced; empty: the first of its network after the last bucket of that. Said where a step
  /// updates a network several times.
  std::string before_phase = {};
};

struct TraceUtilization {
  double interval_s = 0;                               ///< between samples
  std::map<std::string, std::vector<double>> samples;  ///< "cpu": cores busy; "gpu": share busy; "memory_bytes" …
};

/// How an entry came about that nobody recorded. Never in a file.
struct CarriedBatch {
  std::string rule;           ///< for people
  double relative_error = 0;  ///< 95 % half-width, of the step
  std::vector<std::string> warnings;
};

struct TraceBatch {
  int batch = 0;  ///< images a step
  int warmup_steps_dropped = 0;
  std::string stage;                           ///< where the model grows; else empty
  std::map<std::string, double> memory_bytes;  ///< by kind: parameters, gradients, optimizer, activations, data …
  std::vector<double> wall_s;                  ///< one a step
  std::vector<TracePhase> phases;              ///< in the order of their start
  std::vector<TraceBucket> buckets;
  std::optional<TraceUtilization> utilization;
  std::optional<CarriedBatch> carried;  ///< none: recorded
};

struct StepTrace {
  TraceDevice device;
  TraceSoftware software;
  std::string model;
  std::string precision = "fp32";
  std::uint64_t seed = 0;
  std::string recorded_at;  ///< UTC date and time, for the reader
  /// "parallel": each replica has a host thread of its own. "serial": one host process drives all replicas of a node
  /// and its host work for them queues (TensorFlow's MirroredStrategy), which makes multi-GPU speed-ups of small models
  /// sublinear.
  std::string host = "parallel";
  std::map<std::string, TraceNetwork> networks;
  std::vector<TraceBatch> batches;

  /// The entry of that batch size, of a growing model its last stage's; or nullptr.
  const TraceBatch* find_batch(int batch) const;
};

inline constexpr const char* kStepTraceSchema = "ganymede.step-trace/1";

/// Reads and validates: ConfigError with file and pointer on anything that contradicts itself (unaligned lengths, a
/// bucket after a phase that is not there, negative or non-finite times, phases that outlast their step).
StepTrace load_step_trace(const std::filesystem::path& file);
StepTrace read_step_trace(const JsonNode& node);

/// The file's text; `load_step_trace` gives back an equal trace.
std::string write_step_trace(const StepTrace& trace);

}  // namespace ganymede

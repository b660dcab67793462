#pragma once
// The step trace, `ganymede.step-trace/1`: what a real training did, step by step, on one device. The kernel writes it
// and calibration reads it; nothing else carries measurements into a simulation. docs/step-trace.md describes the file.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "traces/kernel_list.hpp"

namespace ganymede::traces {

/// The device on which a trace was recorded. Its limits were measured on it, not taken from a data sheet.
struct TraceDevice {
  std::string name;                 ///< "AMD EPYC, 2 threads" or "V100"; compared with a platform's names of GPUs
  std::string kind;                 ///< "cpu" or "gpu"
  int threads = 1;                  ///< host threads that the kernel used
  FlopsPerSecond fp32;              ///< best measured dense fp32 rate
  BytesPerSecond memory_bandwidth;  ///< measured copy bandwidth (bytes read + bytes written per second)
  Bytes memory;
  // `calibrate` measures these too; absent: not measured.
  std::optional<FlopsPerSecond> convolution = {};   ///< rate of a DCGAN's convolution
  std::optional<Seconds> launch = {};               ///< time between the starts of two of the smallest operations
  std::optional<BytesPerSecond> host_copy = {};     ///< from the host's memory to the device's
  std::optional<BytesPerSecond> storage_read = {};  ///< rate of reading a file that no cache holds
};

/// The software that ran the step: "ganymede" or "PyTorch", its version, and the backend ("eigen", "cuda").
struct TraceSoftware {
  std::string name;
  std::string version;
  std::string backend;
};

struct TraceNetwork {
  std::int64_t parameters = 0;  ///< number of trainable parameters
  /// Matrix work of one whole step divided by the batch, where a multiply-add is 2. It sums over all phases of this
  /// network: the generator's include the passes through the discriminator in the generator's update.
  double flops_per_image = 0;
  std::int64_t gradient_bytes = 0;  ///< size of the gradients that one replica reduces in a step
};

/// One timed part of the step. Entry i of each vector belongs to step i after the warm-up.
struct TracePhase {
  std::string name;     ///< unique within a batch entry: "discriminator.backward"
  std::string network;  ///< "generator", "discriminator", or "" for phases without a network (load, copy)
  /// Where it runs: "compute" (on the device, in order), "host" (input work, which a prefetch queue may hide) or "copy"
  /// (from the host to the device).
  std::string stream;
  std::vector<double> start_s;  ///< since the step's start
  std::vector<double> seconds;
  std::vector<double> host_s;  ///< host time in the phase beside the device's work: launching, bookkeeping
  double flops = 0;            ///< matrix work in one step
  double bytes_read = 0;       ///< least number of bytes that its kernels must read from device memory in one step
  double bytes_written = 0;    ///< the same for writing
  std::int64_t launches = 0;   ///< kernels launched in one step
};

/// Gradients that are reduced together. Buckets are listed in the order in which they become ready.
struct TraceBucket {
  std::string network;
  std::int64_t bytes = 0;
  std::string after_phase;    ///< the phase that computes these gradients
  double ready_fraction = 1;  ///< share of that phase's time after which they are ready, in (0, 1]
  /// The phase that needs them reduced. Empty: the first phase of the same network after its last bucket; a step that
  /// updates a network several times must say it.
  std::string before_phase = {};
};

struct TraceUtilization {
  double interval_s = 0;  ///< time between two samples
  /// By kind: "cpu" (busy cores), "gpu" (share of the time busy), "memory_bytes" and others.
  std::map<std::string, std::vector<double>> samples;
};

/// How an entry that was not recorded was computed. It is never written to a file.
struct CarriedBatch {
  std::string rule;           ///< in words, for people
  double relative_error = 0;  ///< half-width of the 95 % interval of the step time, relative
  std::vector<std::string> warnings;
};

struct TraceBatch {
  int batch = 0;  ///< images per step
  int warmup_steps_dropped = 0;
  std::string stage;                           ///< of a growing model, for example "16x16"; else empty
  std::map<std::string, double> memory_bytes;  ///< by kind: parameters, gradients, optimizer, activations, data …
  std::vector<double> wall_s;                  ///< wall time of each step
  std::vector<TracePhase> phases;              ///< in the order of their start
  std::vector<TraceBucket> buckets;
  std::optional<TraceUtilization> utilization;
  std::optional<CarriedBatch> carried;  ///< nothing if the entry was recorded
};

struct StepTrace {
  TraceDevice device;
  TraceSoftware software;
  std::string model;
  std::string precision = "fp32";
  std::uint64_t seed = 0;
  std::string recorded_at;  ///< UTC date and time, for people
  /// "parallel": each replica has a host thread of its own. "serial": one host process drives all replicas of a node,
  /// so that their host work queues (as in TensorFlow's MirroredStrategy), which makes multi-GPU speed-ups of small
  /// models sublinear.
  std::string host = "parallel";
  /// How the host launches kernels. "eager": one by one, as PyTorch does by default. "compiled": one by one, but
  /// kernels that only move data are fused, as torch.compile does. "graph": replayed together. Empty: eager for PyTorch
  /// and lists of layers, else graph.
  std::string executor;
  std::map<std::string, TraceNetwork> networks;
  std::vector<TraceKernel> kernels;  ///< for one image; may be empty: then phases alone say what was computed
  std::vector<TraceBatch> batches;

  /// The entry with that batch size (for a growing model that of the last stage), or nullptr.
  const TraceBatch* find_batch(int batch) const;
};

inline constexpr const char* kStepTraceSchema = "ganymede.step-trace/1";

/// Reads and checks a trace. Throws ConfigError with file and pointer for anything inconsistent: vectors of different
/// lengths, a bucket after an unknown phase, negative or non-finite times, phases that last longer than their step.
StepTrace load_step_trace(const std::filesystem::path& file);
StepTrace read_step_trace(const JsonNode& node);

/// The trace as a file's text, from which load_step_trace() reads an equal trace.
std::string write_step_trace(const StepTrace& trace);

}  // namespace ganymede::traces

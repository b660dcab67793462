#pragma once
// The step trace, `ganymede.step-trace/1`: what a real training did, step by step, on one device. The kernel writes it
// and calibration reads it; nothing else carries measurements into a simulation. docs/step-trace.md describes the file.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr const char* kStepTraceSchema = "ganymede.step-trace/1";

/// A kernel that a step launches on a GPU, with its shape for one image: what a model of kernel times needs to predict
/// a step on a GPU on which it never ran. Our own training lists its launches (kernel/launches.hpp), and a list of
/// layers those of PyTorch.
struct TraceKernel {
  static constexpr std::string_view kTypeName = "kernel";
  enum class Kind {
    convolution,
    convolution_data_gradient,  ///< also the forward pass of a transposed convolution
    convolution_weight_gradient,
    product,
    batched_product,
    elementwise,
    normalization,  ///< reductions too
    softmax,
  };
  /// The extent that is as many times as large for a batch as for one image. Convolutions grow by their batch, or by
  /// their groups, with the channels: then each image has filters of its own.
  enum class Growth { none, batch, m, n, k, rows, groups };

  std::string phase;  ///< of the step, as a trace names it
  std::string stage;  ///< of a growing model; else empty
  std::string layer;
  Kind kind = Kind::elementwise;
  Growth grows = Growth::rows;
  double times = 1;  ///< launches in a step; may be a mean over steps
  /// Seconds of a launch, where a profiler measured it at the only batch size of the trace; 0: not measured.
  double measured_s = 0;
  std::string precision;  ///< of products and convolutions, or size of the numbers moved; empty: that of the trace

  // Convolutions: the shape of the forward convolution, whatever the kind; extents are depth, height, width.
  std::int64_t in_channels = 1, out_channels = 1, groups = 1;
  bool channels_last = false;  ///< numbers of one pixel are next to each other, as tensor cores need them
  std::array<std::int64_t, 3> in = {1, 1, 1}, window = {1, 1, 1}, padding = {0, 0, 0}, stride = {1, 1, 1};

  // Products: `batch` times (m x k) by (k x n); a transposed operand is stored the other way round.
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transposed_a = false, transposed_b = false;

  // All others: `op` over rows x cols numbers, each of which it reads and writes so many times.
  std::string op;
  std::int64_t rows = 1, cols = 1;
  double reads = 1, writes = 1;
  double shared = 0;  ///< words of 32 bits in shared memory that each takes

  bool is_convolution() const { return kind <= Kind::convolution_weight_gradient; }
  bool is_product() const { return kind == Kind::product || kind == Kind::batched_product; }
  /// Number of elements of the result of the convolution along an extent (0 depth, 1 height, 2 width); may be 0 or less
  /// for a kernel that does not fit.
  std::int64_t out(std::size_t extent) const {
    return (in[extent] + 2 * padding[extent] - window[extent]) / stride[extent] + 1;
  }
  /// FLOPs of a launch over one image; a multiply-add is 2. 0 for kernels without matrix work.
  double flops() const;
  bool operator==(const TraceKernel&) const = default;
};

/// "convolution", "convolution-dgrad", …
std::string_view to_string(TraceKernel::Kind kind);

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

void describe(Walk& walk, TraceKernel& kernel);
void describe(Walk& walk, StepTrace& trace);

/// Reads a list of kernels. Throws ConfigError with file and pointer for an unknown kind, an extent below 1, or a
/// convolution whose output would be smaller than one.
std::vector<TraceKernel> read_kernels(const JsonNode& node);
OrderedJson kernels_json(const std::vector<TraceKernel>& kernels);

/// Reads and checks a trace. Throws ConfigError with file and pointer for anything inconsistent: vectors of different
/// lengths, a bucket after an unknown phase, negative or non-finite times, phases that last longer than their step.
StepTrace load_step_trace(const std::filesystem::path& file);
StepTrace read_step_trace(const JsonNode& node);
/// The trace as a file's text, from which load_step_trace() reads an equal trace.
std::string write_step_trace(const StepTrace& trace);

}  // namespace ganymede::documents

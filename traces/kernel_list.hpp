#pragma once
// The kernels that a step launches on a GPU, with their shapes for one image: what a model of kernel times needs to
// predict a step on a GPU on which it never ran. Our own training lists its launches (kernel/launches.hpp), and a list
// of layers those of PyTorch.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::traces {

struct TraceKernel {
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

std::string_view to_string(TraceKernel::Kind kind);  ///< "convolution", "convolution-dgrad", ...

/// Reads a list. Throws ConfigError with file and pointer for an unknown kind, an extent below 1, or a convolution
/// whose output would be smaller than one.
std::vector<TraceKernel> read_kernels(const JsonNode& node);
/// The list as JSON text, which read_kernels() reads as equal kernels.
std::string write_kernels(const std::vector<TraceKernel>& kernels);

}  // namespace ganymede::traces

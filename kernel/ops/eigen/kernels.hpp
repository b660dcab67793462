#pragma once
// The inner loops of the CPU backend. The same sources are compiled once for each level of the instruction set, because
// neither Eigen nor the compiler chooses at run time; the backend then uses the fastest level that the processor has.
//
// Every function works on a range of rows or elements, so that the caller can give ranges to threads. An element's sum
// has the same terms in the same order whatever the range, so results do not depend on the number of threads. Tensors
// are [features x batch] with the batch contiguous; a row is a feature.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/adam_rule.hpp"

namespace ganymede::kernel {

/// C [m x n] = A [m x k] B [k x n] (+ C if accumulate). A(i, j) is a[i * a_row + j * a_column]; rows of B and C are
/// contiguous.
struct Product {
  const float* a;
  std::ptrdiff_t a_row, a_column;
  const float* b;
  std::ptrdiff_t b_row;
  float* c;
  std::ptrdiff_t c_row;
  int n, k;
  bool accumulate;
};

/// Most taps of a convolution.
inline constexpr int kMaxTaps = 64;

/// One element of a convolution kernel: its offset from the position that is computed.
struct Tap {
  int frame, row, column;
  std::ptrdiff_t a;  ///< index of the tap's first column in A; unused if GatherProduct::channels_outside
};

/// The input of a convolution. x is [channels x frames x height x width x batch]. For a tap, position (f, i, j) of the
/// grid reads x(f + tap.frame, i * step + tap.row, j * step + tap.column), which is zero beyond the edge.
struct Gather {
  const float* x;
  int channels, frames, height, width, batch;
  int grid_frames, grid_height, grid_width, step;
  const Tap* tap;
  int taps;
};

/// y(row, position) = sum over channels c and taps t of A(row, c, t) x(c, what the position reads for t)
struct GatherProduct {
  const float* a;
  std::ptrdiff_t a_row;
  bool channels_outside;  ///< columns of A are in the order (channel, tap); if false, a tap's columns begin at Tap::a
  int rows;
  float* y;  ///< [rows x grid_frames x y_height x y_width x batch]
  int y_height, y_width;
  /// Position (f, i, j) of the grid is position (f, i * y_step + y_row, j * y_step + y_column) of y.
  int y_step, y_row, y_column;
};

/// d_weight(row, c, t) (+)= sum over positions and batch of dy(row, position) x(c, what the position reads for t)
struct GatherWeights {
  const float* dy;  ///< [rows x positions x batch]
  float* d_weight;  ///< [rows x channels x taps]
  bool accumulate;
};

/// Floats of scratch memory for one gathered panel. gather_product needs one panel and gather_weights two; both also
/// need tile_columns floats for each row.
inline constexpr int kPanelScratch = 8192;

struct BatchNormRows {
  const float *scale, *shift;              ///< [features]
  float *mean, *inverse_deviation;         ///< [features], from the forward to the backward pass
  float *running_mean, *running_variance;  ///< [features]
  float momentum, epsilon, slope;
};

/// Adjoints (see op_parameters.hpp) of a batch norm's output and input, [features x batch]; dy may be null (zero).
struct BatchNormTangents {
  float *dx, *dx_dot;
  const float *dy, *dy_dot, *x_dot;
};

/// A channel of an instance norm: [positions x batch], with a mean and a deviation for each image.
struct InstanceNormRows {
  int positions, batch;
  float epsilon, slope;
};

/// The extents of a BlockShape without its channels, and the batch.
struct Blocks {
  int frames, height, width, batch;  ///< extents of the fine grid, and the batch
  int block_frames, block;
};

/// Floats of scratch memory that `product` needs for each thread.
inline constexpr int kProductScratch = 8192;

struct CpuKernels {
  const char* name;  ///< for example "AVX-512"

  /// Repeats a multiply-add on as many registers as hide its latency; returns the number of FLOPs. Measures the peak.
  double (*multiply_add)(std::int64_t repeats);
  /// Computes rows [row_begin, row_end) of C with kProductScratch floats of scratch memory.
  void (*product)(const Product& product, int row_begin, int row_end, float* scratch);
  /// out [columns x rows] = in [rows x columns]^T for rows [begin, end) of `in`.
  void (*transpose)(const float* in, float* out, int rows, int columns, int begin, int end);
  int tile_columns;  ///< columns of a tile in the next two functions
  /// Computes tiles [begin, end) of y; columns are positions x batch.
  void (*gather_product)(const Gather& gather, const GatherProduct& product, int begin, int end, float* scratch);
  /// Computes tiles [begin, end) of d_weight, whose columns are channels x taps, for rows [row_begin, row_end).
  void (*gather_weights)(const Gather& gather, const GatherWeights& product, int begin, int end, int row_begin,
                         int row_end, float* scratch);
  /// Adds bias[r] to every element of row r.
  void (*add_bias)(float* x, const float* bias, int batch, int begin, int end);
  /// sums[r] = (accumulate ? sums[r] : 0) + sum over the batch of x[r].
  void (*row_sums)(const float* x, float* sums, int batch, bool accumulate, int begin, int end);

  /// y = leaky(scale (x - mean) / deviation + shift) with the batch's statistics, towards which the running ones move.
  void (*batch_norm_forward)(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end);
  /// The same with the running statistics, which it leaves unchanged.
  void (*batch_norm_inference)(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end);
  /// In place: dy becomes dx. Writes the gradients of scale and shift unless they are null; adds them to the present
  /// values if `accumulate`.
  void (*batch_norm_backward)(float* dy, const float* x, const BatchNormRows& rows, float* d_scale, float* d_shift,
                              bool accumulate, int batch, int begin, int end);

  // As TensorOps::batch_norm_leaky_tangent and its backward pass.
  void (*batch_norm_tangent)(float* y_dot, const float* x_dot, const float* x, const BatchNormRows& rows, int batch,
                             int begin, int end);
  void (*batch_norm_tangent_backward)(const BatchNormTangents& tangents, const float* x, const BatchNormRows& rows,
                                      float* d_scale, float* d_shift, bool accumulate, int batch, int begin, int end);

  // As the operations of TensorOps of these names, for elements [begin, end); inverse_keep is 1 / keep.
  void (*leaky_dropout_forward)(float* x, const std::uint8_t* mask, float inverse_keep, float slope, std::size_t begin,
                                std::size_t end);
  void (*leaky_dropout_backward)(float* dy, const float* y, const std::uint8_t* mask, float inverse_keep, float slope,
                                 std::size_t begin, std::size_t end);
  void (*leaky_forward)(float* x, float slope, std::size_t begin, std::size_t end);
  void (*leaky_backward)(float* dy, const float* y, float slope, std::size_t begin, std::size_t end);
  void (*tanh_forward)(float* x, std::size_t begin, std::size_t end);
  void (*tanh_backward)(float* dy, const float* y, std::size_t begin, std::size_t end);
  void (*sigmoid_forward)(float* x, std::size_t begin, std::size_t end);
  void (*sigmoid_backward)(float* dy, const float* y, std::size_t begin, std::size_t end);
  // Ranges [begin, end): channels for bias_leaky and instance_norm, columns of [channels x length] for pixel_norm, rows
  // of the coarse grid [channels x frames x height] for pool and upsample.
  void (*bias_leaky_forward)(float* x, const float* bias, float factor, float slope, int length, int begin, int end);
  void (*bias_leaky_backward)(float* dy, const float* y, float* d_bias, float factor, float slope, bool accumulate,
                              int length, int begin, int end);
  // The moments are [channels x batch].
  void (*instance_norm_forward)(const float* x, float* y, float* mean, float* inverse_deviation,
                                const InstanceNormRows& rows, int begin, int end);
  void (*instance_norm_backward)(float* dy, const float* x, const float* mean, const float* inverse_deviation,
                                 const InstanceNormRows& rows, int begin, int end);
  void (*pixel_norm_forward)(float* x, float* scale, int channels, float epsilon, int length, int begin, int end);
  void (*pixel_norm_backward)(float* dy, const float* y, const float* scale, int channels, int length, int begin,
                              int end);
  void (*pool)(float* coarse, const float* fine, const Blocks& blocks, float factor, int begin, int end);
  void (*upsample)(float* fine, const float* coarse, const Blocks& blocks, float factor, int begin, int end);
  // As the operations of TensorOps of these names, for elements [begin, end).
  void (*combine)(float* y, float a, const float* x, float b, std::size_t begin, std::size_t end);
  void (*average)(float* average, const float* values, float decay, std::size_t begin, std::size_t end);
  void (*adam)(float* parameters, const float* gradients, float* first, float* second, const AdamRule& rule,
               std::size_t begin, std::size_t end);
};

/// The levels of instructions that this processor can run, the fastest first; never empty.
std::vector<const CpuKernels*> available_cpu_kernels();

// One definition for each compiled level (kernels.cpp). Call them only through available_cpu_kernels().
namespace baseline {
const CpuKernels& cpu_kernels();
}
namespace v3 {
const CpuKernels& cpu_kernels();
}
namespace v4 {
const CpuKernels& cpu_kernels();
}

}  // namespace ganymede::kernel

#pragma once
// The inner loops of the CPU backend. The same sources are compiled once for each level of the instruction set, because
// neither Eigen nor the compiler chooses at run time; the fastest that this processor has is picked when the backend is
// made.
//
// Every function works on a range of rows (or elements), so that the caller can hand ranges to threads. An element's
// sum runs over the same terms in the same order whatever the range: results do not depend on the number of threads.
// Tensors are [features x batch] with the batch contiguous ("row" = feature).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/adam_rule.hpp"

namespace ganymede::kernel {

/// C[m x n] = A[m x k] B[k x n] (+ C if accumulate). A(i, j) stands at a[i * a_row + j * a_column]; rows of B and C are
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

inline constexpr int kMostTaps = 64;

/// Where a kernel's element reads, beside a position.
struct Tap {
  int frame, row, column;
  std::ptrdiff_t a;  ///< where its weights begin in A, unless channels are outside
};

/// x [channels x frames x height x width x batch] seen from the positions of a grid through taps: position (f, i, j)
/// reads x(f + tap.frame, i * step + tap.row, j * step + tap.column), zero beyond the edge.
struct Gather {
  const float* x;
  int channels, frames, height, width, batch;
  int grid_frames, grid_height, grid_width, step;
  const Tap* tap;
  int taps;
};

/// y(row, position) = sum over channels c and taps t of A(row, c, t) x(c, position through t)
struct GatherProduct {
  const float* a;
  std::ptrdiff_t a_row;
  bool channels_outside;  ///< columns of A: (channel, tap); else those of each tap stand together, at Tap::a
  int rows;
  float* y;  ///< [rows x grid_frames x y_height x y_width x batch]
  int y_height, y_width;
  int y_step, y_row, y_column;  ///< position (f, i, j) is y's (f, i * y_step + y_row, j * y_step + y_column)
};

/// d_weight(row, c, t) (+)= sum over positions and batch of dy(row, position) x(c, position through t)
struct GatherWeights {
  const float* dy;  ///< [rows x positions x batch]
  float* d_weight;  ///< [rows x channels x taps]
  bool accumulate;
};

/// Floats of scratch space of a gathered panel; `gather_product` needs one and `gather_weights` two, and both
/// tile_columns for each row.
inline constexpr int kPanelScratch = 8192;

struct BatchNormRows {
  const float *scale, *shift;              ///< [features]
  float *mean, *inverse_deviation;         ///< [features], kept for the backward pass
  float *running_mean, *running_variance;  ///< [features]
  float momentum, epsilon, slope;
};

/// Adjoints (see Ops) of a batch norm's output and input, [features x batch]; dy may be null.
struct BatchNormTangents {
  float *dx, *dx_dot;
  const float *dy, *dy_dot, *x_dot;
};

/// As BlockShape, with the batch.
struct Blocks {
  int frames, height, width, batch;  ///< of the finer grid
  int block_frames, block;
};

/// Floats of scratch space that `product` needs for each thread.
inline constexpr int kProductScratch = 8192;

struct CpuKernels {
  const char* name;  ///< "AVX-512"

  /// `repeats` times a multiply-add on each of enough registers to hide its latency; how many FLOPs that was.
  double (*multiply_add)(std::int64_t repeats);
  void (*product)(const Product& product, int row_begin, int row_end, float* scratch);
  /// out[columns x rows] = in[rows x columns]^T for rows [begin, end) of `in`.
  void (*transpose)(const float* in, float* out, int rows, int columns, int begin, int end);
  int tile_columns;  ///< of the two below
  /// Tiles [begin, end) of the grid's positions x batch.
  void (*gather_product)(const Gather& gather, const GatherProduct& product, int begin, int end, float* scratch);
  /// Tiles [begin, end) of channels x taps, rows [row_begin, row_end).
  void (*gather_weights)(const Gather& gather, const GatherWeights& product, int begin, int end, int row_begin,
                         int row_end, float* scratch);
  void (*add_bias)(float* x, const float* bias, int batch, int begin, int end);
  /// sums[r] = (accumulate ? sums[r] : 0) + sum over the batch of x[r].
  void (*row_sums)(const float* x, float* sums, int batch, bool accumulate, int begin, int end);

  /// y = leaky(scale (x - mean) / deviation + shift) with the batch's statistics, which also enter the running ones.
  void (*batch_norm_forward)(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end);
  /// The same with the running statistics.
  void (*batch_norm_inference)(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end);
  /// Turns d loss / dy into d loss / dx in place; writes the gradients of scale and shift
  /// unless they are null, adding them to what is there if `accumulate`.
  void (*batch_norm_backward)(float* dy, const float* x, const BatchNormRows& rows, float* d_scale, float* d_shift,
                              bool accumulate, int batch, int begin, int end);

  void (*batch_norm_tangent)(float* y_dot, const float* x_dot, const float* x, const BatchNormRows& rows, int batch,
                             int begin, int end);
  void (*batch_norm_tangent_backward)(const BatchNormTangents& tangents, const float* x, const BatchNormRows& rows,
                                      float* d_scale, float* d_shift, bool accumulate, int batch, int begin, int end);

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
  // growing.inl: rows [begin, end) of [channels x length], columns [begin, end) of it, rows of the coarse grid.
  void (*bias_leaky_forward)(float* x, const float* bias, float factor, float slope, int length, int begin, int end);
  void (*bias_leaky_backward)(float* dy, const float* y, float* d_bias, float factor, float slope, bool accumulate,
                              int length, int begin, int end);
  void (*pixel_norm_forward)(float* x, float* scale, int channels, float epsilon, int length, int begin, int end);
  void (*pixel_norm_backward)(float* dy, const float* y, const float* scale, int channels, int length, int begin,
                              int end);
  void (*pool)(float* coarse, const float* fine, const Blocks& blocks, float factor, int begin, int end);
  void (*spread)(float* fine, const float* coarse, const Blocks& blocks, float factor, int begin, int end);
  void (*combine)(float* y, float a, const float* x, float b, std::size_t begin, std::size_t end);
  void (*average)(float* average, const float* values, float decay, std::size_t begin, std::size_t end);
  void (*adam)(float* parameters, const float* gradients, float* first, float* second, const AdamRule& rule,
               std::size_t begin, std::size_t end);
};

/// The sets that this processor can run, the fastest first.
std::vector<const CpuKernels*> available_cpu_kernels();

// Defined once a compiled level (kernels.cpp); available_cpu_kernels asks the processor which may be called.
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

#include <algorithm>
#include <array>

#include "kernel/ops/eigen/cpu_ops.hpp"

namespace ganymede::kernel {
namespace {

/// Most chunks of one loop. If there are more tiles, a chunk has several.
constexpr int kMaxChunks = 1 << 18;
constexpr int kTileRows = 6;

int divide_up(int value, int by) { return (value + by - 1) / by; }

/// Floats of one thread's scratch memory: two panels, and a tile's results for as many rows as a pass can have.
std::size_t scratch_floats(const ConvolutionShape& shape, const CpuKernels& kernels) {
  const int rows = std::max(shape.in_channels, shape.out_channels);
  return std::size_t{2} * kPanelScratch +
         static_cast<std::size_t>(rows) * static_cast<std::size_t>(kernels.tile_columns);
}

/// The taps of the forward pass.
std::array<Tap, kMaxTaps> taps_of(const ConvolutionShape& shape) {
  std::array<Tap, kMaxTaps> taps{};
  const int plane = shape.kernel * shape.kernel;
  for (int i = 0; i < shape.taps(); ++i)
    taps[static_cast<std::size_t>(i)] = {i / plane - shape.padding_frames, i % plane / shape.kernel - shape.padding,
                                         i % shape.kernel - shape.padding, 0};
  return taps;
}

}  // namespace

std::size_t CpuConvolution::workspace_floats(const ConvolutionShape& shape, const CpuKernels& kernels, int threads) {
  return shape.weights() + static_cast<std::size_t>(threads) * scratch_floats(shape, kernels);
}

float* CpuConvolution::scratch_of(int thread) const {
  return workspace_ + shape_.weights() + static_cast<std::size_t>(thread) * scratch_floats(shape_, kernels_);
}

Gather CpuConvolution::gather_of(Tensor x, const Tap* taps) const {
  return {.x = x.floats(),
          .channels = shape_.in_channels,
          .frames = shape_.in_frames,
          .height = shape_.in_height,
          .width = shape_.in_width,
          .batch = x.batch,
          .grid_frames = shape_.out_frames(),
          .grid_height = shape_.out_height(),
          .grid_width = shape_.out_width(),
          .step = shape_.stride,
          .tap = taps,
          .taps = shape_.taps()};
}

void CpuConvolution::over_tiles(const Gather& gather, const GatherProduct& product) const {
  const int tiles =
      divide_up(gather.grid_frames * gather.grid_height * gather.grid_width * gather.batch, kernels_.tile_columns);
  const int chunk = divide_up(tiles, kMaxChunks);
  pool_.run(divide_up(tiles, chunk), [&](int i, int thread) {
    kernels_.gather_product(gather, product, i * chunk, std::min(tiles, (i + 1) * chunk), scratch_of(thread));
  });
}

void CpuConvolution::forward(Tensor y, Tensor x, const float* weight) const {
  const auto taps = taps_of(shape_);
  const Gather gather = gather_of(x, taps.data());
  over_tiles(gather, {.a = weight,
                      .a_row = std::ptrdiff_t{shape_.in_channels} * gather.taps,
                      .channels_outside = true,
                      .rows = shape_.out_channels,
                      .y = y.floats(),
                      .y_height = shape_.out_height(),
                      .y_width = shape_.out_width(),
                      .y_step = 1,
                      .y_row = 0,
                      .y_column = 0});
}

// The pixels of dx are divided into stride x stride classes by their coordinates modulo the stride. The same taps reach
// all pixels of a class, so each class is computed as a separate convolution. This avoids scattered writes, and
// products with the zeros that one convolution over an enlarged dy would need.
void CpuConvolution::backward_data(Tensor dx, Tensor dy, const float* weight) const {
  // Transposes the weights to [in_channels x taps x out_channels], so that a tap's output channels are contiguous.
  const int columns = shape_.in_channels * shape_.taps();
  constexpr int kBlock = 16;  // the widest vector; narrower blocks are transposed element by element
  pool_.run(divide_up(shape_.out_channels, kBlock), [&](int i, int) {
    kernels_.transpose(weight, workspace_, shape_.out_channels, columns, i * kBlock,
                       std::min(shape_.out_channels, (i + 1) * kBlock));
  });
  for (int row = 0; row < std::min(shape_.stride, shape_.in_height); ++row)
    for (int column = 0; column < std::min(shape_.stride, shape_.in_width); ++column)
      backward_class(dx, dy, row, column);
}

void CpuConvolution::backward_class(Tensor dx, Tensor dy, int row, int column) const {
  std::array<Tap, kMaxTaps> taps{};
  int count = 0;
  // Pixel i * stride + row receives from output i + (row + padding - k) / stride for each k where that is an integer.
  const auto reaches = [&](int place, int k) { return (place + shape_.padding - k) % shape_.stride == 0; };
  for (int f = 0; f < shape_.kernel_frames; ++f)
    for (int i = 0; i < shape_.kernel; ++i)
      for (int j = 0; j < shape_.kernel; ++j)
        if (reaches(row, i) && reaches(column, j))
          taps[static_cast<std::size_t>(count++)] = {
              shape_.padding_frames - f, (row + shape_.padding - i) / shape_.stride,
              (column + shape_.padding - j) / shape_.stride,
              ((std::ptrdiff_t{f} * shape_.kernel + i) * shape_.kernel + j) * shape_.out_channels};
  const Gather gather{.x = dy.floats(),
                      .channels = shape_.out_channels,
                      .frames = shape_.out_frames(),
                      .height = shape_.out_height(),
                      .width = shape_.out_width(),
                      .batch = dy.batch,
                      .grid_frames = shape_.in_frames,
                      .grid_height = divide_up(shape_.in_height - row, shape_.stride),
                      .grid_width = divide_up(shape_.in_width - column, shape_.stride),
                      .step = 1,
                      .tap = taps.data(),
                      .taps = count};
  over_tiles(gather, {.a = workspace_,
                      .a_row = std::ptrdiff_t{shape_.taps()} * shape_.out_channels,
                      .channels_outside = false,
                      .rows = shape_.in_channels,
                      .y = dx.floats(),
                      .y_height = shape_.in_height,
                      .y_width = shape_.in_width,
                      .y_step = shape_.stride,
                      .y_row = row,
                      .y_column = column});
}

void CpuConvolution::backward_weights(float* d_weight, Tensor dy, Tensor x, bool accumulate) const {
  const auto taps = taps_of(shape_);
  const Gather gather = gather_of(x, taps.data());
  const GatherWeights weights{dy.floats(), d_weight, accumulate};
  const int across = divide_up(shape_.in_channels * gather.taps, kernels_.tile_columns);
  // If there are few tiles, they are also divided by rows, so that all threads have work, although each part must
  // gather again.
  const int pieces = 2 * pool_.threads(), all = shape_.out_channels;
  const int rows = across >= pieces ? all : std::min(all, divide_up(all, pieces * kTileRows) * kTileRows);
  const int down = divide_up(all, rows);
  pool_.run(across * down, [&](int i, int thread) {
    const int tile = i / down, begin = i % down * rows;
    kernels_.gather_weights(gather, weights, tile, tile + 1, begin, std::min(all, begin + rows), scratch_of(thread));
  });
}

}  // namespace ganymede::kernel

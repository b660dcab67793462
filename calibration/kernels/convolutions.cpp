#include <algorithm>
#include <array>

#include "calibration/kernels/candidates.hpp"

namespace ganymede::calibration {
namespace {

/// A convolution as numbers, for one group of its channels. For a data gradient `in` and `out` are exchanged, so that
/// the same algorithms apply.
struct Shape {
  double batch, in, out, groups, taps;
  double in_pixels, out_pixels;  // of one image and channel
  double out_h, out_w, filter_h, filter_w, width;
  double in_bytes, out_bytes, filter_bytes;
};

Shape shape_of(const Kernel& c) {
  Shape s{};
  s.batch = static_cast<double>(c.batch * (c.kernel_d == 1 ? c.out_d() : 1));
  s.groups = static_cast<double>(c.groups);
  s.in = static_cast<double>(c.in_channels) / s.groups, s.out = static_cast<double>(c.out_channels) / s.groups;
  s.filter_h = static_cast<double>(c.kernel_h), s.filter_w = static_cast<double>(c.kernel_w);
  s.taps = static_cast<double>(c.kernel_d) * s.filter_h * s.filter_w;
  s.in_pixels = static_cast<double>(c.in_d * c.in_h * c.in_w);
  s.out_pixels = static_cast<double>(c.out_d() * c.out_h() * c.out_w());
  s.out_h = static_cast<double>(c.out_h()), s.out_w = static_cast<double>(c.out_w());
  if (c.kind == KernelKind::kConvolutionDataGradient) {
    std::swap(s.in, s.out), std::swap(s.in_pixels, s.out_pixels);
    s.out_h = static_cast<double>(c.in_h), s.out_w = static_cast<double>(c.in_w);
  }
  s.width = static_cast<double>(bytes_per_number(c.precision));
  const double images = static_cast<double>(c.batch) * s.groups * s.width;
  s.in_bytes = images * s.in * s.in_pixels, s.out_bytes = images * s.out * s.out_pixels;
  s.filter_bytes = s.groups * s.in * s.out * s.taps * s.width;
  return s;
}

bool has_unit_stride(const Kernel& c) { return c.stride_d == 1 && c.stride_h == 1 && c.stride_w == 1; }
bool is_square_3x3(const Kernel& c) {
  return has_unit_stride(c) && c.kernel_d == 1 && c.kernel_h == 3 && c.kernel_w == 3;
}

/// Tensor cores read 16 bytes, eight numbers of a pixel's channels, at once. cuDNN fills up channels that are no
/// multiple of eight ("Tensor Ops Made Easier in cuDNN", NVIDIA, 2018; release notes of 7.6.3). Layers of fewer than
/// eight, such as colours, ran on the plain lanes of a V100 (DeepBench, cuDNN 7.6).
bool fills_tensor_cores(const Kernel& c) { return c.in_channels / c.groups >= 8 && c.out_channels / c.groups >= 8; }
double aligned(double channels) { return 8 * whole_above(channels / 8); }

/// The kernels of cuDNN that do Winograd's algorithm in one are written for Maxwell (their names begin with
/// "maxwell_scudnn_winograd") and what came after; Kepler's GPUs have the transforms and products apart.
constexpr int kFirstFusedWinograd = 50;

struct Way {
  const Kernel& kernel;
  const Chip& chip;
  const KernelParameters& parameters;
  ChipRates rates;
  Shape shape;
  Candidates& out;

  double operator[](Scalar scalar) const { return parameters[scalar]; }
};

/// Blocks of 32 tiles of 2x2 pixels by 32 channels, as the kernels' names say ("tile148": 1 image, 4 x 8 tiles). The
/// first shape is preferred, because the library mostly takes it.
double winograd_blocks(const Way& way) {
  struct Cut {
    double images, high, wide;  // as parts of one, which is faster than to divide and for powers of two as exact
    constexpr Cut(double i, double h, double w) : images(1 / i), high(1 / (2 * h)), wide(1 / (2 * w)) {}
  };
  static constexpr std::array cuts = {Cut{1, 4, 8}, Cut{1, 8, 4}, Cut{2, 4, 4}, Cut{4, 4, 2}, Cut{4, 2, 4}};
  const Shape& s = way.shape;
  double best = 0;
  for (const Cut& cut : cuts) {
    const double penalty = &cut == &cuts.front() ? 1 : way[Scalar::kWinogradOtherShape];
    const double blocks =
        whole_above(s.batch * cut.images) * whole_above(s.out_h * cut.high) * whole_above(s.out_w * cut.wide) * penalty;
    if (best <= 0 || blocks < best) best = blocks;
  }
  return best * whole_above(s.out / 32) * s.groups;
}

/// Winograd's F(2x2, 3x3) in one kernel: a block's 16 products of 32 x 32 are as one tile of 128 x 128 whose depth is
/// the input channels.
void add_fused_winograd(const Way& way) {
  const Shape& s = way.shape;
  const double blocks = winograd_blocks(way);
  ProductShape product{128, 128 * blocks, s.in + way[Scalar::kWinogradDepth], 1, 0, false};
  static constexpr Tile tile{"winograd-2x2", 128, 128, 256, 2, Scalar::kWinogradWork, Scalar::kTileLone128x128};
  const BlockTime time = block_time(way.parameters, way.rates, tile, product, 1);
  Candidate& c = way.out.add();
  c.group = Group::kWinogradFused, c.algorithm = "winograd-2x2";
  const double bytes = s.in_bytes + s.out_bytes + s.filter_bytes * (1 + 2 * 16.0 / 9);
  product.rows = s.out, product.cols = blocks * 32 / whole_above(s.out / 32), product.depth = s.in,
  product.bytes_per_number = s.width;
  fill_from_blocks(c, time, way.rates, way.parameters, product, bytes, 2);
  c.flops = 2 * 16 * s.in * s.out * s.groups * s.batch * whole_above(s.out_h / 2) * whole_above(s.out_w / 2);
  c.floor_s = c.flops / (2 * way.rates.multiprocessors * way.rates.macs_per_cycle * way.rates.clock_hz);
}

/// F(4x4, 3x3) in four kernels: transforms of input and filters, 36 products, transform of the result. The library
/// fills the batch up to a multiple of 16, which its launches show. A weight gradient sums over the tiles instead of
/// the channels.
void add_nonfused_winograd(const Way& way) {
  const Shape& s = way.shape;
  const bool weights = way.kernel.kind == KernelKind::kConvolutionWeightGradient;
  const double tiles = whole_above(s.out_h / 4) * whole_above(s.out_w / 4) * 16 * whole_above(s.batch / 16);
  const ProductShape product = weights ? ProductShape{s.out, s.in, tiles, 36 * s.groups, 4, false}
                                       : ProductShape{s.out, tiles, s.in, 36 * s.groups, 4, false};
  const BlockTime time = fastest_tile(
      way.parameters, way.rates,
      transformed_tiles(batched_tile(way.chip.sheet.capability, way.rates, product), way.chip.sheet.capability),
      product);
  const double transforms =
      s.in_bytes + s.out_bytes + s.filter_bytes + 36 * 4 * s.groups * (tiles * (s.in + s.out) + s.in * s.out);
  Candidate& c = way.out.add();
  c.group = weights ? Group::kWeightGradient : Group::kWinogradNonfused, c.algorithm = "winograd-4x4";
  fill_from_blocks(c, time, way.rates, way.parameters, product, time.bytes, 4);
  // The kernels run one after the other, so the transforms' time adds to that of the products.
  const double moving = transforms * way[Scalar::kTransformBytes] / way.rates.memory_bandwidth;
  c.analytic_s += moving, c.memory_s += moving, c.bytes += transforms;
  c.features[static_cast<std::size_t>(Feature::kMemoryShare)] = rough_log2(c.memory_s / c.arithmetic_s);
}

/// The product that an implicit or explicit GEMM computes: pixels by output channels, over input channels and taps.
ProductShape gemm_of(const Kernel& kernel, const Shape& s) {
  const double pixels = s.batch * (kernel.kernel_d == 1 ? s.out_h * s.out_w : s.out_pixels);
  ProductShape product{pixels, s.out, s.in * s.taps, s.groups, s.width, true};
  if (kernel.kind == KernelKind::kConvolutionWeightGradient)
    product = {s.in * s.taps, s.out, pixels, s.groups, s.width, true};
  if (kernel.kind == KernelKind::kConvolutionDataGradient) {
    // Pixels that differ modulo the stride meet different taps, and none where the stride is larger than the filter.
    for (const auto& [taps, stride] :
         {std::pair{kernel.kernel_d, kernel.stride_d}, std::pair{kernel.kernel_h, kernel.stride_h},
          std::pair{kernel.kernel_w, kernel.stride_w}}) {
      const double met = static_cast<double>(taps) / static_cast<double>(stride);
      product.depth *= std::max(1.0, met) / static_cast<double>(taps);
      product.rows *= std::min(1.0, met);
    }
  }
  return product;
}

Group gemm_group(const Kernel& kernel, bool tensor) {
  if (tensor) return kernel.kind == KernelKind::kConvolution ? Group::kTensorConvolution : Group::kTensorGradient;
  if (kernel.kind == KernelKind::kConvolutionWeightGradient) return Group::kWeightGradient;
  if (kernel.kind == KernelKind::kConvolutionDataGradient) return Group::kDataGradient;
  return is_square_3x3(kernel) ? Group::kDirect : Group::kStridedForward;
}

double direction_work(const Way& way, bool tensor) {
  if (way.kernel.kind == KernelKind::kConvolution) return 1;
  if (way.kernel.kind == KernelKind::kConvolutionWeightGradient) return tensor ? 1 : way[Scalar::kWeightGradientWork];
  if (tensor) return has_unit_stride(way.kernel) ? 1 : way[Scalar::kTensorStridedGradientWork];
  return way[has_unit_stride(way.kernel) ? Scalar::kDataGradientWork : Scalar::kStridedGradientWork];
}

/// Bytes that are rearranged before tensor cores can read them, and after, for numbers of a channel that are next to
/// each other: each is read and written in a kernel of its own (nchwToNhwcKernel, nhwcToNchwKernel). Up to Turing the
/// convolution itself writes its result channel by channel ("nhwc2nchw" in its name), and a filter of one number is a
/// plain product, whose numbers may stay where they are, as DeepBench's times show. A gradient of filters reads both.
/// Kernels of Ampere and later know only numbers of a pixel next to each other.
double transposed_bytes(const Way& way) {
  const Shape& s = way.shape;
  if (way.kernel.channels_last) return 0;
  const bool both = way.chip.sheet.capability >= 80 || way.kernel.kind == KernelKind::kConvolutionWeightGradient;
  if (way.chip.sheet.capability < 80 && s.taps == 1) return 0;
  return 2 * (s.in_bytes + (both ? s.out_bytes : 0));
}

double result_bytes(const Kernel& kernel, const Shape& s) {
  return kernel.kind == KernelKind::kConvolutionWeightGradient ? s.filter_bytes : s.out_bytes;
}

void add_gemm(const Way& way, bool tensor) {
  Shape s = way.shape;
  if (tensor) s.in = aligned(s.in), s.out = aligned(s.out);
  ProductShape product = gemm_of(way.kernel, s);
  // Data gradients on tensor cores take as long as one block needs for the whole depth, whatever the batch.
  if (tensor && way.kernel.kind == KernelKind::kConvolutionDataGradient) product.may_split = false;
  ChipRates rates = tensor ? rates_of(way.chip, way.kernel.precision) : way.rates;
  ChipRates slowed = rates;
  slowed.clock_hz /= direction_work(way, tensor) * (tensor ? 1 : way[Scalar::kDirectWork]);
  const bool narrow = way.kernel.kind == KernelKind::kConvolutionDataGradient && !has_unit_stride(way.kernel);
  const BlockTime time =
      fastest_tile(way.parameters, slowed, tensor ? tensor_tiles() : convolution_tiles(narrow), product);
  Candidate& c = way.out.add();
  c.group = gemm_group(way.kernel, tensor), c.algorithm = tensor ? "tensor-gemm" : "implicit-gemm";
  double bytes = s.in_bytes + s.out_bytes + s.filter_bytes;
  if (time.split > 1) bytes += 2 * time.split * result_bytes(way.kernel, s);  // partial sums
  const double transposed = tensor ? transposed_bytes(way) : 0;
  fill_from_blocks(c, time, rates, way.parameters, product, bytes, (time.split > 1 ? 3 : 2) + (transposed > 0 ? 1 : 0));
  const double moving = transposed * way[Scalar::kTransposeBytes] / rates.memory_bandwidth;
  c.analytic_s += moving, c.memory_s += moving, c.bytes += transposed;
}

/// Data gradients of strided convolutions of half-precision numbers without tensor cores: libraries of that time had
/// only the algorithm that adds each product to its place in memory, whose time follows the number of places, by
/// sixteen channels.
void add_scatter(const Way& way) {
  const Shape& s = way.shape;
  const double places = s.batch * s.groups * 16 * whole_above(s.out / 16) * s.out_pixels;
  Candidate& c = way.out.add();
  c.group = Group::kHalfScatter, c.algorithm = "scatter";
  c.flops = direct_flops(way.kernel), c.bytes = s.in_bytes + s.out_bytes + s.filter_bytes;
  c.launch_s = way[Scalar::kLaunchSeconds];
  c.memory_s = places * way[Scalar::kScatterSeconds], c.analytic_s = c.memory_s + c.launch_s;
  c.blocks = places / 256, c.waves = c.blocks / (way.rates.multiprocessors * 8);
  c.features = {rough_log2(c.blocks / way.rates.multiprocessors), 1, -10, -6,
                rough_log2(c.bytes / way.rates.l2_bytes),         0, -10};
}

// The few rows that ran this way tell how fast it is where it is fast; elsewhere it is slower than they suggest.
constexpr double kFftHandicap = 1.3;

/// Products in the frequency domain over tiles of 32 x 32 pixels or 16 x 16, of which the filter's size less one is
/// lost. Frequencies as the launches' grids show: 32 x 17 and 16 x 9.
void add_fft(const Way& way, double size) {
  const Shape& s = way.shape;
  const double frequencies = size * (size / 2 + 1), kept = size - s.filter_h + 1;
  const double tiles = s.batch * whole_above(s.out_h / kept) * whole_above(s.out_w / kept);
  const ProductShape product{tiles, s.out, 4 * s.in, frequencies * s.groups, 4, false};
  static constexpr std::array kTiles = {Tile{"fft", 64, 64, 256, 2, Scalar::kFftWork, Scalar::kTileLone128x64}};
  const BlockTime time = fastest_tile(way.parameters, way.rates, kTiles, product);
  const double values = 8 * frequencies * s.groups * (tiles * (s.in + s.out) + s.in * s.out);
  Candidate& c = way.out.add();
  c.group = Group::kFft, c.algorithm = "fft", c.handicap = kFftHandicap;
  fill_from_blocks(c, time, way.rates, way.parameters, product, time.bytes, 4);
  const double moving = (2 * values + s.in_bytes + s.out_bytes) / way.rates.memory_bandwidth;
  c.analytic_s += moving, c.memory_s += moving, c.bytes += 2 * values;
  c.features[static_cast<std::size_t>(Feature::kMemoryShare)] = rough_log2(c.memory_s / c.arithmetic_s);
}

}  // namespace

void add_convolutions(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out) {
  const Way way{kernel, chip, parameters, chip.fp32, shape_of(kernel), out};
  const bool tensor = on_tensor_cores(chip, kernel.precision);
  const bool half = !tensor && bytes_per_number(kernel.precision) == 2;
  if (half && kernel.kind == KernelKind::kConvolutionDataGradient && !has_unit_stride(kernel)) {
    add_scatter(way);
    out.all[0].least_bytes = operand_bytes(kernel);
    return;
  }
  add_gemm(way, tensor && (fills_tensor_cores(kernel) || chip.sheet.capability >= 80));
  // TF32 allows tensor cores and does not demand them.
  const bool either = tensor && kernel.precision == KernelPrecision::kTf32;
  if (either) add_gemm(way, false);
  if ((!tensor || either) && is_square_3x3(kernel) && kernel.groups == 1) {
    // For weight gradients cuDNN has no Winograd in one kernel.
    if (kernel.kind != KernelKind::kConvolutionWeightGradient && chip.sheet.capability >= kFirstFusedWinograd)
      add_fused_winograd(way);
    add_nonfused_winograd(way);
    if (kernel.kind == KernelKind::kConvolution && kernel.in_h > 5) {
      add_fft(way, 32);
      add_fft(way, 16);
    }
  }
  for (std::size_t i = 0; i < out.count; ++i) {
    out.all[i].least_bytes = operand_bytes(kernel);
    // Half-precision storage without tensor cores: libraries of that time chose among few algorithms for it.
    if (half) out.all[i].group = Group::kHalfStorage;
    if (out.all[i].algorithm != "tensor-gemm") out.all[i].power_flops = out.all[i].flops;
  }
}

}  // namespace ganymede::calibration

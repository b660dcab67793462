#include "calibration/kernels/block_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ganymede::calibration {
namespace {

constexpr Tile tile(std::string_view name, double rows, double cols, int threads, int resident, Scalar work,
                    Scalar lone) {
  return {name, rows, cols, threads, resident, work, lone};
}

// Tiles and threads as the kernels' names and launches tell them (cuBLAS and cuDNN in NeuSight's rows). Blocks that are
// resident together follow from the steps of the measured times over the number of blocks.
constexpr Tile k128x128 = tile("128x128", 128, 128, 256, 2, Scalar::kTileWork128x128, Scalar::kTileLone128x128);
constexpr Tile k128x64 = tile("128x64", 64, 128, 128, 4, Scalar::kTileWork128x64, Scalar::kTileLone128x64);
constexpr Tile k64x64 = tile("64x64", 64, 64, 64, 4, Scalar::kTileWork64x64, Scalar::kTileLone64x64);
constexpr Tile k128x32 = tile("128x32", 32, 128, 256, 4, Scalar::kTileWork128x32, Scalar::kTileLone128x32);
constexpr Tile k32x128 = tile("32x128", 128, 32, 256, 4, Scalar::kTileWork32x128, Scalar::kTileLone32x128);
constexpr Tile k32x32 = tile("32x32", 32, 32, 128, 8, Scalar::kTileWorkSliced, Scalar::kTileLoneSliced);

constexpr std::array kMaxwellDepthTiles = {k32x128, k64x64, k128x32};
constexpr std::array kMaxwellTiles = {k128x128, k128x64, k64x64, k128x32, k32x128};
constexpr std::array kLaterTiles = {k128x128, k128x64, k64x64, k128x32, k32x128, k32x32};
constexpr std::array kMaxwellTransformed = {k32x128, k64x64};
constexpr Tile k128x64Pixels = tile("128x64", 128, 64, 128, 4, Scalar::kTileWork128x64, Scalar::kTileLone128x64);
constexpr Tile k128x32Pixels = tile("128x32", 128, 32, 64, 8, Scalar::kTileWork64x64, Scalar::kTileLone64x64);
constexpr std::array kConvolutionTiles = {k128x128, k128x64Pixels, k128x32Pixels};
// Gradients to few channels (RGB images) run several times as fast as 32 columns, mostly empty, would let them.
constexpr std::array kNarrowTiles = {k128x128, k128x64Pixels, k128x32Pixels,
                                     tile("128x4", 128, 4, 64, 8, Scalar::kTileWork64x64, Scalar::kTileLone64x64)};
constexpr std::array kTensorTiles = {tile("128x256", 128, 256, 256, 1, Scalar::kTensorWork, Scalar::kTensorLone),
                                     tile("256x128", 256, 128, 256, 1, Scalar::kTensorWork, Scalar::kTensorLone),
                                     tile("128x128", 128, 128, 256, 2, Scalar::kTensorWork, Scalar::kTensorLone),
                                     tile("128x64", 128, 64, 128, 3, Scalar::kTensorWork, Scalar::kTensorLone),
                                     tile("64x64", 64, 64, 128, 4, Scalar::kTensorWork, Scalar::kTensorLone)};

/// Bytes from and to memory. A wave's blocks share what they read in the L2 cache; an operand that fits there is read
/// once, a larger one once for each row or column of waves.
double traffic(const KernelParameters& parameters, const ChipRates& chip, const ProductShape& s, const Tile& t,
               double across, double down, double split) {
  const double width = s.bytes_per_number;
  const double left = s.rows * s.depth * width, right = s.depth * s.cols * width, result = s.rows * s.cols * width;
  const double held = std::max(1.0, whole_below(chip.multiprocessors * t.resident / split));
  const double band = std::max(1.0, std::min(down, whole_below(held / across)));  // rows of tiles in one wave
  const double rereads = std::max(0.0, whole_above(down / band) - 1);             // of the right operand
  const double over = std::max(0.0, 1 - parameters[Scalar::kL2Reuse] * chip.l2_bytes / (left + right));
  const double sums = split > 1 ? 2 * split * result : result;
  return s.count * (left + right * (1 + rereads * over) + sums);
}

}  // namespace

double smooth_maximum(double a, double b) {
  const double a2 = a * a, b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

BlockTime block_time(const KernelParameters& parameters, const ChipRates& chip, const Tile& t, const ProductShape& s,
                     double split) {
  BlockTime result;
  const double across = whole_above(s.cols / t.cols), down = whole_above(s.rows / t.rows);
  result.tile = &t, result.split = split;
  result.blocks = across * down * s.count * split;
  result.depth = s.depth / split;
  const double each = whole_above(result.blocks / chip.multiprocessors), resident = t.resident;
  const double full = whole_below(each / resident), rest = each - full * resident;
  const double work = parameters[t.work], lone = chip.lanes_of_64 / parameters[t.lone];
  const double full_wave = full > 0 ? smooth_maximum(resident * work, lone) : 0,
               last_wave = rest > 0 ? smooth_maximum(rest * work, lone) : 0;
  const double cycles = t.rows * t.cols * result.depth / chip.macs_per_cycle;
  const double waves = full + (rest > 0 ? 1 : 0);
  const double total = (full * full_wave + last_wave) * cycles + waves * parameters[Scalar::kWaveCycles];
  result.arithmetic_s = total / chip.clock_hz;
  result.waves = result.blocks / (chip.multiprocessors * resident);
  const double l2_bytes = result.blocks * (t.rows + t.cols) * result.depth * s.bytes_per_number;
  result.l2_s = l2_bytes / (chip.multiprocessors * chip.clock_hz * parameters[Scalar::kL2BytesPerCycle]);
  result.bytes = traffic(parameters, chip, s, t, across, down, split);
  return result;
}

BlockTime fastest_tile(const KernelParameters& parameters, const ChipRates& chip, std::span<const Tile> tiles,
                       const ProductShape& shape) {
  BlockTime best;
  double best_s = 0;
  const auto consider = [&](const Tile& t, double split) {
    const BlockTime time = block_time(parameters, chip, t, shape, split);
    const double extra = split > 1 ? parameters[Scalar::kLaunchSeconds] : 0;
    const double seconds = std::max({time.arithmetic_s, time.l2_s, time.bytes / chip.memory_bandwidth}) + extra;
    if (!best.tile || seconds < best_s) best = time, best_s = seconds;
  };
  for (const Tile& t : tiles) {
    consider(t, 1);
    if (!shape.may_split) continue;
    const double blocks = whole_above(shape.cols / t.cols) * whole_above(shape.rows / t.rows) * shape.count;
    const double split =
        std::min(whole_below(chip.multiprocessors * t.resident / blocks), whole_below(shape.depth / 256));
    if (split >= 2) consider(t, std::min(split, 64.0));
  }
  return best;
}

std::span<const Tile> product_tiles(int capability, bool along_depth) {
  if (capability < 70 && along_depth) return kMaxwellDepthTiles;
  if (capability < 70) return kMaxwellTiles;
  return kLaterTiles;
}

// Rules read from the kernels that ran in NeuSight's batched products: they hold for 99 % (T4) and 86 % (V100) of its
// rows, and for all rows of P100 and A100. Numbers of blocks are per multiprocessor.
const Tile& batched_tile(int capability, const ChipRates& chip, const ProductShape& s) {
  if (capability < 70) return k128x64;
  if (capability >= 80) return k128x128;
  const auto blocks = [&](const Tile& t) {
    return whole_above(s.rows / t.rows) * whole_above(s.cols / t.cols) * s.count / chip.multiprocessors;
  };
  const auto area = [&](const Tile& t) { return blocks(t) * t.rows * t.cols; };
  if (capability == 75) {
    const bool flat = area(k128x32) <= 0.85 * area(k128x64) && blocks(k32x128) > 3.4;
    if (area(k64x64) <= 0.79 * area(k128x64))
      return area(k128x32) <= 1.06 * area(k64x64) && blocks(k64x64) > 11.6 ? k128x32 : k64x64;
    return flat ? k128x32 : blocks(k64x64) < 4.8 ? k64x64 : k128x64;
  }
  if (blocks(k128x32) <= 1.19) return k128x32;
  const double upright = area(k32x128) / area(k64x64);
  const bool many = upright <= 0.99 ? blocks(k128x64) > 4 : upright <= 1.01 && blocks(k32x128) > 9.6;
  return many ? k32x128 : k64x64;
}

std::span<const Tile> transformed_tiles(const Tile& batched, int capability) {
  if (capability < 70) return kMaxwellTransformed;
  return {&batched, 1};
}

std::span<const Tile> convolution_tiles(bool strided_gradient) {
  if (strided_gradient) return kNarrowTiles;
  return kConvolutionTiles;
}
std::span<const Tile> tensor_tiles() { return kTensorTiles; }

}  // namespace ganymede::calibration

#pragma once
// How long the multiprocessors take for a matrix product that is cut into tiles.

#include <cstdint>
#include <span>
#include <string_view>

#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/parameters.hpp"

namespace ganymede::calibration {

struct Tile {
  std::string_view name;
  double rows, cols;      ///< of the result that one block of threads computes
  int threads, resident;  ///< threads of a block, and blocks that fit on a multiprocessor at once
  Scalar work, lone;
};

struct ProductShape {
  double rows = 1, cols = 1, depth = 1, count = 1;  ///< `count` products of that shape
  double bytes_per_number = 4;
  bool may_split = false;  ///< the depth may be cut too, for which the parts are summed afterwards
};

struct BlockTime {
  double arithmetic_s = 0, l2_s = 0;
  double bytes = 0;  ///< from and to memory
  double blocks = 0, waves = 0;
  double split = 1, depth = 1;
  const Tile* tile = nullptr;
};

/// Rates of one GPU that the block times need.
struct ChipRates {
  double multiprocessors, macs_per_cycle, clock_hz, lanes_of_64;
  double memory_bandwidth, l2_bytes;
};

BlockTime block_time(const KernelParameters& parameters, const ChipRates& chip, const Tile& tile,
                     const ProductShape& shape, double split);

/// The fastest of the tiles, with or without a split of the depth.
BlockTime fastest_tile(const KernelParameters& parameters, const ChipRates& chip, std::span<const Tile> tiles,
                       const ProductShape& shape);

/// Tiles of the libraries' kernels for one product. `along_depth`: both operands lie in memory along the depth.
std::span<const Tile> product_tiles(int capability, bool along_depth);
std::span<const Tile> convolution_tiles(bool strided_gradient);
std::span<const Tile> tensor_tiles();

/// The tile that cuBLAS takes for a batch of products; by its own rules, which are not always the fastest.
const Tile& batched_tile(int capability, const ChipRates& chip, const ProductShape& shape);
/// The tiles of the 36 products of a Winograd convolution that is not fused.
std::span<const Tile> transformed_tiles(const Tile& batched, int capability);

/// Round up and down for 0 <= x < 2^62, faster than std::ceil and std::floor.
inline double whole_above(double x) {
  const auto below = static_cast<double>(static_cast<std::int64_t>(x));
  return below < x ? below + 1 : below;
}
inline double whole_below(double x) { return static_cast<double>(static_cast<std::int64_t>(x)); }

/// A smooth maximum: the fourth root of a^4 + b^4.
double smooth_maximum(double a, double b);

}  // namespace ganymede::calibration

#pragma once
// How many threads the kernels run with, and which of them does what: plain arithmetic, tested on the CPU.

#include <algorithm>
#include <cstddef>

namespace ganymede::kernel::cuda {

inline constexpr int kThreads = 256;  ///< of a block
inline constexpr int kWarp = 32;
/// A block of a column sum: 32 columns side by side, so that a warp reads whole cache lines, and 8 rows.
inline constexpr int kBlockColumns = kWarp, kBlockRows = kThreads / kWarp;
/// Blocks that keep a multiprocessor busy.
inline constexpr int kBlocksPerMultiprocessor = 8;
/// Rows that a thread of a column sum takes before another chunk is opened.
inline constexpr int kRowsPerThread = 32;
/// Partial sums of all chunks, in floats: the machine's scratch memory.
inline constexpr std::size_t kPartials = std::size_t{1} << 20;

constexpr int divide_up(std::size_t value, std::size_t by) { return static_cast<int>((value + by - 1) / by); }

/// One thread an element, or several elements a thread once the GPU is full.
constexpr int blocks_of_each(std::size_t count, int multiprocessors) {
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return static_cast<int>(
      std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(multiprocessors) * kBlocksPerMultiprocessor));
}

/// Column sums of [rows x columns]: chunks of rows, whose partial sums a second kernel adds. One chunk: no second.
struct ColumnShape {
  int column_blocks, chunks, rows_per_chunk;
};
constexpr ColumnShape shape_of_columns(int rows, int columns, int sums, int multiprocessors) {
  const int column_blocks = divide_up(static_cast<std::size_t>(columns), kBlockColumns);
  const int most = std::max(1, multiprocessors * kBlocksPerMultiprocessor / column_blocks);
  const int fitting =
      static_cast<int>(kPartials / (static_cast<std::size_t>(columns) * static_cast<std::size_t>(sums)));
  const int wanted = divide_up(static_cast<std::size_t>(rows), std::size_t{kBlockRows} * kRowsPerThread);
  const int chunks = std::max(1, std::min({wanted, most, fitting}));
  const int rows_per_chunk = divide_up(static_cast<std::size_t>(rows), static_cast<std::size_t>(chunks));
  return {column_blocks, divide_up(static_cast<std::size_t>(rows), static_cast<std::size_t>(rows_per_chunk)),
          rows_per_chunk};
}

/// Sums of rows: a warp a row, or a block where rows are long.
struct RowShape {
  bool block_a_row;
  int blocks;
};
constexpr RowShape shape_of_rows(int rows, int length) {
  const bool block_a_row = length > 8 * kWarp;
  return {block_a_row, block_a_row ? rows : divide_up(static_cast<std::size_t>(rows), kThreads / kWarp)};
}

}  // namespace ganymede::kernel::cuda

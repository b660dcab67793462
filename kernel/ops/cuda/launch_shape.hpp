#pragma once
// How many blocks and threads the kernels of launches.hpp run with. Plain arithmetic, tested on the CPU.

#include <algorithm>
#include <cstddef>

namespace ganymede::kernel::cuda {

inline constexpr int kThreads = 256;  ///< threads of a block
inline constexpr int kWarp = 32;
/// A block of a column sum has 32 columns, so that a warp reads whole cache lines, and 8 rows of threads.
inline constexpr int kBlockColumns = kWarp, kBlockRows = kThreads / kWarp;
/// Number of blocks that keep a multiprocessor busy.
inline constexpr int kBlocksPerMultiprocessor = 8;
/// A column sum gets another chunk of rows when a thread would have more rows than this.
inline constexpr int kRowsPerThread = 32;
/// Floats of scratch memory for the partial sums of all chunks.
inline constexpr std::size_t kPartials = std::size_t{1} << 20;
/// Blocks of columns whose sums may have several chunks.
inline constexpr int kColumnBarriers = 8192;

/// Where the blocks meet that sum chunks of the same columns. All zero before its first use; each launch leaves
/// `arrived` as it was.
struct ColumnBarrier {
  unsigned arrived;   ///< blocks of the running launch that are done with their chunk
  unsigned releases;  ///< launches whose blocks were let go on
};

constexpr int divide_up(std::size_t value, std::size_t by) { return static_cast<int>((value + by - 1) / by); }

/// Blocks for one thread per element, or for several elements per thread once the GPU is full.
constexpr int blocks_of_each(std::size_t count, int multiprocessors) {
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return static_cast<int>(
      std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(multiprocessors) * kBlocksPerMultiprocessor));
}

/// Column sums of [rows x columns]: the rows are divided into chunks, whose partial sums the last block adds. If there
/// are several chunks, the grid has at most `blocks` blocks.
struct ColumnShape {
  int column_blocks, chunks, rows_per_chunk;
};
constexpr ColumnShape shape_of_columns(int rows, int columns, int sums, int blocks) {
  const int column_blocks = divide_up(static_cast<std::size_t>(columns), kBlockColumns);
  const int chunks_max = column_blocks <= kColumnBarriers ? blocks / column_blocks : 1;
  const int fitting =
      static_cast<int>(kPartials / (static_cast<std::size_t>(columns) * static_cast<std::size_t>(sums)));
  const int wanted = divide_up(static_cast<std::size_t>(rows), std::size_t{kBlockRows} * kRowsPerThread);
  const int chunks = std::max(1, std::min({wanted, chunks_max, fitting}));
  const int rows_per_chunk = divide_up(static_cast<std::size_t>(rows), static_cast<std::size_t>(chunks));
  return {column_blocks, divide_up(static_cast<std::size_t>(rows), static_cast<std::size_t>(rows_per_chunk)),
          rows_per_chunk};
}

/// Row sums: one warp for each row, or one block if the rows are long.
struct RowShape {
  bool block_a_row;  ///< true: one block for each row; false: one warp
  int blocks;
};
constexpr RowShape shape_of_rows(int rows, int length) {
  const bool block_a_row = length > 8 * kWarp;
  return {block_a_row, block_a_row ? rows : divide_up(static_cast<std::size_t>(rows), kThreads / kWarp)};
}

}  // namespace ganymede::kernel::cuda

#include "kernel/ops/cuda/launch_shape.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace ganymede::kernel {
namespace {

TEST(LaunchShape, EachElementHasAThreadOrATurn) {
  for (const int multiprocessors : {1, 20, 132})
    for (const std::size_t count : {1UL, 255UL, 256UL, 257UL, 1UL << 20, (1UL << 31) + 5}) {
      const int blocks = cuda::blocks_of_each(count, multiprocessors);
      ASSERT_GE(blocks, 1);
      EXPECT_LE(blocks, multiprocessors * cuda::kBlocksPerMultiprocessor);
      EXPECT_TRUE(static_cast<std::size_t>(blocks) * cuda::kThreads >= count ||
                  blocks == multiprocessors * cuda::kBlocksPerMultiprocessor);
      EXPECT_LT(static_cast<std::size_t>(blocks - 1) * cuda::kThreads, count);  // no block is idle
    }
}

TEST(LaunchShape, ChunksOfColumnSumsCoverTheRowsOnceAndFitTheScratchMemory) {
  for (const int multiprocessors : {1, 20, 132})
    for (const int rows : {1, 2, 64, 257, 4096, 1 << 20})
      for (const int columns : {1, 31, 32, 33, 512, 12'288, 200'000})
        for (const int sums : {1, 2, 7}) {
          const auto shape = cuda::shape_of_columns(rows, columns, sums, multiprocessors);
          EXPECT_GE(shape.column_blocks * cuda::kBlockColumns, columns);
          EXPECT_LT((shape.column_blocks - 1) * cuda::kBlockColumns, columns);
          EXPECT_GE(std::int64_t{shape.chunks} * shape.rows_per_chunk, rows);
          EXPECT_LT(std::int64_t{shape.chunks - 1} * shape.rows_per_chunk, rows);  // no chunk is empty
          EXPECT_LE(shape.chunks, 65535);  // the limit of a grid's second extent
          if (shape.chunks > 1) {
            EXPECT_LE(static_cast<std::size_t>(shape.chunks) * static_cast<std::size_t>(columns * sums),
                      cuda::kPartials);
          }
        }
}

TEST(LaunchShape, EachRowHasItsGroup) {
  for (const int rows : {1, 7, 8, 9, 100'000})
    for (const int length : {1, 32, 256, 257, 200'000}) {
      const auto shape = cuda::shape_of_rows(rows, length);
      EXPECT_GE(shape.blocks * (shape.block_a_row ? 1 : cuda::kThreads / cuda::kWarp), rows);
      EXPECT_EQ(shape.block_a_row, length > 256);
    }
}

TEST(LaunchShape, SumsOfManyRowsTakeMoreKernels) {
  EXPECT_EQ(cuda::launches_of_columns(256, 64, 2, 132, true), 1);
  EXPECT_EQ(cuda::launches_of_columns(257, 64, 2, 132, true), 3);  // partial sums, their sum, each element
  EXPECT_EQ(cuda::launches_of_columns(257, 64, 2, 132, false), 2);
}

}  // namespace
}  // namespace ganymede::kernel

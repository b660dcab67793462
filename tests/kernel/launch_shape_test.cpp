#include "kernel/ops/cuda/launch_shape.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "kernel/bf16.hpp"
#include "kernel/ops/cuda/portable.hpp"
#include "kernel/ops/cuda/vectors.hpp"

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
          const int blocks = multiprocessors * cuda::kBlocksPerMultiprocessor;
          const auto shape = cuda::shape_of_columns(rows, columns, sums, blocks);
          EXPECT_GE(shape.column_blocks * cuda::kBlockColumns, columns);
          EXPECT_LT((shape.column_blocks - 1) * cuda::kBlockColumns, columns);
          EXPECT_GE(std::int64_t{shape.chunks} * shape.rows_per_chunk, rows);
          EXPECT_LT(std::int64_t{shape.chunks - 1} * shape.rows_per_chunk, rows);  // no chunk is empty
          EXPECT_LE(shape.chunks, 65535);  // the limit of a grid's second extent
          if (shape.chunks > 1) {
            EXPECT_LE(static_cast<std::size_t>(shape.chunks) * static_cast<std::size_t>(columns * sums),
                      cuda::kPartials);
            // All blocks can be resident at once, and each block of columns has its barrier.
            EXPECT_LE(shape.chunks * shape.column_blocks, blocks);
            EXPECT_LE(shape.column_blocks, cuda::kColumnBarriers);
          }
        }
}

TEST(Divisor, DividesAsTheProcessorDoes) {
  constexpr std::size_t kLargest = 0xffffffff;
  const std::size_t numbers[] = {
      0, 1, 2, 3, 5, 7, 31, 784, 65'535, 65'537, 1UL << 31, kLargest - 1, kLargest, kLargest + 1, 1UL << 40};
  for (const std::size_t by : numbers) {
    if (by == 0) continue;
    const cuda::Divisor divisor(by);
    for (const std::size_t i : numbers)
      for (const std::size_t near : {i, i * by, i * by + by - 1}) {
        EXPECT_EQ(near / divisor, near / by) << near << " / " << by;
        EXPECT_EQ(near % divisor, near % by) << near << " % " << by;
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

TEST(LaunchShape, SumsOfManyRowsHaveChunksWhereBlocksAreLeft) {
  EXPECT_EQ(cuda::shape_of_columns(256, 64, 2, 1056).chunks, 1);
  EXPECT_EQ(cuda::shape_of_columns(257, 64, 2, 1056).chunks, 2);
  EXPECT_EQ(cuda::shape_of_columns(257, 64, 2, 3).chunks, 1);  // two blocks of columns
}

/// A launcher that runs the calls of a body one by one.
struct OneByOne {
  std::size_t threads = 0;
  template <class Body>
  void each(std::size_t count, const Body& body) {
    threads = count;
    for (std::size_t i = 0; i < count; ++i) body(i);
  }
};

TEST(Vectors, VisitEachElementOnceWhateverTheAlignment) {
  constexpr std::size_t kMost = 40, kPad = 4;
  for (const std::size_t offset : {0, 1, 2})
    for (std::size_t count = 0; count + offset + kPad <= kMost; ++count) {
      alignas(cuda::kWidestAccess) float sums[kMost] = {}, terms[kMost];
      alignas(cuda::kWidestAccess) Bf16 copies[kMost];
      for (std::size_t i = 0; i < kMost; ++i) terms[i] = static_cast<float>(i), copies[i] = -1;
      const float* from = terms + offset;
      OneByOne launcher;
      cuda::each_element(
          launcher, count,
          [](std::size_t i, float& sum, Bf16& copy, std::uint8_t& nothing, float term) {
            sum += 100 * static_cast<float>(i + 1) + term;
            copy = term;
            nothing = 1;
          },
          sums + offset, cuda::Written<Bf16>{copies}, cuda::Written<std::uint8_t>{nullptr}, from);
      EXPECT_EQ(launcher.threads, (count + 3) / 4);  // four floats each
      for (std::size_t i = 0; i < kMost; ++i) {
        const bool inside = i >= offset && i < offset + count;
        EXPECT_EQ(sums[i], inside ? 100 * static_cast<float>(i - offset + 1) + terms[i] : 0) << offset << " " << count;
        EXPECT_EQ(copies[i], i < count ? terms[i + offset] : -1) << offset << " " << count;
      }
    }
}

}  // namespace
}  // namespace ganymede::kernel

#include "kernel/ops/eigen/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace ganymede::kernel {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    // Many short loops one after another: a thread that wakes late for one must not take a chunk of the next twice.
    for (int round = 0; round < 2000; ++round) {
      const int chunks = round % 7;
      std::vector<std::atomic<int>> runs(7);
      pool.run(chunks, [&](int chunk, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        runs[static_cast<std::size_t>(chunk)].fetch_add(1);
      });
      for (int i = 0; i < 7; ++i) ASSERT_EQ(runs[static_cast<std::size_t>(i)].load(), i < chunks ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace ganymede::kernel

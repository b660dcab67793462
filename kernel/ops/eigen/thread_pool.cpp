#include "kernel/ops/eigen/thread_pool.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cassert>

namespace ganymede::kernel {

struct ThreadPool::Arena : tbb::task_arena {
  using tbb::task_arena::task_arena;
};

// An arena for more threads than TBB runs would make TBB print a warning.
ThreadPool::ThreadPool(int threads)
    : threads_(threads), arena_(std::make_unique<Arena>(std::min(threads, tbb::info::default_concurrency()))) {
  assert(threads >= 1);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run_shared(int chunks, const void* function, Call call) {
  const auto run_range = [&](const tbb::blocked_range<int>& range) {
    const int thread = tbb::this_task_arena::current_thread_index();
    for (int chunk = range.begin(); chunk < range.end(); ++chunk) call(function, chunk, thread);
  };
  // The simple partitioner makes a task of every chunk: chunks are few and already of a worthwhile size.
  arena_->execute(
      [&] { tbb::parallel_for(tbb::blocked_range<int>(0, chunks, 1), run_range, tbb::simple_partitioner()); });
}

}  // namespace ganymede::kernel

#pragma once
// Threads that share the chunks of one loop, with oneTBB.
//
// Why TBB: a step has hundreds of loops of some microseconds. Measured alternately with bench/kernel_step, two threads
// on two cores of a machine with other load: mlp-gan at batch 16 takes 6 to 12 ms a step with TBB, 11 to 24 ms with a
// hand-written pool that spins and then sleeps, and 50 to 240 ms with OpenMP, whose waiting threads spin unless an
// environment variable was set before the program started.

#include <memory>

namespace ganymede::kernel {

class ThreadPool {
 public:
  /// `threads` >= 1 counts the caller, who works too. TBB runs at most as many threads at once as there are processors.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls function(chunk, thread) for chunk 0 .. chunks - 1, on any thread in any order, and returns when all are
  /// done. `thread` is below threads(). Results are the same for any number of threads if chunks write to places of
  /// their own, because the caller, not the pool, divides the work into chunks. The function must not throw.
  template <class Function>
  void run(int chunks, const Function& function) {
    if (chunks <= 1 || threads_ == 1) {
      for (int chunk = 0; chunk < chunks; ++chunk) function(chunk, 0);
      return;
    }
    run_shared(chunks, &function,
               [](const void* f, int chunk, int thread) { (*static_cast<const Function*>(f))(chunk, thread); });
  }

 private:
  struct Arena;
  using Call = void (*)(const void* function, int chunk, int thread);

  void run_shared(int chunks, const void* function, Call call);

  int threads_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace ganymede::kernel

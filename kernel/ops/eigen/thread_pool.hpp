#pragma once
// Threads that share the chunks of one loop.
//
// Why not a library: a step has hundreds of loops of some microseconds, and a step must allocate nothing. OpenMP's
// waiting threads either spin, which makes two threads slower than one beside a busy neighbour (measured with
// bench/kernel_step on two cores: 50 to 240 ms a step of mlp-gan at batch 16, against 11 to 24 ms), or obey an
// environment variable that must be set before the program starts. oneTBB was as fast or faster in the same
// measurement (6 to 12 ms), but it allocates when a thread of its own takes work for the first time.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ganymede::kernel {

class ThreadPool {
 public:
  /// `threads` must be at least 1 and counts the caller, who works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls function(chunk, thread) for chunk 0 .. chunks - 1, on any thread in any order, and returns when all are
  /// done. `thread` is below threads(). Results are the same for any number of threads if chunks write to places of
  /// their own, because the caller, not the pool, divides the work into chunks. Allocates nothing. The function must
  /// not throw.
  template <class Function>
  void run(int chunks, const Function& function) {
    if (chunks <= 1 || workers_.empty()) {
      for (int chunk = 0; chunk < chunks; ++chunk) function(chunk, 0);
      return;
    }
    run_shared(chunks, &function,
               [](const void* f, int chunk, int thread) { (*static_cast<const Function*>(f))(chunk, thread); });
  }

 private:
  using Call = void (*)(const void* function, int chunk, int thread);
  /// The ticket holds the number of the loop (epoch), its number of chunks and the next chunk in one word. A thread
  /// that wakes late therefore cannot take a chunk of a later loop for one of an earlier loop.
  static constexpr int kBits = 20;

  void run_shared(int chunks, const void* function, Call call);
  void work(int thread);
  void help(int thread);

  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> ticket_{0};  // epoch << 40 | chunks << 20 | next
  std::atomic<std::uint32_t> epoch_{0};   // idle threads wait for it to change
  std::atomic<std::uint32_t> done_{0};
  std::atomic<bool> stop_{false};
  const void* function_ = nullptr;  // written before ticket_ is, and read only after a chunk was taken
  Call call_ = nullptr;
};

}  // namespace ganymede::kernel

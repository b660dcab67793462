#pragma once
// Threads that share the chunks of one loop. OpenMP is not used: its waiting threads either spin, which makes two
// threads slower than one beside a busy neighbour, or obey an environment variable that must be set before the program
// starts.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ganymede::kernel {

class ThreadPool {
 public:
  /// `threads` counts the caller, who works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls function(chunk, thread) for chunk 0 .. chunks - 1, on any thread in any order, and returns when all are
  /// done. `thread` is below threads(). Allocates nothing; the function must not throw.
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
  /// Which loop (epoch), how many chunks it has, which is next: in one word, so that a thread that wakes late can never
  /// take a chunk of one loop for another's.
  static constexpr int kBits = 20;

  void run_shared(int chunks, const void* function, Call call);
  void work(int thread);
  void help(int thread);

  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> ticket_{0};  // epoch << 40 | chunks << 20 | next
  std::atomic<std::uint32_t> epoch_{0};   // what idle threads wait on
  std::atomic<std::uint32_t> done_{0};
  std::atomic<bool> stop_{false};
  const void* function_ = nullptr;  // written before ticket_, read after a chunk was taken
  Call call_ = nullptr;
};

}  // namespace ganymede::kernel

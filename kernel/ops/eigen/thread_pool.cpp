#include "kernel/ops/eigen/thread_pool.hpp"

#include <cassert>

namespace ganymede::kernel {
namespace {

/// How often a waiting thread checks before it sleeps. The gap between two loops of a step is some microseconds, which
/// this spin bridges.
constexpr int kSpins = 2000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  assert(threads >= 1);
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_shared(int chunks, const void* function, Call call) {
  assert(chunks < (1 << kBits));
  function_ = function;
  call_ = call;
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  ticket_.store(static_cast<std::uint64_t>(epoch) << (2 * kBits) | static_cast<std::uint64_t>(chunks) << kBits,
                std::memory_order_release);
  epoch_.store(epoch, std::memory_order_release);
  epoch_.notify_all();
  help(0);
  for (;;) {
    const std::uint32_t done = done_.load(std::memory_order_acquire);
    if (done == static_cast<std::uint32_t>(chunks)) return;
    wait_while(done_, done);
  }
}

void ThreadPool::help(int thread) {
  constexpr std::uint64_t kMask = (1U << kBits) - 1;
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t next = ticket & kMask;
    if (next >= ((ticket >> kBits) & kMask)) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    // The loop cannot end before this chunk is counted, so its function stays valid.
    call_(function_, static_cast<int>(next), thread);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == ((ticket >> kBits) & kMask)) done_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(epoch_, seen);
    if (stop_.load()) return;
    seen = epoch_.load(std::memory_order_acquire);
    help(thread);
  }
}

}  // namespace ganymede::kernel

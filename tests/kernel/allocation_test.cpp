// A training step allocates nothing, neither with operator new nor with malloc. The linker's --wrap redirects the calls
// of malloc in this project's object files, which include Eigen's inlined functions, to the counters below.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "scratch.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the names that --wrap prescribes
extern "C" {
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
void* __real_aligned_alloc(std::size_t, std::size_t);
int __real_posix_memalign(void**, std::size_t, std::size_t);

void* __wrap_malloc(std::size_t size) { return count(), __real_malloc(size); }
void* __wrap_calloc(std::size_t number, std::size_t size) { return count(), __real_calloc(number, size); }
void* __wrap_realloc(void* old, std::size_t size) { return count(), __real_realloc(old, size); }
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return count(), __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  return count(), __real_posix_memalign(out, alignment, size);
}
}
// NOLINTEND(bugprone-reserved-identifier)

// Not inlined, because the compiler would warn of new with free().
__attribute__((noinline)) void* operator new(std::size_t size) {
  count();
  if (void* memory = __real_malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ganymede::kernel {
namespace {

TEST(GanStep, AllocatesNothing) {
  const Scratch scratch;
  Trainer trainer(small_training(scratch, 70));  // two batches in an epoch, so that reshuffling is included
  allocations = 0;
  counting = true;
  for (int i = 0; i < 6; ++i) trainer.step();
  counting = false;
  EXPECT_EQ(allocations.load(), 0);
  EXPECT_GT(trainer.epoch(), 2);

  counting = true;  // checks that the counters work
  void* volatile raw = std::malloc(10);
  int* volatile object = new int(1);
  counting = false;
  std::free(raw);
  delete object;
  EXPECT_EQ(allocations.load(), 2);
}

}  // namespace
}  // namespace ganymede::kernel

#include "common/memory_reserve.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "common/file.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kReserveBytes = std::size_t{1} << 20U;
std::atomic<void*> reserve = nullptr;
std::terminate_handler other_reasons = nullptr;

/// Called by `new` when it gets no memory; it tries again if this returns.
void give_reserve() {
  void* kept = reserve.exchange(nullptr);
  if (kept == nullptr) throw std::bad_alloc();
  std::free(kept);
}

void end_without_memory() {
  try {
    // cppcheck-suppress rethrowNoCurrentException
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kMessage = "ganymede: out of memory\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    remove_unfinished_files();
    ::_exit(1);
  } catch (...) {  // a fault of the program
  }
  other_reasons();
}

}  // namespace

void keep_memory_reserve() {
  if (reserve.load() == nullptr) std::free(reserve.exchange(std::malloc(kReserveBytes)));
  std::set_new_handler(give_reserve);
  if (std::get_terminate() != end_without_memory) other_reasons = std::set_terminate(end_without_memory);
}

}  // namespace ganymede

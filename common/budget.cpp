#include "common/budget.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "common/file.hpp"
#include "common/host_inventory.hpp"
#include "common/text.hpp"

namespace ganymede {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowed = true;  // the sanitizers reserve terabytes
#else
constexpr bool kShadowed = false;
#endif

Bytes asked{0}, bound{0};

std::string shown(std::int64_t most, std::string_view what) {
  return fmt::format("{} {}{}", with_thousands(most), what, most == 1 ? "" : "s");
}

}  // namespace

Bytes half_of_memory() { return Bytes{take_host_memory().total.si / 2}; }

void set_memory_budget(Bytes most) { asked = most; }

void begin_memory_budget(bool trains) {
  constexpr Bytes kSimulations{2.0 * (1U << 30U)};
  bound = asked.si > 0 ? asked : trains ? half_of_memory() : kSimulations;
  static rlimit users{};
  static const bool known = ::getrlimit(RLIMIT_DATA, &users) == 0;
  if (kShadowed || !known) return;
  rlimit limit = users;
  if (!trains) limit.rlim_cur = std::min(users.rlim_cur, static_cast<rlim_t>(bound.si));
  ::setrlimit(RLIMIT_DATA, &limit);
}

Bytes memory_budget() { return bound.si > 0 ? bound : half_of_memory(); }

void check_memory(Bytes needed, std::string_view asker) {
  if (needed <= memory_budget()) return;
  throw BudgetExceeded(fmt::format("{} would take about {} of memory, expected at most {}; --max-memory allows more",
                                   asker, to_string(needed), to_string(memory_budget())));
}

void reserve_beyond_budget(Bytes more) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  limit.rlim_cur = std::min(limit.rlim_max, limit.rlim_cur + static_cast<rlim_t>(more.si));
  ::setrlimit(RLIMIT_DATA, &limit);
}

std::string memory_budget_exceeded() {
  if (bound.si <= 0 || take_host_memory().available < bound) return "";
  return fmt::format("more than {} of memory would be needed; --max-memory allows more", to_string(bound));
}

std::int64_t Work::bound_ = 50'000'000;

void set_work_budget(std::int64_t most) { Work::bound_ = most; }

void check_work(double units, std::string_view what, std::string_view asker, std::string_view instead) {
  if (units <= static_cast<double>(Work::bound_)) return;
  const std::string found = units < 1e15 ? with_thousands(std::llround(units)) : fmt::format("{:.3g}", units);
  throw BudgetExceeded(fmt::format("{}: more than {} would be simulated, {}; {}, or --max-work allows more", asker,
                                   shown(Work::bound_, what), found, instead));
}

void Work::refuse(std::string_view file, std::string_view key) const {
  throw BudgetExceeded(fmt::format("{}: {}: more than {} would be simulated; --max-work allows more", file, key,
                                   shown(bound_, "event")));
}

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

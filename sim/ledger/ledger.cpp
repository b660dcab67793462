#include "sim/ledger/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

std::int64_t whole_nanoseconds(Seconds time) {
  constexpr double kMaxNanoseconds = 9.2e18;  // just below 2^63
  const double nanoseconds = time.si * kNanosecondsPerSecond;
  if (!(0 <= nanoseconds && nanoseconds <= kMaxNanoseconds)) {
    throw Failure(fmt::format("cannot account for {} s: expected zero or more, and at most 292 years", time.si));
  }
  return std::llround(nanoseconds);
}

namespace {

/// A run's time is a sum of products of doubles that are each exact to 1e-16; the sum is taken to be exact to one part
/// in kExactParts.
constexpr GpuNanoseconds kExactParts = 1'000'000'000'000;

GpuNanoseconds gpu_nanoseconds(std::int64_t gpus, Seconds each) {
  if (gpus < 0) throw Failure(fmt::format("cannot account for {} GPUs", gpus));
  return GpuNanoseconds{whole_nanoseconds(each)} * gpus;
}

double to_seconds(GpuNanoseconds time) { return static_cast<double>(time) / kNanosecondsPerSecond; }

}  // namespace

GpuNanoseconds GpuSeconds::total_nanoseconds() const {
  return std::accumulate(by_use_.begin(), by_use_.end(), GpuNanoseconds{0});
}

GpuSeconds& GpuSeconds::operator+=(const GpuSeconds& more) {
  for (std::size_t use = 0; use < by_use_.size(); ++use) by_use_[use] += more.by_use_[use];
  return *this;
}

double GpuSeconds::seconds(GpuUse use) const { return to_seconds(nanoseconds(use)); }

double GpuSeconds::total_seconds() const { return to_seconds(total_nanoseconds()); }

double GpuSeconds::share(GpuUse use) const {
  const GpuNanoseconds total = total_nanoseconds();
  return total == 0 ? 0 : static_cast<double>(nanoseconds(use)) / static_cast<double>(total);
}

void Ledger::add(GpuUse use, std::int64_t gpus, Seconds each) {
  assert(use != GpuUse::idle);
  account_.by_use_[static_cast<std::size_t>(use)] += gpu_nanoseconds(gpus, each);
  rounding_ += gpus;
}

void Ledger::add(GpuUse use, GpuNanoseconds time) {
  assert(use != GpuUse::idle);
  if (time < 0) throw Failure("cannot account for less than no time");
  account_.by_use_[static_cast<std::size_t>(use)] += time;
}

GpuSeconds Ledger::close() const { return close_at(held_, 0); }

GpuSeconds Ledger::close(std::int64_t gpus_held, Seconds metered) const {
  const GpuNanoseconds held = gpu_nanoseconds(gpus_held, metered);
  return close_at(held, rounding_ + gpus_held + held / kExactParts);
}

GpuSeconds Ledger::close_at(GpuNanoseconds held, GpuNanoseconds rounding) const {
  GpuSeconds closed = account_;
  GpuNanoseconds idle = held - account_.total_nanoseconds();
  if (idle < 0) {
    const GpuNanoseconds excess = -idle;
    if (excess > rounding) {
      throw Failure(fmt::format("the ledger accounts for {} GPU-seconds, {} more than were held",
                                account_.total_seconds(), to_seconds(excess)));
    }
    auto& largest = *std::max_element(closed.by_use_.begin(), closed.by_use_.end());
    largest -= excess;
    if (largest < 0) throw Failure("the ledger's rounding exceeds all that was accounted");
    idle = 0;
  }
  closed.by_use_[static_cast<std::size_t>(GpuUse::idle)] = idle;
  assert(closed.total_nanoseconds() == held);
  return closed;
}

}  // namespace ganymede::sim

#pragma once
// Where every GPU-second of a run went, in whole GPU-nanoseconds: the uses sum exactly to the GPUs held times the
// metered time, before the provider rounds that time up for the bill.

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/gpu_use.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

inline constexpr double kNanosecondsPerSecond = 1e9;

/// Rounds to the nearest nanosecond. Throws Failure if `time` is negative, not finite, or longer than 64 bits hold (292
/// years).
std::int64_t whole_nanoseconds(Seconds time);

/// 65,536 GPUs for a year are 2e21 GPU-nanoseconds: more than 64 bits hold.
__extension__ typedef __int128 GpuNanoseconds;

/// A closed account: GPU time by use.
class GpuSeconds {
 public:
  GpuNanoseconds nanoseconds(GpuUse use) const { return by_use_[static_cast<std::size_t>(use)]; }
  GpuNanoseconds total_nanoseconds() const;  ///< the sum of all uses

  double seconds(GpuUse use) const;
  double total_seconds() const;
  double hours() const { return total_seconds() / 3600; }
  GpuSeconds& operator+=(const GpuSeconds& more);
  /// The use's share of the total, from 0 to 1; 0 in an empty account.
  double share(GpuUse use) const;

  bool operator==(const GpuSeconds&) const = default;

 private:
  friend class Ledger;
  std::array<GpuNanoseconds, kGpuUseNames.size()> by_use_{};
};

/// An open account:
///
///   Ledger ledger;
///   ledger.add(GpuUse::compute, 4, 100_s);
///   const GpuSeconds account = ledger.close(8, 110_s);   // four GPUs idle throughout, four for 10 s
class Ledger {
 public:
  /// Adds `gpus` GPUs that spent `each` on `use`, rounded to the nanosecond. `use` must not be idle: idle time is the
  /// rest that the other uses leave. Throws Failure if `gpus` or `each` is negative, or `each` is not finite.
  void add(GpuUse use, std::int64_t gpus, Seconds each);

  /// Adds GPU-nanoseconds, exactly. Throws Failure if `time` is negative.
  void add(GpuUse use, GpuNanoseconds time);
  /// Adds `gpus` GPUs that were rented for `time` each, whatever they did.
  void hold(std::int64_t gpus, GpuNanoseconds time) { held_ += time * gpus; }
  /// Returns the account of all GPU time that was held; time for which no use was added is idle. Throws Failure if more
  /// was added than was held.
  GpuSeconds close() const;

  /// Returns the account of `gpus_held` GPUs for `metered` each, instead of the time added by hold(). An excess that
  /// rounding explains (a nanosecond per GPU and entry, and 1e-12 of the whole) is taken from the largest use. Throws
  /// Failure if the excess is larger.
  GpuSeconds close(std::int64_t gpus_held, Seconds metered) const;

 private:
  GpuSeconds close_at(GpuNanoseconds held, GpuNanoseconds rounding) const;

  GpuSeconds account_;
  GpuNanoseconds held_ = 0;
  GpuNanoseconds rounding_ = 0;  ///< the most that rounding may have added
};

}  // namespace ganymede::sim

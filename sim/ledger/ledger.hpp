#pragma once
// Where every GPU-second of a run went. Kept in whole GPU-nanoseconds, so that the categories sum to the GPUs held
// times the metered time exactly, before the provider rounds the time up for the bill.

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/gpu_use.hpp"
#include "common/units.hpp"

namespace ganymede {

/// 65,536 GPUs for a year are 2e21 GPU-nanoseconds: more than 64 bits hold.
__extension__ typedef __int128 GpuNanoseconds;

/// A closed account.
class GpuSeconds {
 public:
  GpuNanoseconds nanoseconds(GpuUse use) const { return by_use_[static_cast<std::size_t>(use)]; }
  GpuNanoseconds total_nanoseconds() const;  ///< the sum of all uses

  double seconds(GpuUse use) const;
  double total_seconds() const;
  double hours() const { return total_seconds() / 3600; }
  GpuSeconds& operator+=(const GpuSeconds& more);
  /// The use's part of the total, 0 … 1; 0 of an empty account.
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
  /// `gpus` GPUs spent `each` on `use`, rounded to the nanosecond. Failure if `gpus` or `each` is negative, or `each`
  /// not finite. Not for idle, which is what the others leave.
  void add(GpuUse use, std::int64_t gpus, Seconds each);

  /// The same in GPU-nanoseconds, exactly.
  void add(GpuUse use, GpuNanoseconds time);
  /// `gpus` GPUs were rented for so long, whatever they did.
  void hold(std::int64_t gpus, std::int64_t nanoseconds) { held_ += GpuNanoseconds{nanoseconds} * gpus; }
  /// The account of all that was held.
  GpuSeconds close() const;

  /// The account of `gpus_held` GPUs for `metered`: what was not added is idle. Failure if more was added than was
  /// held; an excess that rounding explains (a nanosecond a GPU an entry, and 1e-12 of the whole) is taken from the
  /// largest use.
  GpuSeconds close(std::int64_t gpus_held, Seconds metered) const;

 private:
  GpuSeconds close_at(GpuNanoseconds held, GpuNanoseconds rounding) const;

  GpuSeconds account_;
  GpuNanoseconds held_ = 0;
  GpuNanoseconds rounding_ = 0;  ///< the most that rounding may have added
};

}  // namespace ganymede

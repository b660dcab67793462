#pragma once
// A proof by execution that a schedule is an all-reduce.

#include <string>

#include "sim/collectives/schedule.hpp"

namespace ganymede {

/// True, or false with the first violation found.
struct Verdict {
  std::string
      violation;  ///< "after the last round rank 3 holds rank 1's contribution to bytes [0, 16) 2 times, expected once"
  explicit operator bool() const { return violation.empty(); }
};

/// Follows each rank's contribution to each byte through all rounds: in the end every rank must hold every contribution
/// exactly once. Transfers that leave the buffer or the ranks, that send to their own source, or that race within a
/// round are violations too. Cost grows with ranks² x distinct byte ranges and with the transfers, not with bytes.
Verdict is_complete(const Schedule& schedule);

}  // namespace ganymede

#pragma once
// A proof by execution that a schedule is an all-reduce.

#include <string>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede::sim {

/// True for a complete schedule; else false, with the first violation found, for example "after the last round rank 3
/// holds rank 1's contribution to bytes [0, 16) 2 times, expected once".
struct Completeness {
  std::string violation;
  explicit operator bool() const { return violation.empty(); }
};

/// Follows each rank's contribution to each byte through all rounds. After the last round
///  - all_reduce: every rank must hold every contribution to every byte exactly once;
///  - reduce_scatter: for each byte some rank must hold every contribution exactly once, and every rank must do so for
///    an equal share of the bytes;
///  - all_gather: all ranks must hold one and the same contribution to each byte, and each rank's contribution to an
///    equal share of the bytes;
///  - broadcast: all ranks must hold rank 0's contribution and no other.
/// Transfers outside the buffer or the endpoints, transfers to their own source, and races within a round are
/// violations too. Switches hold nothing at first and need not hold anything in the end. The cost grows with ranks x
/// endpoints x distinct byte ranges and with the number of transfers, not with bytes.
Completeness is_complete(const Schedule& schedule, Collective collective = Collective::all_reduce);

}  // namespace ganymede::sim

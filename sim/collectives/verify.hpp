#pragma once
// A proof by execution that a schedule is an all-reduce.

#include <string>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede {

/// True, or false with the first violation found.
struct Completeness {
  std::string
      violation;  ///< "after the last round rank 3 holds rank 1's contribution to bytes [0, 16) 2 times, expected once"
  explicit operator bool() const { return violation.empty(); }
};

/// Follows each rank's contribution to each byte through all rounds. In the end
///  - all_reduce: every rank must hold every contribution exactly once;
///  - reduce_scatter: so must somebody for each byte, and every rank for an equal share of the bytes;
///  - all_gather: all ranks must hold the same one contribution to each byte, every rank's for an equal share;
///  - broadcast: all ranks must hold rank 0's contribution and no other.
/// Transfers that leave the buffer or the endpoints, that send to their own source, or that race within a round are
/// violations too. Switches hold nothing at first and need hold nothing in the end. Cost grows with ranks x endpoints x
/// distinct byte ranges and with the transfers, not with bytes.
Completeness is_complete(const Schedule& schedule, Collective collective = Collective::all_reduce);

}  // namespace ganymede

#pragma once
// Exchanges between ranks whose numbers differ in one bit, for any count: the ranks beyond the greatest power of two
// hand their bytes to a rank below it first, and get the total back last (Thakur, Rabenseifner, Gropp, "Optimization of
// collective communication operations in MPICH", 2005).

#include <bit>
#include <vector>

#include "sim/collectives/schedule.hpp"

namespace ganymede {

inline int power_below(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
inline int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

/// The round before (`reduce`) or after the exchanges; no stage where the count is a power of two.
inline void append_surplus(int ranks, std::int64_t bytes, bool reduce, std::vector<Stage>& stages) {
  const int power = power_below(ranks);
  if (power == ranks) return;
  stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& out) {
                      for (int rank = power; rank < ranks; ++rank)
                        out.push_back({reduce ? rank : rank - power, reduce ? rank - power : rank, 0, bytes, reduce});
                    }});
}

}  // namespace ganymede

#pragma once
// The one fabric on which a scheme's time can be derived by hand: a star. The formula of each scheme is in its file
// under schemes/; the simulations are tested against these formulas.

#include <limits>

#include "common/units.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede::sim {

/// A star: every rank hangs on a non-blocking switch by one full-duplex link.
struct Star {
  BytesPerSecond bandwidth;  ///< B: of one link, in each direction
  Seconds latency;           ///< L: of one message, over both of its links and the switch
  /// M: the bandwidth of a GPU's memory, over which each reduced byte moves kMemoryBytesPerReducedByte bytes. Infinite
  /// by default: reduction is free.
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};
};

/// The time in which one GPU adds the bytes that it received to its own.
inline Seconds reduction(Bytes received, const Star& star) {
  return kMemoryBytesPerReducedByte * received / star.memory_bandwidth;
}

/// The time of an all-reduce in which `ranks` - 1 ranks send all bytes to one and get the sum back: n-1 messages of S
/// bytes share the downlink of that rank equally, so all arrive (n-1) S/B after their latency; it adds n-1 buffers one
/// after the other; n-1 messages share its uplink on the way back.
inline Seconds reduce_to_one_time(int ranks, std::int64_t bytes, const Star& star) {
  const double others = ranks - 1;
  const Bytes buffer{static_cast<double>(bytes)};
  return 2 * (others * buffer / star.bandwidth + star.latency) + others * reduction(buffer, star);
}

}  // namespace ganymede::sim

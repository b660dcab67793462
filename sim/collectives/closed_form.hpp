#pragma once
// What a scheme takes on the one fabric where a formula can be derived by hand: a star. Each scheme's formula stands in
// its file; the simulators are tested against them.

#include <limits>

#include "common/units.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede {

/// Every rank hangs on a non-blocking switch by one full-duplex link.
struct Star {
  BytesPerSecond bandwidth;  ///< B: of a link, each way
  Seconds latency;           ///< L: of a message, over both of its links and the switch
  /// M: at which a GPU moves the kMemoryBytesPerReducedByte bytes that each reduced byte costs. Infinite: reduction is
  /// free.
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};
};

/// Of one GPU that adds what it received.
inline Seconds reduction(Bytes received, const Star& star) {
  return kMemoryBytesPerReducedByte * received / star.memory_bandwidth;
}

}  // namespace ganymede

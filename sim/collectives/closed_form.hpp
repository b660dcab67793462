#pragma once
// What the schemes take on the one fabric where a formula can be derived by hand: a star. The simulator is tested
// against these.

#include <cstdint>
#include <limits>

#include "common/units.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede {

/// Every rank hangs on a non-blocking switch by one full-duplex link.
struct Star {
  BytesPerSecond bandwidth;  ///< B: of a link, each way
  Seconds latency;           ///< L: of a message, over both of its links and the switch
  /// M: at which a GPU moves the kMemoryBytesPerReducedByte bytes that each reduced byte costs. Infinite: reduction is
  /// free.
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};
};

// From the moment at which all ranks enter to the last rank's end; n = ranks, S = bytes. Zero for one rank or no bytes.

/// 2 (n-1) (S/(n B) + L) + (n-1) 3 (S/n) / M. Exact when n divides S; else up to the time of one byte a round too
/// short.
Seconds ring_on_star(const Topology& topology, std::int64_t bytes, const Star& star);

/// 2 ((n-1) S/B + L) + (n-1) 3 S / M.
Seconds reduce_to_one_on_star(const Topology& topology, std::int64_t bytes, const Star& star);

/// Reduce-to-one among the g members of the largest group, then reduce-to-one among the k groups.
Seconds hierarchical_copy_on_star(const Topology& topology, std::int64_t bytes, const Star& star);

}  // namespace ganymede

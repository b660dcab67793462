#include "sim/collectives/closed_form.hpp"

#include "sim/collectives/schedule.hpp"

namespace ganymede {
namespace {

bool is_trivial(const Topology& topology, std::int64_t bytes) { return topology.ranks == 1 || bytes == 0; }

Seconds reduction(Bytes received, const Star& star) {
  return kMemoryBytesPerReducedByte * received / star.memory_bandwidth;
}

}  // namespace

// In each of the 2 (n-1) rounds every rank sends one chunk of S/n bytes and receives one. Links are full duplex and
// each carries one message each way, so a round's messages all take S/(n B) + L; in the first n-1 rounds each rank then
// adds the chunk.
Seconds ring_on_star(const Topology& topology, std::int64_t bytes, const Star& star) {
  if (is_trivial(topology, bytes)) return Seconds{0};
  const double hops = topology.ranks - 1;
  const Bytes chunk{static_cast<double>(bytes) / topology.ranks};
  return 2 * hops * (chunk / star.bandwidth + star.latency) + hops * reduction(chunk, star);
}

// n-1 messages of S bytes share rank 0's downlink equally, so all arrive (n-1) S/B after their latency; rank 0 then
// adds n-1 buffers one after the other; n-1 messages share its uplink on the way back.
Seconds reduce_to_one_on_star(const Topology& topology, std::int64_t bytes, const Star& star) {
  if (is_trivial(topology, bytes)) return Seconds{0};
  const double others = topology.ranks - 1;
  const Bytes buffer{static_cast<double>(bytes)};
  return 2 * (others * buffer / star.bandwidth + star.latency) + others * reduction(buffer, star);
}

}  // namespace ganymede

// Ring all-reduce: a reduce-scatter, then an all-gather, each of n - 1 rounds in which every rank sends one chunk to
// its right neighbour (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009).

#include "sim/collectives/allreduce.hpp"

namespace ganymede {
namespace {

struct Ring {
  std::int64_t ranks;
  std::int64_t bytes;

  /// Where chunk i begins: floor(i S / n), written so that no product overflows at 1 TiB and many ranks.
  std::int64_t begin(std::int64_t chunk) const { return chunk * (bytes / ranks) + chunk * (bytes % ranks) / ranks; }

  void operator()(std::int64_t round, std::vector<Transfer>& transfers) const {
    const bool reduce = round < ranks - 1;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      // Chunk c starts at rank c and moves one rank a round, so that after n - 1 rounds rank c - 1 holds its sum, which
      // then goes round once more.
      const std::int64_t chunk = (rank + 2 * ranks - round) % ranks;
      const std::int64_t length = begin(chunk + 1) - begin(chunk);
      if (length == 0) continue;  // fewer bytes than ranks
      transfers.push_back({static_cast<int>(rank), static_cast<int>((rank + 1) % ranks), begin(chunk), length, reduce});
    }
  }
};

}  // namespace

Schedule plan_ring(const Topology& topology, std::int64_t bytes) {
  const std::int64_t rounds = bytes == 0 ? 0 : 2 * (std::int64_t{topology.ranks} - 1);
  return Schedule(topology.ranks, bytes, rounds, Ring{topology.ranks, bytes});
}

}  // namespace ganymede

// Reduce to one device: every rank sends all its bytes to rank 0, which adds them up and sends the sum back to every
// rank. TensorFlow's ReductionToOneDevice does the same, and a central parameter server that is also a worker.

#include "sim/collectives/allreduce.hpp"

namespace ganymede {

Schedule plan_reduce_to_one(const Topology& topology, std::int64_t bytes) {
  const int ranks = topology.ranks;
  const auto expand = [ranks, bytes](std::int64_t round, std::vector<Transfer>& transfers) {
    for (int rank = 1; rank < ranks; ++rank) {
      const bool gather = round == 0;
      transfers.push_back({gather ? rank : 0, gather ? 0 : rank, 0, bytes, gather});
    }
  };
  return Schedule(ranks, bytes, ranks == 1 || bytes == 0 ? 0 : 2, expand);
}

}  // namespace ganymede

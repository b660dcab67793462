#pragma once
// The load of a job's collectives on the links between its ranks, in a step.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/fabric_graph.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Bytes that one rank sends to another in a step, on the wire.
struct RankTraffic {
  int source = 0, destination = 0;
  double bytes = 0;
};

struct CollectiveTraffic {
  double alone_s = 0;  ///< time that a step's collectives take alone
  /// By how many seconds a step becomes longer for each second by which its collectives do: 1 if none of it is hidden.
  double exposed = 1;
  std::vector<RankTraffic> between;  ///< sorted by source and destination
};

/// Sums the traffic of reductions of these sizes over a topology. Transfers to switches that reduce inside a node are
/// left out: no other job uses the same ports.
std::vector<RankTraffic> rank_traffic(const Scheme& scheme, const Topology& topology,
                                      std::span<const std::int64_t> buckets);

/// A link of the cluster and the bytes that a step of a job puts on it.
struct LinkLoad {
  int link = 0;
  double bytes = 0;
};

/// The load on the links of `fabric` if rank i of the job is the fabric's endpoint members[i]; sorted by link.
std::vector<LinkLoad> link_loads(const FabricGraph& fabric, const CollectiveTraffic& traffic,
                                 std::span<const int> members);

}  // namespace ganymede::sim

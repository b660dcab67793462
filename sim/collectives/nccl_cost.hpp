#pragma once
// NCCL's protocols cost more than the links: the latencies of hops, the bytes on the wire, the limits of channels,
// proxies and endpoints.
//
// A platform's latencies are taken as those of a hop with Simple inside a node (the catalogs' come from the same
// tables) and with LL between nodes. Another protocol adds, or takes away, the difference that the tables state.

#include <cstdint>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_pipeline.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {

/// The number of passes in which a ring with LL sends the bytes; 1 for other protocols.
std::int64_t nccl_passes(const PlanRequest& request, const NcclChoice& choice);

/// The costs of a ring of `lanes` lanes.
ProtocolCost nccl_ring_cost(const PlanRequest& request, const NcclChoice& choice, NcclVersion version, int lanes);

/// The costs of a tree, NVLS or NVLSTree of `lanes` lanes that sends its chunks as `pipeline` says.
ProtocolCost nccl_tree_cost(const PlanRequest& request, const NcclChoice& choice, NcclVersion version,
                            const NcclPipeline& pipeline, int lanes);

}  // namespace ganymede::sim

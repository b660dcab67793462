#pragma once
// The choices that a network's plugin makes in place of NCCL's tuner.

#include <optional>
#include <utility>

#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {

/// The choice of EFA's plugin for an all-reduce over P5 instances with eight GPUs a node, up to 16 nodes; nullopt where
/// it leaves the choice to NCCL: elsewhere, and before NCCL 2.19, which knows no tuners of plugins.
std::optional<std::pair<NcclAlgorithm, NcclProtocol>> nccl_plugin_choice(const Topology& topology, std::int64_t bytes,
                                                                         NcclVersion version);

}  // namespace ganymede::sim

#pragma once
// The beat of jobs that share links: some steps of each, message by message.

#include <vector>

#include "sim/cluster/cluster_state.hpp"

namespace ganymede::sim {

/// The mean step of each of these jobs, which share links of one pool, from their phases on. Empty if that takes more
/// messages than `messages_left`, which becomes less by those that are simulated, or than one group may take.
std::vector<double> beat(const ClusterContext& context, const std::vector<const RunningJob*>& jobs,
                         double& messages_left);

}  // namespace ganymede::sim

#pragma once
// A scenario without prices, faults or storage: what checks of step times need.

#include <cstdint>
#include <memory>

#include "sim/scenario/scenario.hpp"

namespace ganymede {

/// `nodes` nodes of an instance of `platform`, `gpus_per_node` of whose GPUs train `steps` steps of the trace's first
/// entry. The scheme is a ring, the policy keeps what it has.
Scenario bare_scenario(std::shared_ptr<const Platform> platform, const std::string& instance, int nodes,
                       int gpus_per_node, const StepTrace& trace, std::int64_t steps);

}  // namespace ganymede

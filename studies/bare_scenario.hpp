#pragma once
// A scenario without prices, faults or storage, for checks of step times.

#include <cstdint>
#include <memory>

#include "sim/scenario/scenario.hpp"

namespace ganymede::studies {

/// Returns a scenario in which `nodes` nodes of `instance`, a type of `platform`, train `steps` steps of the trace's
/// first batch entry on `gpus_per_node` GPUs each. The all-reduce scheme is `ring`, the policy `fixed`.
sim::Scenario bare_scenario(std::shared_ptr<const platforms::Platform> platform, const std::string& instance, int nodes,
                            int gpus_per_node, const traces::StepTrace& trace, std::int64_t steps);

}  // namespace ganymede::studies

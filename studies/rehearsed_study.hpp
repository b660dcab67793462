#pragma once
// Rehearsals as studies that `ganymede validate` runs.

#include <string>

#include "common/json_fwd.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::studies {

/// A ganymede.validation/1 study of what was measured in the steps of a rehearsal, in the scenario's own time: the
/// step, and each use of the GPUs above a twentieth of it. `result` is what rehearsal::rehearse_scenario() returns;
/// `is_played`: on a network that was made here (--hosts), and not on the scenario's own.
OrderedJson steps_study(const sim::Scenario& scenario, const OrderedJson& result, bool is_played,
                        const std::string& name);
/// The same of a rehearsed life: its time, each use of the GPUs above a twentieth of it, and the bill.
OrderedJson life_study(const sim::Scenario& scenario, const OrderedJson& result, const std::string& name);

}  // namespace ganymede::studies

#pragma once
// The result of a finished run.

#include "sim/run/result.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {

/// Throws Failure if an amount of the bill does not fit into 64 bits.
Result result_of(const Scenario& scenario, const RunRecord& record);

}  // namespace ganymede::sim

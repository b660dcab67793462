#pragma once
// What makes a finished run's result less sure than its numbers say, and where its inputs come from.

#include <string>
#include <vector>

#include "sim/run/run_record.hpp"

namespace ganymede::sim {

/// Warnings about inputs and about the steps that were simulated, without repetitions, in the order in which a result
/// lists them.
std::vector<std::string> warnings_of(const Scenario& scenario, const RunRecord& record);

/// The least certain input of the run's steps: "measured" or "transferred".
std::string step_inputs(const RunRecord& record);
/// How the steps of the pools that were used are known: " and " between different rules.
std::string step_source(const RunRecord& record);
/// How sure it is when spot nodes are taken back: the least sure of the pools that were used or asked for.
std::string interruption_risk(const Scenario& scenario, const RunRecord& record);

/// Appends those of `more` that `warnings` does not contain.
void append_new(std::vector<std::string>& warnings, const std::vector<std::string>& more);

}  // namespace ganymede::sim

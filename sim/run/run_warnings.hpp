#pragma once
// Warnings about a finished run's result, and how certain its inputs are.

#include <string>
#include <vector>

#include "sim/run/run_record.hpp"

namespace ganymede::sim {

/// Warnings about inputs and about the steps that were simulated, without repetitions, in the order in which a result
/// lists them.
std::vector<std::string> warnings_of(const Scenario& scenario, const RunRecord& record);

/// The least certain input of the run's steps: "measured" or "transferred".
std::string step_inputs(const RunRecord& record);
/// How the steps of the used pools are known; different sources are joined by " and ".
std::string step_source(const RunRecord& record);
/// How certain it is when spot nodes are taken back (risk_of()), for the least certain of the pools that were used or
/// asked for.
std::string interruption_risk(const Scenario& scenario, const RunRecord& record);

/// Appends those of `more` that `warnings` does not contain.
void append_new(std::vector<std::string>& warnings, const std::vector<std::string>& more);

}  // namespace ganymede::sim

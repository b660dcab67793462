#pragma once
// A worker's step with several passes, and with one reduction of all gradients of a network.

#include <string_view>

#include "calibration/step_model.hpp"
#include "calibration/workload_model.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// True if the phase updates weights, so that a step with several passes has it only once: it is named "update",
/// "NETWORK.update" or so.
bool is_update(std::string_view phase);

/// Returns the step in which each network accumulates its gradients over `passes` passes. `pass` is the step of one
/// pass. The phases up to those that complete a network's gradients are repeated; gradients are ready in the last pass.
/// Updates happen once. For example, with two passes
///
///   D.forward D.backward D.update G.forward G.backward G.update
///
/// becomes D.forward D.backward D.forward D.backward D.update G.forward G.backward G.forward G.backward G.update. The
/// passes of a step repeat consecutive recorded steps. The input pipeline prepares the images of all passes.
calibration::StepModel accumulate(const calibration::StepModel& pass, int passes);

/// Returns the step in which all gradients of a network that are needed at the same time are one bucket, ready when the
/// phase that completes them has ended.
calibration::StepModel flatten(calibration::StepModel model);

/// The step models of one pass, adapted to the scenario's accumulation and reduction.
calibration::WorkloadModel in_passes(calibration::WorkloadModel workload, const Scenario& scenario);

}  // namespace ganymede::sim

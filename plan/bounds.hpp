#pragma once
// Lower bounds of the time and the cost of a candidate, computed without simulating it. The median of its runs is not
// faster or cheaper, and nor is a single run, but for starts that are faster than one in a thousand. bounds.cpp proves
// them.

#include <cstdint>
#include <span>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/outcome.hpp"
#include "sim/run/fleet.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// What every run on the instance type takes once before its first step; without its work.
LeastWork least_start(const Request& request, const platforms::Platform& platform, const platforms::Instance& instance);

/// The least share of the candidate's work that is paid for. A platform of the user's may say that nodes are taken back
/// at any rate and are free for any time, and `why` asks what would be if they were taken back more often: then every
/// node but the last may be free, and nothing is certain to be paid for.
double least_paid_share(const Request& request, const PlanCandidate& candidate);

/// Bounds of `candidate` from its least work.
Bounds bounds_of(const Request& request, const PlanCandidate& candidate);

/// Tighter bounds, from simulated steps: `step_s` are the mean step times of the candidate's whole allocation, one for
/// each stage, and a step trains `images` images. Returns nothing if the policy may train with another allocation than
/// the whole one, or if faults, storage or another fidelity make steps differ during the run.
std::optional<Bounds> bounds_by_steps(const Request& request, const PlanCandidate& candidate,
                                      std::span<const double> step_s, double images);

/// Bounds of a run that gets to an FID after `images`, from those of its candidate's median run; 0 where the mode of
/// training decides which images count.
Bounds bounds_for_images(const Request& request, const PlanCandidate& candidate, const Bounds& median,
                         std::int64_t images);

/// Raises the costs of `run` to those of nodes that are held until `end_s`: all on demand, and those on spot for
/// `spot_node_s` in all, while `interrupted` of them are taken back.
void add_waits(const Request& request, const PlanCandidate& candidate, double end_s, double spot_node_s,
               double interrupted, Bounds& run);

/// What a run takes and costs at least that has these nodes at `now` and goes on.
Bounds bounds_of_unfinished(const Request& request, const sim::Scenario& scenario, sim::Nanoseconds now,
                            const std::vector<sim::Node>& nodes);

/// Rules out the `open` candidates that miss a goal without a simulation: by their bounds alone, or because fewer
/// trainings of their batch get to the FID than must meet the goals. `goal` is the FID, null if there is none; the
/// images to it are forecast at the batches of all candidates.
void rule_out(const Request& request, const Candidates& candidates, const calibration::QualityGoal* goal,
              const std::vector<bool>& open, std::vector<PlannedRun>& runs);

}  // namespace ganymede::plan

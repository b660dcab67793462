#pragma once
// What no run of a candidate can beat.

#include <span>

#include "plan/candidates.hpp"

namespace ganymede {

/// Seconds of one GPU for one image, at least.
struct LeastWork {
  double alone_s = 0;   ///< on one node
  double joined_s = 0;  ///< on several, which exchange their gradients in each step
};

LeastWork least_work(const Request& request, const Request::Batch& batch, const Platform& platform,
                     const Instance& instance);

Bounds bounds_of(const Request& request, const PlanCandidate& candidate, const LeastWork& work);

/// Bounds from the steps themselves: `step_s` are the mean steps of the candidate's whole allocation, by stage, each of
/// which trains `images`. None where the policy may train with another allocation, or where steps vary on the way.
std::optional<Bounds> bounds_by_steps(const Request& request, const PlanCandidate& candidate,
                                      std::span<const double> step_s, double images);

}  // namespace ganymede

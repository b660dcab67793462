#pragma once
// What many runs say together: distributions over seeds, and which policy is better by more than the noise.

#include <nlohmann/json_fwd.hpp>

namespace ganymede {

/// Adds to a `ganymede.sweep/1`:
///   "groups": runs that differ in their seed alone, with the median, 5th and 95th percentile of time, cost,
///   GPU-hours and carbon (0 where it is not known), mean losses and share of met goals;
///   "rankings": where several policies ran on the same platform, allocation and scheme: for each of these
///   the policies from best to worst by median, each compared with `fixed` (else with the best) on the seeds that both
///   finished: the mean of the relative differences with its 95 % interval (Student's t), and whether that excludes 0.
void summarize(nlohmann::ordered_json& sweep);

}  // namespace ganymede

#pragma once
// How often a training whose goal is an FID is evaluated.

#include <cstdint>
#include <optional>

#include "plan/candidates.hpp"

namespace ganymede::plan {

/// The evaluations of a request if the plan shall choose their interval, "best"; otherwise nothing.
std::optional<sim::Evaluation> read_checks(const JsonNode& request_node, const Request& request);

/// Images from one evaluation to the next that lengthen a training the least. A training that takes `train_s` for
/// `images` pauses for `pause_s` after each interval, and after it has got to its FID it goes on to the next
/// evaluation, for half an interval on average. Both together are least at images * sqrt(2 pause_s / train_s). A
/// multiple of `batch`, and at most `images`.
std::int64_t best_check_interval(double images, double train_s, double pause_s, double batch);

/// The same for a candidate of a request that leaves the interval open.
std::int64_t check_interval_of(const Request& request, const PlanCandidate& candidate);

}  // namespace ganymede::plan

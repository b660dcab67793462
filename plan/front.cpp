#include "plan/front.hpp"

#include <algorithm>

#include "plan/planner.hpp"

namespace ganymede::plan {

// The mean of the runs, in which half of the outcomes are above the median, is at least half of the bound, and the mean
// of the worst tenth at least the whole. To an FID, that holds for the half of the runs that need more images than the
// median.
double least_objective(const Request& request, const Bounds& bounds) {
  return request.objective == Objective::time           ? bounds.time_s
         : request.objective == Objective::risk_neutral ? (request.quality ? 0.25 : 0.5) * bounds.usd_at_worst
                                                        : bounds.usd_at_worst;
}

void Front::take_in(const PlanCandidate& candidate, const PlannedRun& run) {
  const double objective = objective_of(*request_, run);
  least_ = std::min(least_.value_or(objective), objective);
  if (run.risk_is_known()) least_of_known_risk_ = std::min(least_of_known_risk_.value_or(objective), objective);
  double& of_offer = least_of_each_.try_emplace(offer_of(candidate), objective).first->second;
  of_offer = std::min(of_offer, objective);
  const Point point{run.time_s.median, run.usd_at_worst};
  if (std::any_of(points_.begin(), points_.end(), [&](const Point& other) { return other <= point; })) return;
  std::erase_if(points_, [&](const Point& other) { return point <= other; });
  points_.push_back(point);
}

bool Front::beats(const PlanCandidate& candidate, const Bounds& bounds) const {
  if (exhaustive_ || request_->objective == Objective::carbon) return false;
  const double objective = least_objective(*request_, bounds);
  if (at_most_) return (all_at_most_ ? *at_most_ : *least_) < objective;
  if (!candidate.at_risk() && !(least_of_known_risk_ && *least_of_known_risk_ < objective)) return false;
  const auto of_offer = least_of_each_.find(offer_of(candidate));
  if (of_offer == least_of_each_.end() || !(of_offer->second < objective)) return false;
  const Point least{bounds.time_s, bounds.usd_at_worst};
  return std::any_of(points_.begin(), points_.end(),
                     [&](const Point& point) { return point <= least && !(point == least); });
}

}  // namespace ganymede::plan

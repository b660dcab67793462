#pragma once
// The short answer of a plan: three ways to meet the goals, and what a little more money buys.

#include <cstddef>
#include <tuple>

#include "plan/planner.hpp"

namespace ganymede::plan {

/// The order of candidates that are equally good: the faster one is first, then the cheaper one with doubtful prices at
/// their highest values. Offers of several regions may be equal in both, because no doubtful price is taken to exceed
/// that on demand; then what is stated decides, so that it is the one that in_dearer_region() keeps.
std::tuple<double, double, double, double, std::size_t> time_and_cost(const Plan& plan, std::size_t i);

/// The three cards of a plan whose candidates have verdicts and whose Pareto set is known.
///
/// - cheapest: the end of the Pareto set with the lowest cost.
/// - balanced: the knee of the Pareto set, which is the point farthest below the straight line that joins its two ends
///   (Das, "On characterizing the knee of the Pareto curve based on Normal-Boundary Intersection", Structural
///   Optimization 18, 1999). Time and cost are taken as logarithms, because a factor of two counts the same everywhere,
///   and each is scaled to go from 0 to 1 over the set. If no point lies below the line, it is the cheapest.
/// - safest: the highest probability to meet the goals, in steps of 0.1 %, more than 99 % all alike. Among equals,
///   one whose risk is known, of these the one whose cost has the lowest upper end, then the first. It is the safest of
///   what was simulated.
Cards cards_of(const Plan& plan);

/// Candidates that meet the goals and cost at most 5 % more than the best one, both in the median and with doubtful
/// prices at their highest values: the fastest of them if it takes at least 10 % less time than the best one, and the
/// one of the highest probability if that is at least a percentage point higher. None if the best one cannot be
/// improved so.
std::vector<std::size_t> more_money_of(const Plan& plan);

/// A probability in steps of 0.1 %, more than 99 % as 1, so that a difference nobody could notice decides nothing.
int per_mille(double probability);

}  // namespace ganymede::plan

#pragma once
// Changes of a request for questions of the kind "what if": another price, longer steps, more interruptions, a longer
// boot. Everything is then evaluated as for any request.

#include "plan/candidates.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// What the choice of a plan may hang on.
enum class Assumption {
  price,          ///< dollars an hour of one node on the chosen market and in the chosen region
  prices,         ///< the same price, with those of the other regions in proportion
  step_time,      ///< factor on the steps of the chosen GPU, wherever it is rented
  interruptions,  ///< factor on how often the chosen spot nodes are taken back
  boot            ///< seconds from request to running host, of all nodes of the chosen provider; if the request
                  ///< states a boot time, of all nodes
};
constexpr Assumption kAssumptions[] = {Assumption::price, Assumption::prices, Assumption::step_time,
                                       Assumption::interruptions, Assumption::boot};
std::string_view to_string(Assumption assumption);

/// The request with an assumption about `chosen` at `value`. Units are those of Assumption.
Request with_assumption(const Request& request, const PlanCandidate& chosen, Assumption assumption, double value);
/// The assumption's value in the request as it is.
double value_of(const Request& request, const PlanCandidate& chosen, Assumption assumption);
/// True if another value of the assumption about `chosen` may change the runs of `candidate`.
bool is_affected(const Request& request, const PlanCandidate& chosen, const PlanCandidate& candidate,
                 Assumption assumption);

/// Carries what the request changes besides its catalogs into a scenario of one of its candidates.
void apply_what_if(const Request& request, sim::Scenario& scenario);
/// Factor on the steps of that GPU.
double step_factor(const Request& request, const platforms::Gpu& gpu);

}  // namespace ganymede::plan

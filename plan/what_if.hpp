#pragma once
// Changes of a request for questions of the kind "what if": another price, longer steps, more interruptions, a longer
// boot. Everything is then evaluated as for any request.

#include "plan/candidates.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// What the choice of a plan may hang on.
enum class Knob {
  price,          ///< dollars an hour of one node on the chosen market and in the chosen region
  prices,         ///< the same price, with those of the other regions in proportion
  step_time,      ///< factor on the steps of the chosen GPU, wherever it is rented
  interruptions,  ///< factor on how often the chosen spot nodes are taken back
  boot            ///< seconds from request to running host, of all nodes of the chosen provider; if the request
                  ///< states a boot time, of all nodes
};
constexpr Knob kKnobs[] = {Knob::price, Knob::prices, Knob::step_time, Knob::interruptions, Knob::boot};
std::string_view to_string(Knob knob);

/// The request with the knob of `chosen` at `value`. Units are those of Knob.
Request turned(const Request& request, const PlanCandidate& chosen, Knob knob, double value);
/// The knob's value in the request as it is.
double value_of(const Request& request, const PlanCandidate& chosen, Knob knob);
/// True if turning the knob of `chosen` may change the runs of `candidate`.
bool is_affected(const Request& request, const PlanCandidate& chosen, const PlanCandidate& candidate, Knob knob);

/// Carries the request's changes into a scenario of one of its candidates, which was read from files.
void apply_what_if(const Request& request, sim::Scenario& scenario);
/// Factor on the steps of that GPU.
double step_factor(const Request& request, const platforms::Gpu& gpu);

}  // namespace ganymede::plan

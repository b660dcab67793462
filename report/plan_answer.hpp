#pragma once
// The short answer of a plan, for people who read nothing else: a sentence that can be forwarded and three cards. And
// what the choice hangs on.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/plan.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// Said beside the share that ranges hold: they were made as wide as known machines ask for (docs/model.md).
inline constexpr const char* kUnknownMachines =
    "; on machines unlike those that the model was made with fewer hold, of collectives about half";

/// The probability of a plan's row to meet the goals, for example "97 %", rounded down. "> 99 %" stands for more,
/// because errors are stated from some hundreds of measurements, which cannot tell more. Where interruptions are drawn
/// and all runs meet the goals, it is "all of 20", which is all that 20 runs say. Rows of earlier versions have the
/// share of their runs instead.
std::string plan_probability(const documents::PlanRow& row);

/// The same with the runs of which it is a share: "95 % of 20 runs", "all of 20 runs"; "> 99 %" where nothing is drawn.
std::string plan_probability_of_runs(const documents::PlanRow& row);

/// How many nodes are lost in a run, on average: "0.35 a run", or "none" where nobody takes nodes back.
std::string plan_interruptions(const documents::PlanRow& row);

/// The event that a plan's probabilities are of: "goals met", or "finishes" if its request has neither deadline, budget
/// nor FID.
std::string plan_outcome(const documents::PlanRequest& request);

/// The target of a plan, from its "request": "20,000,000 images", or "an FID of 30".
std::string plan_target(const documents::PlanRequest& request);

/// The answer in words: what to rent, its cost and time with ranges, the probability to meet the goals, and what a
/// little more money buys; without a choice, that nothing meets the goals. For example "Rent 1 x g2-standard-4 (L4) at
/// gcp us-east4: 0.62 USD (0.52 .. 0.75) in 53 min (44 .. 63 min). The probability to keep to 2 h and 5 USD is > 99 %."
std::string plan_answer(const documents::Plan& plan);

/// Why another candidate has a lower median cost than the card "cheapest": its price is doubtful, and prices are
/// compared at the high end of what they may be. Empty if none has.
std::string plan_cheaper_if(const documents::Plan& plan);

/// Says what share of the outcomes the plan's ranges hold, and what they are made of.
std::string plan_range_level(const documents::Plan& plan);

/// One way to meet the goals. A candidate that is several of them has one card with all their names.
struct PlanCard {
  std::string name;    ///< "cheapest", "balanced, safest", …
  std::string about;   ///< what these names mean
  std::string rented;  ///< what and where
  std::string cost, time, probability;
  std::string hourly;         ///< the price of all nodes an hour
  std::string interruptions;  ///< plan_interruptions()
};
/// The cards of a plan; empty if nothing meets the goals, or if an earlier version wrote the plan.
std::vector<PlanCard> plan_cards(const documents::Plan& plan);

/// The cards, for a terminal of `width` columns.
std::string plan_cards_text(const documents::Plan& plan, std::size_t width);

/// A `ganymede.why/1` as text, fitted to `width` columns.
std::string why_text(const Json& document, std::size_t width);

}  // namespace ganymede::report

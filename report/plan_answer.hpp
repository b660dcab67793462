#pragma once
// The short answer of a plan, for people who read nothing else: a sentence that can be forwarded and three cards. And
// what the choice hangs on.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/wrap.hpp"

namespace ganymede::report {

/// The probability of a plan's row to meet the goals, for example "97.3 %", rounded down. "> 99.9 %" stands for more.
/// Rows of earlier versions have the share of their runs instead.
std::string plan_probability(const nlohmann::json& row);

/// What a plan's probabilities are of: "goals met", or "finishes" if its request has neither deadline, budget nor FID.
std::string plan_outcome(const nlohmann::json& request);

/// What a plan trains to, from its "request": "20,000,000 images", or "an FID of 30".
std::string plan_target(const nlohmann::json& request);

/// What to rent, its cost and time with ranges, the probability to meet the goals, and what a little more money buys;
/// without a choice, that nothing meets the goals. For example "Rent 1 x g2-standard-4 (1 x L4) at gcp us-east4: 0.62
/// USD (0.52 .. 0.75) in 0:52:54 (0:44:00 .. 1:03:00). The probability to keep to 2:00:00 and 5.00 USD is > 99.9 %."
std::string plan_answer(const nlohmann::json& plan);

/// One way to meet the goals. A candidate that is several of them has one card with all their names.
struct PlanCard {
  std::string name;    ///< "cheapest", "balanced, safest", …
  std::string rented;  ///< what and where
  std::string cost, time, probability;
};
/// The cards of a plan; empty if nothing meets the goals, or if an earlier version wrote the plan.
std::vector<PlanCard> plan_cards(const nlohmann::json& plan);

/// The cards and the sentence, for the end of a plan on a terminal of `width` columns.
std::string plan_answer_text(const nlohmann::json& plan, std::size_t width);

/// A `ganymede.why/1` as text, fitted to `width` columns.
std::string why_text(const nlohmann::json& why, std::size_t width);

}  // namespace ganymede::report

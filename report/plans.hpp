#pragma once
// A plan as people read it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "report/wrap.hpp"

namespace ganymede {

/// What stands above a plan's Pareto set, on the terminal and on the page.
inline constexpr std::string_view kPlanPareto =
    "Nothing that meets the goals is both faster and cheaper than one of these, doubtful prices taken at the high end "
    "of "
    "what they may be";
/// What the marks (!) and (?) beside a candidate mean.
inline constexpr std::string_view kAssumedRisk = "when nodes are taken back there is drawn for each seed, not measured";
inline constexpr std::string_view kDoubtfulPrice =
    "a price that is undated, old or implausibly low; intervals hold what it may be, and candidates are ranked by its "
    "high end";

/// Of a plan's row "2 x p3.2xlarge", with how many nodes are on demand, the GPUs of each where it is a part of the
/// instance, and the batch size where the request searched several.
std::string plan_rented(const nlohmann::json& row, const nlohmann::json& request);

struct PlanMarks {
  bool risk_assumed = false;    ///< when its nodes are taken back is an assumption: no recording and nobody says it
  bool price_doubtful = false;  ///< undated, old or implausibly low
};
PlanMarks plan_marks(const nlohmann::json& row);

/// Of `ganymede.plan/1`: what was searched, the candidates to choose from with the chosen one marked, the Pareto set,
/// the near misses and why they failed; fitted to `width` columns (report/table.hpp).
std::string plan_text(const nlohmann::json& plan, std::size_t width = kAnyWidth);
/// All simulated candidates, a row each.
std::string plan_csv(const nlohmann::json& plan);

}  // namespace ganymede

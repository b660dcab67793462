#pragma once
// A plan as text and as CSV.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "report/wrap.hpp"

namespace ganymede::report {

/// The heading of a plan's Pareto set, on the terminal and on the page.
inline constexpr std::string_view kPlanPareto =
    "Nothing that meets the goals is both faster and cheaper than one of these, doubtful prices taken at the high end "
    "of "
    "what they may be";
/// What the marks (!) and (?) beside a candidate mean.
inline constexpr std::string_view kAssumedRisk = "when nodes are taken back there is drawn for each seed, not measured";
inline constexpr std::string_view kDoubtfulPrice =
    "a price that is undated, old or implausibly low; intervals hold what it may be, and candidates are ranked by its "
    "high end";

/// Where a row of a plan is: provider and region, and the market if it is not on demand.
std::string plan_place(const nlohmann::json& row);
/// What a row of a plan rents, for example "2 x p3.2xlarge". The text includes the number of nodes on demand if only
/// some are, the GPUs of each node if not all are used, and the batch size if the request searched several.
std::string plan_rented(const nlohmann::json& row, const nlohmann::json& request);

struct PlanMarks {
  bool risk_assumed = false;    ///< when nodes are taken back is assumed: neither recorded nor published
  bool price_doubtful = false;  ///< the price is undated, old or implausibly low
};
PlanMarks plan_marks(const nlohmann::json& row);

/// Returns a `ganymede.plan/1` as text: what was searched, the candidates with the chosen one marked, the Pareto set,
/// the near misses and why they failed. It is fitted to `width` columns (table.hpp).
std::string plan_text(const nlohmann::json& plan, std::size_t width = kAnyWidth);
/// Returns CSV with one row for each simulated candidate.
std::string plan_csv(const nlohmann::json& plan);

}  // namespace ganymede::report

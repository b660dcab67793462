#pragma once
// A plan as text and as CSV.

#include <string>
#include <string_view>

#include "common/json_fwd.hpp"
#include "documents/plan.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The heading of a plan's Pareto set, on the terminal and on the page.
inline constexpr std::string_view kPlanPareto =
    "Nothing that meets the goals is both faster and cheaper than one of these, doubtful prices taken at the high end "
    "of "
    "what they may be";
/// The meaning of the marks (!) and (?) beside a candidate.
inline constexpr std::string_view kAssumedRisk =
    "how often these nodes are taken back is assumed: each run draws it from recordings of other GPUs";
inline constexpr std::string_view kDoubtfulPrice =
    "a price that is undated, old, implausibly low or of differing hosts: ranges hold what it may be, and prices are "
    "compared at the high end";
/// Where the rest of a plan is, below its short form.
inline constexpr std::string_view kPlanMore =
    "More: --verbose (Pareto set, near misses, steps, all warnings); --save FILE, then why FILE and report FILE.";

/// The date of a price for a sentence, with its age on the day `today` if that is known: "undated", "of 2026-07-20",
/// "of 2026-07-20, 131 days old".
std::string price_date(const std::string& as_of, const std::string& today);
/// The same for a table: "undated", "2026-07-20", "131 d", "4 mo".
std::string price_age(const std::string& as_of, const std::string& today);

/// Where a row of a plan is: provider and region, and the market if it is not on demand.
std::string plan_place(const documents::PlanRow& row);
/// The nodes of a row of a plan, for example "2 x p3.2xlarge", with the number of those on demand if only some are and
/// the GPUs of each if not all are used.
std::string plan_nodes(const documents::PlanRow& row);
/// The batch size of a row if the request searched several, "batch 128"; else nothing.
std::string plan_batch(const documents::PlanRow& row, const documents::PlanRequest& request);
/// Nodes, GPUs and batch size: "2 x p3.8xlarge (8 x V100, batch 64)".
std::string plan_rented(const documents::PlanRow& row, const documents::PlanRequest& request);

struct PlanMarks {
  bool risk_assumed = false;    ///< when nodes are taken back is assumed: neither recorded nor published
  bool price_doubtful = false;  ///< the price is undated, old, implausibly low or of differing hosts
};
PlanMarks plan_marks(const documents::PlanRow& row);

enum class PlanDetail { answer, all };

/// Returns a `ganymede.plan/1` as text, fitted to `width` columns (table.hpp): cards, the best of each provider and
/// market, what to beware of, and a sentence that can be forwarded. In full also what was searched, the Pareto set, the
/// near misses and why they failed, the steps, and all warnings.
std::string plan_text(const Json& document, std::size_t width = kAnyWidth, PlanDetail detail = PlanDetail::all);
/// Returns CSV with one row for each simulated candidate.
std::string plan_csv(const Json& document);

}  // namespace ganymede::report

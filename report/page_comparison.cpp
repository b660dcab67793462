// The sections that compare candidates: time against cost, scaling, the seeds of policies, FID against dollars.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/json_value.hpp"
#include "report/forecasts.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {
std::string shown_digits(double value) {
  if (!std::isfinite(value)) return "-";
  return std::abs(value) < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}
std::string cost_of(double value) { return std::isfinite(value) ? usd(value) : "no price"; }
std::string between(const Estimate& estimate, auto&& shown) {
  return std::isfinite(estimate.low) && std::isfinite(estimate.high) ? range(estimate.low, estimate.high, shown) : "";
}

/// The marks of the terminal: (?) for a doubtful price, (!) for a risk that was not measured.
std::string price_mark(const ReportCandidate& candidate) { return candidate.price_doubtful ? " (?)" : ""; }
std::string risk_mark(const ReportCandidate& candidate) { return candidate.risk_assumed ? " (!)" : ""; }

std::string legend_of(const std::vector<ReportCandidate>& candidates) {
  const auto any = [&](auto&& holds) { return std::any_of(candidates.begin(), candidates.end(), holds); };
  std::string out;
  if (any([](const ReportCandidate& candidate) { return candidate.risk_assumed; }))
    out += "<p class=about>(!) " + std::string(kAssumedRisk) + ".</p>\n";
  if (any([](const ReportCandidate& candidate) { return candidate.price_doubtful; }))
    out += "<p class=about>(?) " + std::string(kDoubtfulPrice) + ".</p>\n";
  return out;
}

/// The standing of a candidate among the others: chosen by the plan, or beaten by none.
std::string standing_of(const PageInput& page, std::size_t i) {
  if (page.candidates[i].chosen) return "chosen";
  return std::find(page.pareto.begin(), page.pareto.end(), i) != page.pareto.end() ? "Pareto" : "";
}

std::string outcome_of(const PageInput& page) {
  return page.plan != nullptr ? plan_outcome(page.plan->request) : "goals met";
}

/// The table for readers without a script, who cannot filter; the script puts one of all candidates in its place.
std::string candidates_table(const PageInput& page) {
  Table table({"rented", ">GPUs", "where", "scheme", "policy", ">runs", ">time", ">USD", ">USD a million images",
               ">USD a GPU-hour", ">GPU busy", ">kg CO2e", ">" + outcome_of(page)});
  const std::vector<std::size_t> rows = listed(page);
  for (const std::size_t i : rows) {
    const ReportCandidate& row = page.candidates[i];
    const auto above = [](const std::string& first, const std::string& small) {
      return small.empty() ? first : first + "\n" + small;
    };
    table.add({above(row.rented, standing_of(page, i)), gpus_of(row), row.infrastructure, row.scheme, row.policy,
               std::to_string(row.runs), above(clock(row.time_s.middle), between(row.time_s, clock)),
               above(cost_of(row.usd.middle) + price_mark(row), between(row.usd, usd)),
               shown_digits(1e6 * row.usd.middle / row.images), shown_digits(row.usd_per_gpu_hour),
               percent(row.gpu_busy), shown_digits(row.kg_co2e), row.met + risk_mark(row)});
  }
  const std::string caption =
      rows.size() == page.candidates.size()
          ? "Candidates"
          : fmt::format("Candidates: {} of {} are listed, those that none beats and the cheapest others", rows.size(),
                        page.candidates.size());
  return html_of(table, caption, "candidates");
}

/// The candidates of the plan's own Pareto table, in its order.
std::string plan_pareto(const PageInput& page) {
  if (page.kind != "plan" || page.pareto.size() < 2) return "";
  Table table({"where", "rented", "GPUs", "scheme", "policy", ">time", ">USD", ">" + outcome_of(page)});
  for (const std::size_t i : page.pareto) {
    const ReportCandidate& row = page.candidates[i];
    table.add({row.infrastructure, row.rented, gpus_of(row), row.scheme, row.policy, clock(row.time_s.middle),
               cost_of(row.usd.middle) + price_mark(row), row.met + risk_mark(row)});
  }
  return html_of(table, std::string(kPlanPareto), "pareto-table");
}

/// For each number of GPUs the candidate of the highest rate.
using ScalingPoints = std::map<int, const ReportCandidate*>;

std::string part_of(const ReportCandidate& candidate, const std::string& by) {
  return by == "gpu" ? candidate.gpu : by == "where" ? candidate.infrastructure : candidate.scheme;
}

std::map<std::string, ScalingPoints> scaling_of(const std::vector<ReportCandidate>& candidates, const std::string& by) {
  std::map<std::string, ScalingPoints> kinds;
  for (const ReportCandidate& candidate : candidates) {
    if (!candidate.scales || !std::isfinite(candidate.images_per_s)) continue;
    const ReportCandidate*& best = kinds[part_of(candidate, by)][candidate.gpus];
    if (best == nullptr || candidate.images_per_s > best->images_per_s) best = &candidate;
  }
  std::erase_if(kinds, [](const auto& kind) { return kind.second.size() < 2; });
  return kinds;
}

std::string difference_of(const Json& row) {
  if (!row.contains("difference") || row.at("difference").is_null()) return "";
  const Json& difference = row.at("difference");
  return fmt::format("{:+.1f} % [{:+.1f} .. {:+.1f}]{}", 100 * relative_difference(difference),
                     100 * difference.at("interval").at(0).get<double>(),
                     100 * difference.at("interval").at(1).get<double>(),
                     difference.at("beyond_noise").get<bool>() ? "" : ", within the noise");
}

/// The distribution of one run's time and cost over the seeds.
Section seeds_of_run(const documents::SeedRuns& seeds) {
  Section out{"seeds", "Over the seeds", "", {{"policies", "Time and cost over the seeds"}}, ""};
  out.about = fmt::format(
      "Chance decides when nodes are lost. The bar is the 5th to 95th percentile of {} seeds, its line the median, the "
      "thin line the interval with all stated error, a dashed line a goal. {} of {} seeds meet the goals; {:.1f} nodes "
      "are lost on average.",
      seeds.finished, seeds.met, seeds.count, seeds.losses_mean);
  Table table({"what", ">median", ">5th percentile", ">95th percentile", "interval with all stated error"});
  const auto add = [&](const char* name, const SeedQuantiles& spread, auto&& shown) {
    table.add({name, shown(spread.median), shown(spread.p5), shown(spread.p95), range(spread.low, spread.high, shown)});
  };
  add("time", seeds.time_s, clock);
  add("USD", seeds.usd, cost_of);
  out.tables = html_of(table, "Over the seeds");
  return out;
}

}  // namespace

Section comparison_of(const PageInput& page) {
  Section out{"comparison", "Time against cost", "", {{"pareto", "Time against cost of each candidate"}}, ""};
  out.about =
      page.kind == "plan"
          ? "A point is an instance and a count: the cheapest that meets the goals of all regions, schemes, batches "
            "and checkpoints that were simulated, pale where none does. The line joins those that none beats in both "
            "time "
            "and cost by the plan's own rule: only what meets the goals is compared, doubtful prices taken at the high "
            "end of what they may be."
          : "Each point is a candidate; the line joins those that none beats in both time and cost.";
  out.about +=
      " A colour is a provider, a shape a market. What-ifs change prices without simulating anew: policies that look "
      "at prices would decide otherwise.";
  if (page.kind == "plan") out.about += " A plan keeps no bills: all of its cost is taken to be instance-hours.";
  out.tables = "<div id=filters></div>\n" + candidates_table(page) + plan_pareto(page) + legend_of(page.candidates);
  return out;
}

std::string scaling_by(const std::vector<ReportCandidate>& candidates) {
  for (const char* by : {"gpu", "where"})
    if (scaling_of(candidates, by).size() > 1) return by;
  return scaling_of(candidates, "scheme").size() > 1 ? "scheme" : "gpu";
}

void add_scaling(const PageInput& page, std::vector<Section>& sections) {
  const std::string by = scaling_by(page.candidates);
  Table table({by == "gpu" ? "GPU" : by, ">GPUs", ">images/s", ">ideal", ">of ideal", "by"});
  for (const auto& [kind, points] : scaling_of(page.candidates, by)) {
    const auto& [fewest, base] = *points.begin();
    for (const auto& [gpus, best] : points) {
      const double ideal = base->images_per_s * gpus / fewest;
      table.add({kind, std::to_string(gpus), fmt::format("{:.1f}", best->images_per_s), fmt::format("{:.1f}", ideal),
                 percent(best->images_per_s / ideal), name_of(*best)});
    }
    table.rule();
  }
  if (table.size() == 0) return;
  sections.push_back(
      {"scaling",
       "Scaling",
       fmt::format(
           "The highest rate of each {} with each number of GPUs while it trains, without boots and waits for nodes, "
           "against as many times that of the fewest (dashed). The chart has at most six, those of the line above "
           "first.",
           by == "gpu"     ? "kind of GPU"
           : by == "where" ? "place"
                           : "scheme"),
       {{"scaling", "Images a second by number of GPUs, with the ideal"}},
       html_of(table, "Scaling")});
}

void add_policies(const PageInput& page, std::vector<Section>& sections) {
  if (page.kind == "result" && page.runs.front().seeds) sections.push_back(seeds_of_run(*page.runs.front().seeds));
  if (page.kind != "sweep" || !page.document.contains("rankings") || page.document.at("rankings").empty()) return;
  Table table({"where", "what", "policy", ">median", "against", "difference of medians [95 %]"});
  const std::set<std::string> parted = parted_places(page.document);
  for (const Json& ranking : page.document.at("rankings")) {
    const std::string where = ranking.at("platform").get<std::string>() + ", " + allocation_of(ranking, parted) + ", " +
                              ranking.at("scheme").get<std::string>();
    for (const auto& [what, name] : {std::pair{"time_s", "time"}, std::pair{"usd", "USD"},
                                     std::pair{"gpu_hours", "GPU-hours"}, std::pair{"kg_co2e", "kg CO2e"}}) {
      if (!ranking.contains(what) || !ranking.at(what).is_array()) continue;
      for (const Json& row : ranking.at(what)) {
        const double median = amount(row.at("median"));
        table.add({where, name, row.at("policy").get<std::string>(),
                   std::string(what) == "time_s" ? clock(median) : fmt::format("{:.4g}", median),
                   row.value("against", ""), difference_of(row)});
      }
      table.rule();
    }
  }
  sections.push_back(
      {"policies",
       "Policies over seeds",
       "One point a seed; the bar is the 5th to 95th percentile, its line the median. The table compares "
       "each policy\'s median with that of the one it stands against, on the seeds that both finished.",
       {{"policies", "Time and cost of each policy over the seeds"}},
       html_of(table, "Policies")});
}

void add_quality(const PageInput& page, std::vector<Section>& sections) {
  if (page.plan == nullptr || !page.plan->chosen || !page.plan->chosen->quality) return;
  const documents::PlanQuality& quality = *page.plan->chosen->quality;
  if (quality.curve.empty()) return;
  const double fid = page.plan->request.fid.value_or(0);
  Section section;
  section.id = "quality";
  section.title = "FID against dollars";
  section.about = fmt::format(
      "<p>The lowest FID of the chosen training, if its best checkpoint is kept, by what was paid until then: the line "
      "is the median training of the kind, the band holds 90 % of them. The broken line is the FID of the plan, {:g}; "
      "{:.0f} % never get there.</p>\n",
      fid, 100 * quality.never);
  QualityPicture picture{"FID against dollars", true, fid};
  Table table({">USD", ">real images", ">FID", "90 %"});
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const documents::QualityPoint& point : quality.curve) {
    const documents::Measure& best = point.best_fid;
    picture.band.add(point.usd, best.median, best.interval.low, best.interval.high);
    table.add({usd(point.usd), number(point.images), number(best.median),
               range(best.interval.low, best.interval.high, number)});
  }
  section.tables = quality_band_svg(picture);
  section.tables += html_of(table, "FID by dollars");
  sections.push_back(std::move(section));
}

}  // namespace ganymede::report

// The sections of every report: summary, GPU time, energy.

#include "report/page_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede::report {
namespace {
std::string known(double value, auto&& shown, const char* unknown = "not known") {
  return std::isfinite(value) ? shown(value) : unknown;
}
std::string ends(const Estimate& estimate, auto&& shown) {
  if (!std::isfinite(estimate.low) || !std::isfinite(estimate.high)) return "";
  return range(estimate.low, estimate.high, shown);
}
std::string three_digits(double value) { return fmt::format("{:.3g}", value); }

std::string card(const std::string& name, const std::string& value, const std::string& below) {
  return fmt::format("<div class=card><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", escaped(name), escaped(value),
                     escaped(below));
}

/// Time, cost, utilization and carbon of one candidate.
std::string cards(const ReportCandidate& candidate) {
  std::string out = "<dl class=cards>\n";
  out += card("Time", clock(candidate.time_s.middle), ends(candidate.time_s, clock));
  out += card("Cost", std::isfinite(candidate.usd.middle) ? usd(candidate.usd.middle) + " USD" : "no price",
              ends(candidate.usd, usd));
  out += card("GPU busy", percent(candidate.gpu_busy), gpus_of(candidate));
  out += card("Carbon", known(candidate.kg_co2e, three_digits) + (std::isfinite(candidate.kg_co2e) ? " kg CO2e" : ""),
              std::isfinite(candidate.kwh) ? three_digits(candidate.kwh) + " kWh" : "");
  return out + "</dl>\n";
}

std::string verdict_of(const documents::Result& run) {
  if (run.seeds)
    return fmt::format("<p class={}>{} of {} seeds meet the goals.</p>\n",
                       run.seeds->met == run.seeds->count ? "good" : "bad", run.seeds->met, run.seeds->count);
  if (by_chance(run))
    return fmt::format("<p class={} the goals; others may fare otherwise.</p>\n",
                       run.met ? "good>The run of this seed meets" : "bad>The run of this seed misses");
  return run.met ? "<p class=good>All goals are met.</p>\n" : "<p class=bad>A goal is missed.</p>\n";
}

std::string intervals_of(const documents::Result& run) {
  if (!run.seeds) return "Below time and cost is their interval, with all stated error.";
  return fmt::format(
      "Time and cost are the median of {} seeds, below them the interval over these, with all stated "
      "error; all else is of seed {} alone.",
      run.seeds->finished, run.seed);
}

std::string goals_in_text(const PageInput& page) {
  const Goals goals = goals_of(page);
  std::string out;
  if (goals.deadline_s) out += " Deadline: " + clock(*goals.deadline_s) + ".";
  if (goals.budget) out += " Budget: " + decimal(*goals.budget) + " USD.";
  return out;
}

Section summary_of_run(const PageInput& page) {
  const ReportCandidate& run = page.candidates.front();
  Section out{"summary", "Summary", "", {}, cards(run)};
  out.about = fmt::format("{}: {} x {}, scheme {}.{} {}", escaped(name_of(run)), run.gpus, escaped(run.gpu),
                          escaped(run.scheme), goals_in_text(page), intervals_of(page.runs.front()));
  if (goals_of(page).any()) out.tables += verdict_of(page.runs.front());
  // This is the text that the terminal shows.
  out.tables += "<details><summary>Everything in figures</summary><pre>" + escaped(run_text(page.document)) +
                "</pre></details>\n";
  return out;
}

/// Shows a row of a plan as the terminal does: the best of each provider and market.
std::string best_of_each(const documents::Plan& plan) {
  if (plan.best_of_each.empty()) return "";
  const documents::PlanRequest& request = plan.request;
  Table table({"where", "rented", ">USD", ">time", ">" + plan_outcome(request), ">USD/h", ">interruptions", "how"});
  for (const documents::PlanRow& row : plan.best_of_each) {
    const PlanMarks marks = plan_marks(row);
    std::string how = (row.scheme == "none" ? "" : row.scheme + ", ") + row.policy;
    if (row.checkpoint) how += ", checkpoints " + *row.checkpoint;
    const std::string batch = plan_batch(row, request);
    table.add({plan_place(row) + (row.chosen ? "\nchosen" : ""),
               fmt::format("{}\n{} x {}{}{}", plan_nodes(row), row.gpus, row.gpu, batch.empty() ? "" : ", ", batch),
               spoken_usd(row.usd.median) + (marks.price_doubtful ? " (?)" : "") + "\n" +
                   range(row.usd.interval.low, row.usd.interval.high, spoken_usd),
               clock(row.time_s.median) + "\n" + range(row.time_s.interval.low, row.time_s.interval.high, clock),
               plan_probability(row) + (marks.risk_assumed ? " (!)" : ""),
               (row.usd_per_hour ? decimal(*row.usd_per_hour) : "") + "\n" + row.prices_as_of, plan_interruptions(row),
               how});
  }
  return html_of(table, "The best of each provider and market among what was simulated; ranges in small type",
                 "best-of-each");
}

Section summary_of_plan(const PageInput& page) {
  const documents::Plan& plan = *page.plan;
  const documents::Plan::Searched& searched = plan.searched;
  Section out{"summary", "The best of each provider and market", "", {}, best_of_each(plan)};
  out.about = fmt::format(
      "{} candidates: {} proved too slow, {} too dear, {} beaten without simulating them; {} simulated with up to {} "
      "seeds each, {} of them meet the goals. Minimized: {}.{}",
      searched.candidates, searched.too_slow, searched.too_dear, searched.beaten, searched.simulated,
      plan.request.seeds, searched.meeting, escaped(plan.request.objective), goals_in_text(page));
  for (const ReportCandidate& candidate : page.candidates)
    if (candidate.chosen)
      out.about =
          fmt::format("Chosen: {}; GPUs busy {}{}.</p>\n<p class=about>", escaped(name_of(candidate)),
                      percent(candidate.gpu_busy),
                      std::isfinite(candidate.kg_co2e) ? ", " + three_digits(candidate.kg_co2e) + " kg CO2e" : "") +
          out.about;
  if (!plan.chosen) out.tables += "<p class=bad>Nothing that was simulated meets the goals.</p>\n";
  if (!plan.near_misses.empty()) {
    Table misses({"near miss", "rented", "why it fails"});
    for (const documents::PlanRow& row : plan.near_misses)
      misses.add({plan_place(row), plan_rented(row, plan.request), row.reason});
    out.tables += html_of(misses, "Near misses");
  }
  return out;
}

Section summary_of_sweep(const PageInput& page) {
  Section out{"summary", "Summary", "", {}, ""};
  if (page.candidates.empty()) {
    out.tables = "<p class=bad>The study has no finished run.</p>\n";
  } else {
    out.about =
        fmt::format("{} runs in {} configurations.{}", page.runs.size(), page.candidates.size(), goals_in_text(page));
    const auto show = [&](const char* what, const ReportCandidate& candidate) {
      out.tables += fmt::format(
          "<h3>{}</h3><p class=about>{}{}</p>\n{}", what, escaped(name_of(candidate)),
          candidate.met_share == 1 ? "" : "; meets the goals in " + percent(candidate.met_share) + " of its runs",
          cards(candidate));
    };
    if (!page.pareto.empty()) {
      show("Cheapest", page.candidates[page.pareto.back()]);
      if (page.pareto.size() > 1) show("Fastest", page.candidates[page.pareto.front()]);
    }
  }
  if (page.document.contains("failed") && !page.document.at("failed").empty()) {
    Table failed({"run without a result", "policy", "why"});
    for (const Json& run : page.document.at("failed")) {
      if (failed.size() == 200) break;
      failed.add({run.value("run", ""), run.value("policy", ""), run.value("reason", "")});
    }
    out.tables += html_of(failed, fmt::format("{} runs have no result", page.document.at("failed").size()));
  }
  return out;
}

std::string listing(const PageInput& page) {
  return page.candidates.size() <= kMaxListed
             ? ""
             : fmt::format(" The table lists those that none beats and the cheapest others, {} in all.", kMaxListed);
}

void add_ledger(const PageInput& page, std::vector<Section>& sections) {
  std::vector<std::string> names{"what"};
  for (const auto use : kGpuUseNames) names.push_back(">" + std::string(use));
  names.insert(names.end(), {">GPU-hours"});
  std::replace(names.begin(), names.end(), std::string(">exposed_communication"), std::string(">exposed comm."));
  for (auto& name : names) std::replace(name.begin(), name.end(), '_', ' ');
  Table table(names);
  for (const std::size_t i : listed(page)) {
    const ReportCandidate& candidate = page.candidates[i];
    if (!candidate.has_ledger) continue;
    double total = 0;
    for (const double seconds : candidate.gpu_seconds) total += seconds;
    std::vector<std::string> cells{name_of(candidate)};
    for (const double seconds : candidate.gpu_seconds) cells.push_back(total > 0 ? percent(seconds / total) : "");
    cells.push_back(fmt::format("{:.3f}", total / 3600));
    table.add(cells);
  }
  if (table.size() == 0) return;
  sections.push_back({"ledger",
                      "Where GPU time went",
                      std::string() + "Every GPU-second that was paid for, by what it went into." +
                          (page.kind == "result"
                               ? ""
                               : " The chart shows the candidates that the filters leave, the cheapest 25 of them.") +
                          listing(page),
                      {{"ledger", "GPU time of each candidate by use, stacked"}},
                      html_of(table, "Shares of GPU time", "ledger-table")});
}

void add_energy(const PageInput& page, std::vector<Section>& sections) {
  Table table({"what", ">kWh", ">kg CO2e", ">g CO2e a GPU-hour"});
  for (const std::size_t i : listed(page)) {
    const ReportCandidate& candidate = page.candidates[i];
    if (!std::isfinite(candidate.kg_co2e)) continue;
    double gpu_s = 0;
    for (const double seconds : candidate.gpu_seconds) gpu_s += seconds;
    table.add({name_of(candidate), known(candidate.kwh, three_digits, "-"), three_digits(candidate.kg_co2e),
               gpu_s > 0 ? fmt::format("{:.1f}", candidate.kg_co2e * 1e3 / (gpu_s / 3600)) : "-"});
  }
  if (table.size() == 0) return;
  sections.push_back(
      {"energy",
       "Energy and carbon",
       std::string() +
           "Of GPUs and, where their power is known, hosts, with the region's grid and the data center's "
           "overhead (PUE)." +
           (page.kind == "result" ? ""
            : page.kind == "plan" ? " The chart shows, of what the filters leave, the least of each provider and kind "
                                    "of GPU, at most 25, and what the plan chose."
                                  : " The chart shows the 25 with least that the filters leave.") +
           listing(page),
       {{"energy", "Carbon of each candidate"}},
       html_of(table, "Energy and carbon")});
}

}  // namespace

std::string name_of(const ReportCandidate& candidate) {
  std::string out = candidate.infrastructure + ", " + candidate.rented;
  if (!candidate.scheme.empty() && candidate.scheme != "none") out += ", " + candidate.scheme;
  if (!candidate.policy.empty() && candidate.policy != "fixed") out += ", " + candidate.policy;
  return out;
}

Goals goals_of(const PageInput& page) {
  Goals goals;
  if (page.plan != nullptr) {
    if (page.plan->request.deadline_s) goals.deadline_s = page.plan->request.deadline_s->si;
    goals.budget = page.plan->request.budget;
  } else if (!page.runs.empty()) {
    const documents::Result& run = page.runs.front();
    if (run.deadline) goals.deadline_s = run.deadline->si;
    goals.budget = run.budget;
  }
  return goals;
}

std::vector<std::size_t> listed(const PageInput& page) {
  std::vector<std::size_t> out(page.candidates.size());
  std::iota(out.begin(), out.end(), 0);
  if (out.size() <= kMaxListed) return out;
  const std::set<std::size_t> best(page.pareto.begin(), page.pareto.end());
  const auto key = [&](std::size_t i) {
    const double cost = page.candidates[i].usd.middle;
    return std::pair(!best.contains(i), std::isfinite(cost) ? cost : 1e300);
  };
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  out.resize(kMaxListed);
  return out;
}

std::vector<Section> sections_of(const PageInput& page) {
  std::vector<Section> out;
  if (page.kind == "validation") {
    add_validation(page, out);
    return out;
  }
  if (page.kind == "cluster") return cluster_sections(*page.cluster);
  if (page.kind == "rehearsal") return rehearsal_sections(*page.rehearsal);
  if (page.kind == "result") {
    out.push_back(summary_of_run(page));
  } else {
    out.push_back(page.kind == "plan" ? summary_of_plan(page) : summary_of_sweep(page));
    if (!page.candidates.empty()) out.push_back(comparison_of(page));
    add_quality(page, out);
    add_scaling(page, out);
  }
  add_ledger(page, out);
  add_details(page, out);
  add_policies(page, out);
  add_energy(page, out);
  add_provenance(page, out);
  return out;
}

}  // namespace ganymede::report

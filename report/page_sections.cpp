// The sections of every report: summary, comparison, scaling, GPU time, policies, energy.

#include "report/page_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "common/units.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede::report {
namespace {

using Json = nlohmann::json;

std::string known(double value, auto&& shown, const char* unknown = "not known") {
  return std::isfinite(value) ? shown(value) : unknown;
}
std::string money(double value) { return known(value, usd, "no price"); }
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
std::string cards(const ReportCandidate& of) {
  std::string out = "<dl class=cards>\n";
  out += card("Time", clock(of.time_s.middle), ends(of.time_s, clock));
  out += card("Cost", std::isfinite(of.usd.middle) ? usd(of.usd.middle) + " USD" : "no price", ends(of.usd, usd));
  out += card("GPU busy", percent(of.gpu_busy), gpus_of(of));
  out += card("Carbon", known(of.kg_co2e, three_digits) + (std::isfinite(of.kg_co2e) ? " kg CO2e" : ""),
              std::isfinite(of.kwh) ? three_digits(of.kwh) + " kWh" : "");
  return out + "</dl>\n";
}

std::string name_of(const ReportCandidate& of) {
  std::string out = of.infrastructure + ", " + of.rented;
  if (!of.scheme.empty() && of.scheme != "none") out += ", " + of.scheme;
  if (!of.policy.empty() && of.policy != "fixed") out += ", " + of.policy;
  return out;
}

std::string goals_of(const Json& document, const std::string& kind) {
  std::string out;
  const auto say = [&](const Json& deadline, const Json& budget) {
    if (deadline.is_number()) out += " Deadline: " + clock(deadline.get<double>()) + ".";
    if (budget.is_string()) out += " Budget: " + escaped(budget.get<std::string>()) + " USD.";
  };
  if (kind == "plan") say(document.at("request").at("deadline_s"), document.at("request").at("budget_usd"));
  const Json* run = kind == "result" ? &document : nullptr;
  if (kind == "sweep" && !document.at("runs").empty()) run = &document.at("runs").at(0);
  if (run) say((*run).at("goals").at("deadline_s"), (*run).at("goals").at("budget_usd"));
  return out;
}

std::string verdict_of(const Json& run) {
  if (run.contains("seeds")) {
    const Json& seeds = run.at("seeds");
    return fmt::format("<p class={}>{} of {} seeds meet the goals.</p>\n",
                       seeds.at("met") == seeds.at("count") ? "good" : "bad", seeds.at("met").dump(),
                       seeds.at("count").dump());
  }
  const bool met = run.at("goals").at("met").get<bool>();
  if (by_chance(run))
    return fmt::format("<p class={} the goals; others may fare otherwise.</p>\n",
                       met ? "good>The run of this seed meets" : "bad>The run of this seed misses");
  return met ? "<p class=good>All goals are met.</p>\n" : "<p class=bad>A goal is missed.</p>\n";
}

std::string intervals_of(const Json& run) {
  if (!run.contains("seeds")) return "Below each value is its interval, with all stated error.";
  return fmt::format(
      "Time and cost are the median of {} seeds, below them the interval over these, with all stated "
      "error; all else is of seed {} alone.",
      run.at("seeds").at("finished").dump(), run.at("provenance").at("seed").dump());
}

Section summary_of_run(const PageInput& page) {
  const ReportCandidate& run = page.candidates.front();
  Section out{"summary", "Summary", "", {}, cards(run)};
  out.about = fmt::format("{}: {} x {}, scheme {}.{} {}", escaped(name_of(run)), run.gpus, escaped(run.gpu),
                          escaped(run.scheme), goals_of(page.document, page.kind), intervals_of(page.document));
  if (!goals_of(page.document, page.kind).empty()) out.tables += verdict_of(page.document);
  // This is the text that the terminal shows.
  out.tables += "<details><summary>Everything in figures</summary><pre>" + escaped(run_text(page.document)) +
                "</pre></details>\n";
  return out;
}

std::string searched_of(const Json& plan) {
  const Json& searched = plan.at("searched");
  return fmt::format(
      "{} candidates: {} proved too slow, {} too dear, {} beaten without simulating them; {} simulated with up to {} "
      "seeds "
      "each, {} of them meet the goals. Minimized: {}.",
      searched.at("candidates").dump(), searched.at("too_slow").dump(), searched.at("too_dear").dump(),
      searched.at("beaten").dump(), searched.at("simulated").dump(), plan.at("request").at("seeds").dump(),
      searched.at("meeting").dump(), escaped(plan.at("request").at("objective").get<std::string>()));
}

/// The marks of the terminal: (?) for a doubtful price, (!) for a risk that was not measured.
std::string price_mark(const ReportCandidate& of) { return of.price_doubtful ? " (?)" : ""; }
std::string risk_mark(const ReportCandidate& of) { return of.risk_assumed ? " (!)" : ""; }

std::string legend_of(const std::vector<ReportCandidate>& candidates) {
  const auto any = [&](auto&& holds) { return std::any_of(candidates.begin(), candidates.end(), holds); };
  std::string out;
  if (any([](const ReportCandidate& of) { return of.risk_assumed; }))
    out += "<p class=about>(!) " + std::string(kAssumedRisk) + ".</p>\n";
  if (any([](const ReportCandidate& of) { return of.price_doubtful; }))
    out += "<p class=about>(?) " + std::string(kDoubtfulPrice) + ".</p>\n";
  return out;
}

/// The candidates of the plan's own Pareto table, in its order.
std::string plan_pareto(const PageInput& page) {
  if (page.pareto.size() < 2) return "";
  Table table({"where", "rented", "GPUs", "scheme", "policy", ">time", ">USD", ">goals met"});
  for (const std::size_t i : page.pareto) {
    const ReportCandidate& row = page.candidates[i];
    table.add({row.infrastructure, row.rented, gpus_of(row), row.scheme, row.policy, clock(row.time_s.middle),
               money(row.usd.middle) + price_mark(row), percent(row.met_share) + risk_mark(row)});
  }
  return html_of(table, std::string(kPlanPareto), "pareto-table");
}

Section summary_of_many(const PageInput& page) {
  Section out{"summary", "Summary", "", {}, ""};
  const auto show = [&](const std::string& what, const ReportCandidate& of) {
    out.tables += fmt::format("<h3>{}</h3><p class=about>{}{}</p>\n{}", escaped(what),
                              escaped(name_of(of)) + risk_mark(of) + price_mark(of),
                              of.met_share == 1     ? ""
                              : page.kind == "plan" ? "; meets the goals with a probability of " + percent(of.met_share)
                                                    : "; meets the goals in " + percent(of.met_share) + " of its runs",
                              cards(of));
  };
  if (page.kind == "plan") {
    out.tables += plan_answer_html(page.document) + "<p class=about>" + searched_of(page.document) +
                  goals_of(page.document, page.kind) + "</p>\n";
    const auto chosen = std::find_if(page.candidates.begin(), page.candidates.end(),
                                     [](const ReportCandidate& candidate) { return candidate.chosen; });
    if (chosen != page.candidates.end())
      show("Chosen", *chosen);
    else
      out.tables += "<p class=bad>Nothing that was simulated meets the goals.</p>\n";
    if (!page.document.at("near_misses").empty()) {
      Table misses({"near miss", "rented", "why it fails"});
      for (const Json& row : page.document.at("near_misses"))
        misses.add({row.at("provider").get<std::string>() + " " + row.at("region").get<std::string>() + " " +
                        row.at("market").get<std::string>(),
                    plan_rented(row, page.document.at("request")), row.value("reason", "")});
      out.tables += html_of(misses, "Near misses");
    }
    return out;
  }
  if (page.candidates.empty()) {
    out.tables = "<p class=bad>The study has no finished run.</p>\n";
  } else {
    out.about = fmt::format("{} runs in {} configurations.{}", page.document.at("runs").size(), page.all_candidates,
                            goals_of(page.document, page.kind));
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

Section comparison(const PageInput& page) {
  Section out{"comparison", "Time against cost", "", {{"pareto", "Time against cost of each candidate"}}, ""};
  out.about =
      "Each point is a candidate with its intervals; those joined by the line are beaten by none in both time and "
      "cost. What-ifs change prices here, without simulating anew: policies that look at prices would decide "
      "otherwise.";
  if (page.kind == "plan")
    out.about +=
        " The line and the mark Pareto follow the plan's own rule: only what meets the goals is compared, doubtful "
        "prices taken at the high end of what they may be.";
  if (page.candidates.size() < page.all_candidates)
    out.about += fmt::format(
        " <strong>{} of {} candidates are shown</strong>: those that none beats, and an even sample of the others by "
        "cost; <code>ganymede export csv</code> has all.",
        page.candidates.size(), page.all_candidates);
  if (page.kind == "plan")
    out.about += " A plan keeps no bills: instances at their hourly price are taken to be the part that prices change.";
  Table table({"where", "rented", "GPUs", "scheme", "policy", ">runs", ">time", "interval", ">USD", "interval",
               ">GPU busy", ">kg CO2e", ">goals met", ""});
  for (std::size_t i = 0; i < page.candidates.size(); ++i) {
    const ReportCandidate& row = page.candidates[i];
    const bool best = std::find(page.pareto.begin(), page.pareto.end(), i) != page.pareto.end();
    table.add({row.infrastructure, row.rented, gpus_of(row), row.scheme, row.policy, std::to_string(row.runs),
               clock(row.time_s.middle), ends(row.time_s, clock), money(row.usd.middle) + price_mark(row),
               ends(row.usd, usd), percent(row.gpu_busy), known(row.kg_co2e, three_digits, "-"),
               percent(row.met_share) + risk_mark(row),
               row.chosen ? "chosen"
               : best     ? "Pareto"
                          : ""});
  }
  out.tables = "<div id=filters></div>\n" + html_of(table, "Candidates", "candidates") + legend_of(page.candidates);
  if (page.kind == "plan") out.tables += plan_pareto(page);
  return out;
}

/// Adds the scaling of each GPU in each place. The ideal rate is that of the fewest GPUs times the number of GPUs, and
/// is the same for all schemes, because the fewest may be one GPU, which needs no scheme.
void add_scaling(const PageInput& page, std::vector<Section>& sections) {
  // Images a second by number of GPUs; the fastest if several shapes have that number.
  using Points = std::map<int, double>;
  std::map<std::string, std::map<std::string, Points>> kinds;
  for (const ReportCandidate& of : page.candidates)
    if (of.scales && std::isfinite(of.images_per_s)) {
      double& best = kinds[of.infrastructure + ", " + of.gpu][of.scheme][of.gpus];
      best = std::max(best, of.images_per_s);
    }
  Table table({"what", "scheme", ">GPUs", ">images/s", ">ideal", ">of ideal"});
  for (const auto& [kind, schemes] : kinds) {
    Points all;
    for (const auto& [scheme, points] : schemes)
      for (const auto& [gpus, rate] : points) all[gpus] = std::max(all[gpus], rate);
    if (all.size() < 2) continue;
    const auto& [fewest, base] = *all.begin();
    for (const auto& [scheme, points] : schemes)
      for (const auto& [gpus, rate] : points) {
        const double ideal = base * gpus / fewest;
        table.add({kind, scheme, std::to_string(gpus), fmt::format("{:.1f}", rate), fmt::format("{:.1f}", ideal),
                   percent(rate / ideal)});
      }
    table.rule();
  }
  if (table.size() == 0) return;
  sections.push_back({"scaling",
                      "Scaling",
                      std::string("Images a second while training, against as many times what the fewest GPUs of the "
                                  "same kind in the same place do (dashed). Of several shapes with as many GPUs the "
                                  "fastest.") +
                          (page.kind == "plan" ? " Of a plan's candidates: over their whole time." : ""),
                      {{"scaling", "Images a second by number of GPUs, with the ideal"}},
                      html_of(table, "Scaling")});
}

/// The highest number of candidates in further tables: the Pareto set and the cheapest of the others, by cost.
constexpr std::size_t kMaxListed = 300;

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
    const ReportCandidate& of = page.candidates[i];
    if (!of.has_ledger) continue;
    double total = 0;
    for (const double seconds : of.gpu_seconds) total += seconds;
    std::vector<std::string> cells{name_of(of)};
    for (const double seconds : of.gpu_seconds) cells.push_back(total > 0 ? percent(seconds / total) : "");
    cells.push_back(fmt::format("{:.3f}", total / 3600));
    table.add(cells);
  }
  if (table.size() == 0) return;
  sections.push_back(
      {"ledger",
       "Where GPU time went",
       std::string() +
           "Every GPU-second that was paid for, by what it went into. The chart shows the candidates that "
           "the filters leave, the cheapest 25 of them." +
           listing(page),
       {{"ledger", "GPU time of each candidate by use, stacked"}},
       html_of(table, "Shares of GPU time", "ledger-table")});
}

std::string difference_of(const Json& row) {
  if (!row.contains("difference") || row.at("difference").is_null()) return "";
  const Json& difference = row.at("difference");
  return fmt::format("{:+.1f} % [{:+.1f} .. {:+.1f}]{}", 100 * relative_difference(difference),
                     100 * difference.at("interval").at(0).get<double>(),
                     100 * difference.at("interval").at(1).get<double>(),
                     difference.at("beyond_noise").get<bool>() ? "" : ", within the noise");
}

void add_policies(const PageInput& page, std::vector<Section>& sections) {
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

void add_energy(const PageInput& page, std::vector<Section>& sections) {
  Table table({"what", ">kWh", ">kg CO2e", ">g CO2e a GPU-hour"});
  for (const std::size_t i : listed(page)) {
    const ReportCandidate& of = page.candidates[i];
    if (!std::isfinite(of.kg_co2e)) continue;
    double gpu_s = 0;
    for (const double seconds : of.gpu_seconds) gpu_s += seconds;
    table.add({name_of(of), known(of.kwh, three_digits, "-"), three_digits(of.kg_co2e),
               gpu_s > 0 ? fmt::format("{:.1f}", of.kg_co2e * 1e3 / (gpu_s / 3600)) : "-"});
  }
  if (table.size() == 0) return;
  sections.push_back(
      {"energy",
       "Energy and carbon",
       std::string() +
           "Of GPUs and, where their power is known, hosts, with the region's grid and the data center's "
           "overhead (PUE). The chart shows the 25 with least that the filters leave." +
           listing(page),
       {{"energy", "Carbon of each candidate"}},
       html_of(table, "Energy and carbon")});
}

}  // namespace

std::vector<Section> sections_of(const PageInput& page) {
  std::vector<Section> out;
  if (page.kind == "validation") {
    add_validation(page, out);
    return out;
  }
  if (page.kind == "result") {
    out.push_back(summary_of_run(page));
  } else {
    out.push_back(summary_of_many(page));
    if (!page.candidates.empty()) out.push_back(comparison(page));
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

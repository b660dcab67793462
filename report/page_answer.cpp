// The head of the page, above all sections: the answer in a sentence, how sure it is, and the cards. Of a sweep: what
// was compared, which to take, and why that is cheaper or faster than the next.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "common/dates.hpp"
#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"
#include "report/validations.hpp"

namespace ganymede::report {
namespace {
/// A short remark beside the answer: good, to be beware of, or neither.
std::string badge(const char* kind, const std::string& words) {
  return fmt::format("<li class=\"badge {}\">{}</li>\n", kind, escaped(words));
}

/// A badge with the share of runs or seeds that meet the goals, coloured by it. HTML.
std::string share_badge(double share, const std::string& text) {
  return badge(share >= 0.95 ? "good" : share >= 0.5 ? "warn" : "bad", text);
}

/// How old a price was on the day `today`, which may be empty: then only its date is said.
std::string price_badge(const std::string& as_of, const std::string& today, const std::string& doubt) {
  if (!doubt.empty()) return badge("warn", "price doubtful: " + doubt);
  if (!is_date(as_of)) return badge("warn", "price: " + (as_of.empty() ? "undated" : as_of));
  if (!is_date(today)) return badge("", "price of " + as_of);
  return badge("",
               fmt::format("price of {}, {} days old on {}", as_of, std::max(0, days_between(as_of, today)), today));
}

std::string steps_badge(const std::string& inputs, const std::string& detail) {
  if (inputs.empty()) return "";
  if (inputs.starts_with("measured")) return badge("good", "step time " + inputs);
  return badge("warn", fmt::format("step time not measured but predicted ({}){}", inputs, detail));
}

/// A badge that says what is known of interruptions; `detail` is how often they are, if that is known.
std::string risk_badge(const std::string& risk, const std::string& detail = "") {
  if (risk == "none") return badge("good", "nobody takes these nodes back");
  if (risk == "measured") return badge("good", "interruptions measured" + detail);
  if (risk == "assumed") return badge("warn", "interruptions unknown, a rate is assumed" + detail);
  return risk.empty() ? "" : badge("warn", "interruptions not measured: " + risk + detail);
}

/// Short remarks beside an answer that hold for a run: the age of its price, its steps, its interruptions. HTML.
std::string badges_of_run(const documents::Result& run) {
  return price_badge(run.prices_as_of, "", "") + steps_badge(run.inputs, "") + risk_badge(run.risk);
}

/// "dcgan-64 (fp32), 10,000,000 images, batch 64 a GPU. " of a run, or nothing for a result without it. HTML.
std::string trained_in(const documents::Result& run) {
  if (run.launch.model.empty()) return "";
  return fmt::format("{} ({}), {} images, batch {} a GPU. ", escaped(run.launch.model), escaped(run.launch.precision),
                     with_thousands(run.images), run.launch.batch_per_gpu);
}

/// Says what share of the outcomes the ranges of runs hold.
std::string range_level(const documents::Result& run) {
  return fmt::format("Ranges hold about {} % of what may happen, with all stated error{}.",
                     run.inputs == "measured" ? 95 : 90, kUnknownMachines);
}

/// A value with its range, for a sentence: "1.64 USD (1.29 .. 2.31)".
std::string with_range(const Estimate& estimate, std::string (*shown)(double), const char* unit = "") {
  if (!std::isfinite(estimate.middle)) return "no price";
  std::string out = shown(estimate.middle) + unit;
  if (std::isfinite(estimate.low) && std::isfinite(estimate.high))
    out += spoken_range(estimate.low, estimate.high, shown);
  return out;
}

/// The time of a chosen candidate's step with its range, for example ": 38.97 ms (25.8 ms .. 58.87 ms)".
std::string step_of(const documents::Plan& plan, const documents::PlanRow& row) {
  for (const documents::PlanStep& step : plan.steps)
    if (step.gpu == row.gpu && step.batch_per_gpu == row.batch_per_gpu.value_or(0))
      return fmt::format(": {} ({} .. {})", to_string(Seconds{step.seconds}), to_string(Seconds{step.interval_s.low}),
                         to_string(Seconds{step.interval_s.high}));
  return "";
}

/// The value of a card in large type, its range below.
std::string with_small_range(const std::string& value) {
  const std::size_t range = std::min(value.find(" ("), value.size());
  return fmt::format("<b>{}</b><small>{}</small>", escaped(value.substr(0, range)), escaped(value.substr(range)));
}

std::string cards_of_plan(const documents::Plan& plan) {
  std::string out = "<dl class=cards>\n";
  for (const PlanCard& card : plan_cards(plan)) {
    std::string below = card.hourly;
    if (card.interruptions != "none") below += (below.empty() ? "" : "; ") + ("interruptions: " + card.interruptions);
    out += fmt::format(
        "<div class=card><dt>{}<small>{}</small></dt><dd><span class=pair><span>{}</span><span>{}</span></span>{}{}"
        "<small>{}</small></dd></div>\n",
        escaped(card.name), escaped(card.about), with_small_range(card.cost), with_small_range(card.time),
        escaped(card.rented),
        plan.request.has_goals() ? "<small>goals met: " + escaped(card.probability) + "</small>" : "", escaped(below));
  }
  return out + "</dl>\n";
}

/// Explains the ranges and marks on the first screen.
std::string marks_of_plan(const documents::Plan& plan) {
  bool risk = false, doubt = false;
  const auto see = [&](const documents::PlanRow& row) {
    const PlanMarks marks = plan_marks(row);
    risk = risk || marks.risk_assumed;
    doubt = doubt || marks.price_doubtful;
  };
  for (const documents::PlanRow& row : plan.best_of_each) see(row);
  if (plan.cards)
    for (const documents::PlanRow* row : {&plan.cards->cheapest, &plan.cards->balanced, &plan.cards->safest}) see(*row);
  std::string out = "<p class=about>" + escaped(plan_range_level(plan));
  if (risk) out += " (!) " + std::string(kAssumedRisk) + ".";
  if (doubt) out += " (?) " + std::string(kDoubtfulPrice) + ".";
  if (const std::string cheaper = plan_cheaper_if(plan); !cheaper.empty()) out += " " + escaped(cheaper);
  return out + "</p>\n";
}

std::string answer_of_plan(const documents::Plan& plan) {
  std::string out = "<p class=answer>" + escaped(plan_answer(plan)) + "</p>\n";
  if (!plan.chosen) return out;
  const documents::PlanRow& chosen = *plan.chosen;
  out += "<ul class=badges>\n";
  if (plan.request.has_goals())
    out += share_badge(chosen.probability.value_or(chosen.met_share), "goals met: " + plan_probability_of_runs(chosen));
  const std::string doubt = chosen.price ? chosen.price->doubt.value_or("") : "";
  out += price_badge(chosen.prices_as_of, plan.request.prices_aged_to.value_or(""), doubt) +
         steps_badge(chosen.inputs, step_of(plan, chosen)) + risk_badge(chosen.risk, ": " + plan_interruptions(chosen));
  return out + "</ul>\n" + cards_of_plan(plan) + marks_of_plan(plan);
}

/// A short run's time says little of training if its nodes mostly boot.
std::string provisioning_badge(const documents::Result& run) {
  const double share = run.gpu_seconds.share(GpuUse::provisioning);
  return share > 0.2 ? badge("warn", percent(share) + " of the GPU time is provisioning") : "";
}

std::string answer_of_run(const PageInput& page) {
  const ReportCandidate& candidate = page.candidates.front();
  const documents::Result& run = page.runs.front();
  std::string out =
      fmt::format("<p class=answer>{} ({}) at {}: {} in {}.{}</p>\n<ul class=badges>\n", escaped(candidate.rented),
                  escaped(gpus_of(candidate)), escaped(candidate.infrastructure),
                  with_range(candidate.usd, spoken_usd, " USD"), with_range(candidate.time_s, spoken_time),
                  run.seeds ? fmt::format(" These are medians of {} seeds.", run.seeds->finished) : "");
  if (run.seeds)
    out += share_badge(candidate.met_share, "goals met by " + percent(candidate.met_share) + " of the seeds");
  return "<p class=about>" + trained_in(run) + "</p>\n" + out + badges_of_run(run) + provisioning_badge(run) +
         "</ul>\n<p class=about>" + range_level(run) + "</p>\n";
}

std::string answer_of_validation(const documents::ErrorSummary& all) {
  if (all.cells == 0) return "";
  return fmt::format(
      "<p class=answer>{} published figures are predicted: off by {} on average and by {} at worst; {} of the 90 % "
      "intervals hold the figure.</p>\n<p class=about>{}</p>\n",
      all.cells, percent(all.mean_error), percent(all.worst_error), percent(all.held_by_interval), kKnownStudies);
}

std::string answer_of_cluster(const documents::ClusterResult& result) {
  const documents::ClusterSummary& all = result.summary;
  return fmt::format(
      "<p class=answer>{} jobs on {} GPUs take {:.2f} times as long as alone on average, {} of it waiting; the last "
      "ends "
      "after {}, for {} USD.</p>\n",
      all.jobs, all.gpus, all.slowdown.mean, clock(all.wait_s.mean), clock(all.total_s),
      escaped(usd_cell(decimal(result.usd))));
}

std::string answer_of_rehearsal(const documents::Rehearsal& life) {
  const documents::Rehearsal::Figure& time = life.comparison.at(0);
  return fmt::format("<p class=answer>The life took {}, predicted {} ({}); the policy {} in both.</p>\n",
                     clock(time.measured), clock(time.predicted), signed_percent(time.off.value_or(0)),
                     life.same_decisions ? "decided the same" : "did not decide the same");
}

using Member = std::string ReportCandidate::*;

/// A property that tells candidates from each other, with its name for one and for several.
struct Axis {
  Member member;
  const char *one, *many;
};
constexpr std::array kAxes = {Axis{&ReportCandidate::infrastructure, "place", "places"},
                              Axis{&ReportCandidate::rented, "set of nodes", "sets of nodes"},
                              Axis{&ReportCandidate::gpu, "kind of GPU", "kinds of GPU"},
                              Axis{&ReportCandidate::scheme, "all-reduce scheme", "all-reduce schemes"},
                              Axis{&ReportCandidate::policy, "policy", "policies"}};

/// The number of different values that a member has among the candidates.
std::size_t different(const PageInput& page, Member member) {
  std::set<std::string> values;
  for (const ReportCandidate& candidate : page.candidates) values.insert(candidate.*member);
  values.erase("none");
  return values.size();
}

/// The properties that tell a candidate from the others, for example "aws us-east-1, 2 x p3.2xlarge, ring".
std::string difference_name(const PageInput& page, const ReportCandidate& candidate) {
  std::string out;
  for (const Axis& axis : kAxes)
    if (axis.member != &ReportCandidate::gpu && different(page, axis.member) > 1 && !(candidate.*axis.member).empty() &&
        candidate.*axis.member != "none")
      out += (out.empty() ? "" : ", ") + candidate.*axis.member;
  return out.empty() ? candidate.infrastructure + ", " + candidate.rented : out;
}

/// "progressive-gan (fp32), 150,000,000 images, batch 16 a GPU. Compared: 12 configurations, of 12 policies; 20 seeds
/// of each."
std::string compared_in(const PageInput& page) {
  std::string out = trained_in(page.runs.front());
  std::string parts;
  std::size_t combinations = 1;
  for (const Axis& axis : kAxes) {
    const std::size_t number = different(page, axis.member);
    if (number < 2) continue;
    // A set of nodes has its kind of GPU.
    if (axis.member != &ReportCandidate::gpu) combinations *= number;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", number, axis.many);
  }
  const std::size_t all = page.candidates.size();
  if (all > 1) {
    out += fmt::format("Compared: {} configurations", all);
    if (!parts.empty())
      out += fmt::format(" of {}{}", parts, combinations == all ? "" : ", not all of which go together");
    const int runs = page.candidates.front().runs;
    out += runs > 1 ? fmt::format("; {} seeds of each.", runs) : ".";
  }
  // The names in the answer leave this out.
  const ReportCandidate& first = page.candidates.front();
  const bool one_place = different(page, &ReportCandidate::infrastructure) == 1;
  const bool one_shape = different(page, &ReportCandidate::rented) == 1;
  if (one_place || one_shape)
    out += fmt::format(" All{}{}.", one_shape ? " on " + escaped(first.rented) : "",
                       one_place ? " at " + escaped(first.infrastructure) : "");
  return out;
}

/// The candidates with a finite value, the least first.
std::vector<const ReportCandidate*> in_order(const PageInput& page, Estimate ReportCandidate::*member) {
  std::vector<const ReportCandidate*> order;
  for (const ReportCandidate& candidate : page.candidates)
    if (std::isfinite((candidate.*member).middle)) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [&](const ReportCandidate* a, const ReportCandidate* b) {
    return (a->*member).middle < (b->*member).middle;
  });
  return order;
}

/// Why one candidate costs less than another: fewer GPU-hours and of what, or cheaper ones. Empty if neither is known.
std::string because(const ReportCandidate& one, const ReportCandidate& other) {
  const auto hours = [](const ReportCandidate& candidate) {
    return std::accumulate(candidate.gpu_seconds.begin(), candidate.gpu_seconds.end(), 0.0) / 3600;
  };
  const double here = hours(one), there = hours(other);
  if (!one.has_ledger || !other.has_ledger || here <= 0 || there <= 0 || one.usd.middle <= 0) return "";
  const double ratio = other.usd.middle / one.usd.middle;
  if (there / here < std::sqrt(ratio))
    return fmt::format(": a GPU-hour costs {} USD there instead of {}", spoken_usd(one.usd.middle / here),
                       spoken_usd(other.usd.middle / there));
  std::size_t largest = 0;
  for (std::size_t use = 1; use < kGpuUseNames.size(); ++use)
    if (other.gpu_seconds.at(use) - one.gpu_seconds.at(use) >
        other.gpu_seconds.at(largest) - one.gpu_seconds.at(largest))
      largest = use;
  std::string name(kGpuUseNames.at(largest));
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format(": it takes {:.2g} GPU-hours instead of {:.2g}, most of the difference being {}{}", here, there,
                     name, name == "lost" ? " work" : "");
}

/// The candidate with the least value and the next one, how far they are apart, and why. The candidate to take is not
/// named again.
std::string winner(const PageInput& page, const ReportCandidate* pick, Estimate ReportCandidate::*member) {
  const std::vector<const ReportCandidate*> order = in_order(page, member);
  const bool again = !order.empty() && order[0] == pick, money = member == &ReportCandidate::usd;
  if (order.empty() || (again && order.size() == 1)) return "";
  const ReportCandidate& first = *order[0];
  const Estimate& best = first.*member;
  std::string out = again ? (money ? "It costs " : "It takes ")
                          : fmt::format("{}: <strong>{}</strong>, {}", money ? "Cheapest" : "Fastest",
                                        escaped(difference_name(page, first)),
                                        money ? with_range(best, spoken_usd, " USD") : with_range(best, spoken_time));
  if (order.size() == 1) return out + ".";
  out += again ? "" : "; ";
  const ReportCandidate& second = *order[1];
  const Estimate& next = second.*member;
  if (next.middle > best.middle)
    out += fmt::format("{:.2g} % less {}than the next, {}{}", 100 * (1 - best.middle / next.middle),
                       again ? "" : (money ? "money " : "time "), escaped(difference_name(page, second)),
                       money ? because(first, second) : "");
  else
    out += fmt::format("as much as {}", escaped(difference_name(page, second)));
  return out + (best.high < next.low ? ". Their ranges are apart." : ". Their ranges overlap: the order is not sure.");
}

/// Says that ranges of configurations whose interruptions were drawn only once lack their luck.
std::string one_draw(const PageInput& page, const documents::Result& run) {
  const bool once = std::all_of(page.candidates.begin(), page.candidates.end(),
                                [](const ReportCandidate& candidate) { return candidate.runs == 1; });
  if (!once || run.risk == "none") return "";
  return " Each configuration is one run: the luck of its interruptions is not in them. More seeds show it.";
}

/// The share of runs that must meet the goals for a candidate to be taken, as of a plan.
constexpr double kCertainty = 0.9;

/// Which candidate to take: the cheapest of those that keep to the goals, or without goals the balance of time and
/// cost. Null if there is none.
const ReportCandidate* pick_of(const PageInput& page, bool goals) {
  if (goals) {
    for (const ReportCandidate* candidate : in_order(page, &ReportCandidate::usd))
      if (candidate->met_share >= kCertainty) return candidate;
    return nullptr;
  }
  std::vector<std::pair<double, double>> front;
  for (const std::size_t i : page.pareto)
    front.emplace_back(page.candidates[i].time_s.middle, page.candidates[i].ranked_usd);
  return front.empty() ? nullptr : &page.candidates[page.pareto[knee_of(front)]];
}

std::string pick_html(const PageInput& page, const ReportCandidate* pick, bool goals) {
  if (pick == nullptr)
    return goals ? fmt::format("Take none: nothing meets the goals in {:.0f} % of its runs.", 100 * kCertainty) : "";
  const bool cheapest = pick == in_order(page, &ReportCandidate::usd).front(),
             fastest = pick == in_order(page, &ReportCandidate::time_s).front();
  const char* why = goals                 ? "the cheapest that keeps to the goals"
                    : cheapest && fastest ? "the cheapest and the fastest"
                    : cheapest            ? "the cheapest"
                    : fastest             ? "the fastest and the best trade between time and money"
                                          : "the best trade between time and money";
  return fmt::format("Take <strong>{}</strong>: {} in {}, {}.", escaped(difference_name(page, *pick)),
                     with_range(pick->usd, spoken_usd, " USD"), with_range(pick->time_s, spoken_time), why);
}

/// The answer of a sweep: what was compared, which to take, and what won against the next. HTML.
std::string answer_of_sweep(const PageInput& page) {
  if (page.candidates.empty()) return "";
  const bool goals = goals_of(page).any();
  const ReportCandidate* pick = pick_of(page, goals);
  std::string out = "<p class=about>" + compared_in(page) + "</p>\n<p class=answer>";
  for (const std::string& line : {pick_html(page, pick, goals), winner(page, pick, &ReportCandidate::usd),
                                  winner(page, pick, &ReportCandidate::time_s)})
    if (!line.empty()) out += line + "<br>";
  out += "</p>\n<ul class=badges>\n";
  const ReportCandidate& shown = pick == nullptr ? page.candidates.front() : *pick;
  if (goals) out += share_badge(shown.met_share, "goals met in " + shown.met + " of its runs");
  return out + badges_of_run(*shown.run) + "</ul>\n<p class=about>" + range_level(*shown.run) +
         one_draw(page, *shown.run) + "</p>\n";
}

}  // namespace

std::string answer_html(const PageInput& page) {
  return page.kind == "plan"        ? answer_of_plan(*page.plan)
         : page.kind == "sweep"     ? answer_of_sweep(page)
         : page.kind == "result"    ? answer_of_run(page)
         : page.kind == "cluster"   ? answer_of_cluster(*page.cluster)
         : page.kind == "rehearsal" ? answer_of_rehearsal(*page.rehearsal)
                                    : answer_of_validation(page.validation->summary);
}

}  // namespace ganymede::report

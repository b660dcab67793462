// The head of the page, above all sections: the answer in a sentence, how sure it is, and the cards.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/dates.hpp"
#include "common/json_value.hpp"
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

std::string answer_of_validation(const Json& document) {
  const Json& all = document.at("summary");
  if (all.value("cells", 0) == 0) return "";
  return fmt::format(
      "<p class=answer>{} published figures are predicted: off by {} on average and by {} at worst; {} of the 90 % "
      "intervals hold the figure.</p>\n<p class=about>{}</p>\n",
      all.at("cells").dump(), percent(all.at("mean_error").get<double>()), percent(all.at("worst_error").get<double>()),
      percent(all.at("held_by_interval").get<double>()), kKnownStudies);
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

std::string answer_of_rehearsal(const Json& document) {
  const Json& time = document.at("comparison").at(0);
  return fmt::format("<p class=answer>The life took {}, predicted {} ({}); the policy {} in both.</p>\n",
                     clock(time.at("measured").get<double>()), clock(time.at("predicted").get<double>()),
                     signed_percent(time.at("off").get<double>()),
                     document.at("decisions").at("same").get<bool>() ? "decided the same" : "did not decide the same");
}

}  // namespace

std::string share_badge(double share, const std::string& text) {
  return badge(share >= 0.95 ? "good" : share >= 0.5 ? "warn" : "bad", text);
}

std::string badges_of_run(const documents::Result& run) {
  return price_badge(run.prices_as_of, "", "") + steps_badge(run.inputs, "") + risk_badge(run.risk);
}

std::string trained_in(const documents::Result& run) {
  if (run.launch.model.empty()) return "";
  return fmt::format("{} ({}), {} images, batch {} a GPU. ", escaped(run.launch.model), escaped(run.launch.precision),
                     with_thousands(run.images), run.launch.batch_per_gpu);
}

std::string range_level(const documents::Result& run) {
  return fmt::format("Ranges hold about {} % of what may happen, with all stated error{}.",
                     run.inputs == "measured" ? 95 : 90, kUnknownMachines);
}

std::string answer_html(const PageInput& page) {
  return page.kind == "plan"        ? answer_of_plan(*page.plan)
         : page.kind == "sweep"     ? answer_of_sweep(page)
         : page.kind == "result"    ? answer_of_run(page)
         : page.kind == "cluster"   ? answer_of_cluster(*page.cluster)
         : page.kind == "rehearsal" ? answer_of_rehearsal(page.document)
                                    : answer_of_validation(page.document);
}

}  // namespace ganymede::report

// What stands above all sections: the answer in a sentence, how sure it is, and the cards.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "common/dates.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {

using Json = nlohmann::json;

std::string named_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// A short remark beside the answer: good, to be beware of, or neither.
std::string badge(const char* kind, const std::string& words) {
  return fmt::format("<li class=\"badge {}\">{}</li>\n", kind, escaped(words));
}

/// How old a price is. `today` may be empty: then only its date is said.
std::string price_badge(const std::string& as_of, const std::string& today, const std::string& doubt) {
  if (!doubt.empty()) return badge("warn", "price doubtful: " + doubt);
  if (!is_date(as_of)) return badge("warn", "price: " + (as_of.empty() ? "undated" : as_of));
  if (!is_date(today)) return badge("", "price of " + as_of);
  return badge("", fmt::format("price of {}, {} days old", as_of, std::max(0, days_between(as_of, today))));
}

std::string steps_badge(const std::string& inputs, const std::string& detail) {
  if (inputs.empty()) return "";
  if (inputs.starts_with("measured")) return badge("good", "step time " + inputs);
  return badge("warn", fmt::format("step time not measured: {}{}", inputs, detail));
}

/// What is known of how often nodes are taken back.
std::string risk_badge(const std::string& risk) {
  if (risk == "none") return badge("good", "nobody takes these nodes back");
  if (risk == "measured") return badge("good", "interruptions measured");
  if (risk == "assumed") return badge("warn", "interruptions unknown: a rate is assumed");
  return risk.empty() ? "" : badge("warn", "interruptions not measured: " + risk);
}

std::string share_badge(double share, const std::string& words) {
  return badge(share >= 0.95 ? "good" : share >= 0.5 ? "warn" : "bad", words);
}

std::string badges_of_run(const Json& provenance) {
  return price_badge(named_text(provenance, "prices_as_of"), "", "") +
         steps_badge(named_text(provenance, "inputs"), "") + risk_badge(named_text(provenance, "risk"));
}

/// The time of a chosen candidate's step with its range, for example ": 38.97 ms (25.8 ms .. 58.87 ms)".
std::string step_of(const Json& plan, const Json& row) {
  if (!plan.contains("steps")) return "";
  for (const Json& step : plan.at("steps"))
    if (step.at("gpu") == row.at("gpu") && step.value("batch_per_gpu", 0) == row.value("batch_per_gpu", 0))
      return fmt::format(", {} ({} .. {})", to_string(Seconds{step.at("seconds").get<double>()}),
                         to_string(Seconds{step.at("interval_s").at(0).get<double>()}),
                         to_string(Seconds{step.at("interval_s").at(1).get<double>()}));
  return "";
}

bool has_goals(const Json& request) {
  return request.at("deadline_s").is_number() || request.at("budget_usd").is_string();
}

/// The value of a card in large type, its range below.
std::string with_small_range(const std::string& value) {
  const std::size_t range = std::min(value.find(" ("), value.size());
  return fmt::format("<b>{}</b><small>{}</small>", escaped(value.substr(0, range)), escaped(value.substr(range)));
}

std::string cards_of_plan(const Json& plan) {
  std::string out = "<dl class=cards>\n";
  for (const PlanCard& card : plan_cards(plan))
    out += fmt::format(
        "<div class=card><dt>{}</dt><dd><span class=pair><span>{}</span><span>{}</span></span>{}{}</dd></div>\n",
        escaped(card.name), with_small_range(card.cost), with_small_range(card.time), escaped(card.rented),
        has_goals(plan.at("request"))
            ? "<small>meets the goals with a probability of " + escaped(card.probability) + "</small>"
            : "");
  return out + "</dl>\n";
}

/// What ranges and marks on the first screen mean.
std::string marks_of_plan(const Json& plan) {
  bool risk = false, doubt = false;
  const auto see = [&](const Json& row) {
    const PlanMarks marks = plan_marks(row);
    risk = risk || marks.risk_assumed;
    doubt = doubt || marks.price_doubtful;
  };
  for (const Json& row : plan.at("best_of_each")) see(row);
  if (plan.contains("cards") && plan.at("cards").is_object())
    for (const Json& row : plan.at("cards")) see(row);
  std::string out = "<p class=about>Ranges hold the spread of the seeds and all stated error.";
  if (risk) out += " (!) " + std::string(kAssumedRisk) + ".";
  if (doubt) out += " (?) " + std::string(kDoubtfulPrice) + ".";
  return out + "</p>\n";
}

std::string answer_of_plan(const Json& plan) {
  const Json& chosen = plan.at("chosen");
  std::string out = "<p class=answer>" + escaped(plan_answer(plan)) + "</p>\n";
  if (chosen.is_null()) return out;
  out += "<ul class=badges>\n";
  if (has_goals(plan.at("request")))
    out += share_badge(chosen.value("probability", chosen.value("met_share", 0.0)),
                       "goals met: " + plan_probability(chosen));
  const Json& request = plan.at("request");
  const std::string doubt = chosen.contains("price") ? named_text(chosen.at("price"), "doubt") : "";
  out += price_badge(named_text(chosen, "prices_as_of"), named_text(request, "prices_aged_to"), doubt) +
         steps_badge(named_text(chosen, "inputs"), step_of(plan, chosen)) + risk_badge(named_text(chosen, "risk"));
  return out + "</ul>\n" + cards_of_plan(plan) + marks_of_plan(plan);
}

std::string with_range(const Estimate& of, auto&& shown, const char* unit = "") {
  if (!std::isfinite(of.middle)) return "no price";
  const std::string middle = shown(of.middle) + unit;
  if (!std::isfinite(of.low) || !std::isfinite(of.high) || of.low == of.high) return middle;
  return fmt::format("{} ({} .. {})", middle, shown(of.low), shown(of.high));
}

/// "progressive-gan (fp32), 150,000,000 images, batch 16 a GPU. ", or nothing for a result without it.
std::string trained_in(const Json& run) {
  if (!run.contains("launch")) return "";
  return fmt::format("{} ({}), {} images, batch {} a GPU. ", escaped(named_text(run.at("launch"), "model")),
                     escaped(named_text(run.at("launch"), "precision")),
                     with_thousands(run.at("time").at("images").get<std::int64_t>()),
                     run.at("launch").at("batch_per_gpu").dump());
}

/// A short run's time says little of training if its nodes mostly boot.
std::string provisioning_badge(const Json& run) {
  const Json& seconds = run.at("gpu_seconds");
  const double all = seconds.value("total", 0.0), share = all > 0 ? seconds.value("provisioning", 0.0) / all : 0;
  return share > 0.2 ? badge("warn", percent(share) + " of the GPU time is provisioning") : "";
}

std::string answer_of_run(const PageInput& page) {
  const ReportCandidate& of = page.candidates.front();
  const Json& run = page.document;
  std::string out = fmt::format(
      "<p class=answer>{} ({}) at {}: {} in {}.{}</p>\n<ul class=badges>\n", escaped(of.rented), escaped(gpus_of(of)),
      escaped(of.infrastructure), with_range(of.usd, usd, " USD"), with_range(of.time_s, clock),
      run.contains("seeds") ? fmt::format(" These are medians of {} seeds.", run.at("seeds").at("finished").dump())
                            : "");
  if (run.contains("seeds"))
    out += share_badge(of.met_share, "goals met by " + percent(of.met_share) + " of the seeds");
  return "<p class=about>" + trained_in(run) + "</p>\n" + out + badges_of_run(run.at("provenance")) +
         provisioning_badge(run) + "</ul>\n";
}

/// The number of different values that a member has among the candidates.
std::size_t different(const PageInput& page, auto&& member) {
  std::set<std::string> values;
  for (const ReportCandidate& of : page.candidates) values.insert(member(of));
  values.erase("none");
  return values.size();
}

/// What tells a candidate from the others, for example "aws us-east-1, 2 x p3.2xlarge, ring".
std::string difference_name(const PageInput& page, const ReportCandidate& of) {
  std::string out;
  const auto add = [&](auto&& member) {
    const std::string& value = member(of);
    if (different(page, member) > 1 && !value.empty() && value != "none") out += (out.empty() ? "" : ", ") + value;
  };
  add([](const ReportCandidate& one) -> const std::string& { return one.infrastructure; });
  add([](const ReportCandidate& one) -> const std::string& { return one.rented; });
  add([](const ReportCandidate& one) -> const std::string& { return one.scheme; });
  add([](const ReportCandidate& one) -> const std::string& { return one.policy; });
  return out.empty() ? of.infrastructure + ", " + of.rented : out;
}

/// "progressive-gan (fp32), 150000000 images, batch 16 a GPU. Compared: 4 places, 12 policies; 20 seeds of each."
std::string compared_in(const PageInput& page) {
  std::string out = trained_in(page.document.at("runs").at(0));
  std::string parts;
  const auto count = [&](const char* one, const char* many, auto&& member) {
    const std::size_t number = different(page, member);
    if (number > 1) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", number, number == 1 ? one : many);
  };
  count("place", "places", [](const ReportCandidate& of) { return of.infrastructure; });
  count("shape", "shapes", [](const ReportCandidate& of) { return of.rented; });
  count("GPU", "GPUs", [](const ReportCandidate& of) { return of.gpu; });
  count("scheme", "schemes", [](const ReportCandidate& of) { return of.scheme; });
  count("policy", "policies", [](const ReportCandidate& of) { return of.policy; });
  const int runs = page.candidates.front().runs;
  if (runs > 1) parts += fmt::format("{}{} seeds of each", parts.empty() ? "" : "; ", runs);
  out += parts.empty() ? "" : "Compared: " + parts + ".";
  // What the headline's names leave out.
  const ReportCandidate& first = page.candidates.front();
  const bool one_place = different(page, [](const ReportCandidate& of) { return of.infrastructure; }) == 1;
  const bool one_shape = different(page, [](const ReportCandidate& of) { return of.rented; }) == 1;
  if (one_place || one_shape)
    out += fmt::format(" All{}{}.", one_shape ? " on " + escaped(first.rented) : "",
                       one_place ? " at " + escaped(first.infrastructure) : "");
  return out;
}

/// The candidate with the least value and the next one, and how far they are apart.
std::string winner(const PageInput& page, const char* what, auto&& value, auto&& shown, const char* unit = "") {
  std::vector<const ReportCandidate*> order;
  for (const ReportCandidate& of : page.candidates)
    if (std::isfinite(value(of).middle)) order.push_back(&of);
  if (order.empty()) return "";
  std::stable_sort(order.begin(), order.end(), [&](const ReportCandidate* a, const ReportCandidate* b) {
    return value(*a).middle < value(*b).middle;
  });
  const Estimate best = value(*order[0]);
  std::string out = fmt::format("{}: <strong>{}</strong>, {}", what, escaped(difference_name(page, *order[0])),
                                with_range(best, shown, unit));
  if (order.size() > 1) {
    const Estimate next = value(*order[1]);
    if (next.middle > best.middle)
      out += fmt::format("; {:.1f} % less than the next, {}", 100 * (1 - best.middle / next.middle),
                         escaped(difference_name(page, *order[1])));
    else
      out += fmt::format("; {} is equal", escaped(difference_name(page, *order[1])));
    out += best.high < next.low ? ", and their ranges are apart" : ", but their ranges overlap";
  }
  return out + ".";
}

std::string answer_of_sweep(const PageInput& page) {
  if (page.candidates.empty()) return "";
  const auto cheapest = std::min_element(
      page.candidates.begin(), page.candidates.end(), [](const ReportCandidate& a, const ReportCandidate& b) {
        return !(std::isnan(a.usd.middle)) && (std::isnan(b.usd.middle) || a.usd.middle < b.usd.middle);
      });
  std::string out = "<p class=about>" + compared_in(page) + "</p>\n<p class=answer>" +
                    winner(
                        page, "Cheapest", [](const ReportCandidate& of) { return of.usd; }, usd, " USD") +
                    "<br>" +
                    winner(
                        page, "Fastest", [](const ReportCandidate& of) { return of.time_s; }, clock) +
                    "</p>\n<ul class=badges>\n";
  const Json& goals = cheapest->run->at("goals");
  if (goals.at("deadline_s").is_number() || goals.at("budget_usd").is_string())
    out += share_badge(cheapest->met_share,
                       "the cheapest meets the goals in " + percent(cheapest->met_share) + " of its runs");
  return out + badges_of_run(cheapest->run->at("provenance")) + "</ul>\n";
}

std::string answer_of_validation(const Json& document) {
  const Json& all = document.at("summary");
  if (all.value("cells", 0) == 0) return "";
  return fmt::format(
      "<p class=answer>{} published figures are predicted without having been seen: off by {} on average and by {} at "
      "worst; {} of the 90 % intervals hold the figure.</p>\n",
      all.at("cells").dump(), percent(all.at("mean_error").get<double>()), percent(all.at("worst_error").get<double>()),
      percent(all.at("held_by_interval").get<double>()));
}

std::string answer_of_cluster(const Json& document) {
  const Json& all = document.at("summary");
  return fmt::format(
      "<p class=answer>{} jobs on {} GPUs take {:.2f} times as long as alone on average, {} of it waiting; the last "
      "ends "
      "after {}, for {} USD.</p>\n",
      all.at("jobs").dump(), all.at("gpus").dump(), all.at("slowdown").at("mean").get<double>(),
      clock(all.at("wait_s").at("mean").get<double>()), clock(all.at("total_s").get<double>()),
      escaped(document.at("cost").at("total_usd").get<std::string>()));
}

std::string answer_of_rehearsal(const Json& document) {
  const Json& time = document.at("comparison").at(0);
  return fmt::format("<p class=answer>The life took {}, predicted {} ({:+.1f} %); the policy {} in both.</p>\n",
                     clock(time.at("measured").get<double>()), clock(time.at("predicted").get<double>()),
                     100 * time.at("off").get<double>(),
                     document.at("decisions").at("same").get<bool>() ? "decided the same" : "did not decide the same");
}

}  // namespace

std::string answer_html(const PageInput& page) {
  return page.kind == "plan"        ? answer_of_plan(page.document)
         : page.kind == "sweep"     ? answer_of_sweep(page)
         : page.kind == "result"    ? answer_of_run(page)
         : page.kind == "cluster"   ? answer_of_cluster(page.document)
         : page.kind == "rehearsal" ? answer_of_rehearsal(page.document)
                                    : answer_of_validation(page.document);
}

}  // namespace ganymede::report

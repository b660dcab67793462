#include "report/plan_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/text.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plans.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
constexpr std::size_t kCardNames = 10;  ///< columns beside the cards on a terminal, for their names

using documents::Plan;
using documents::PlanRequest;
using documents::PlanRow;

std::string cost_with_range(const PlanRow& row) {
  return spoken_usd(row.usd.median) + " USD" + spoken_range(row.usd.interval.low, row.usd.interval.high, spoken_usd);
}
std::string time_with_range(const PlanRow& row) {
  return spoken_time(row.time_s.median) + spoken_range(row.time_s.interval.low, row.time_s.interval.high, spoken_time);
}

/// An amount without cents that are zero: "500" for "500.00".
std::string whole_usd(const std::string& amount) {
  return amount.ends_with(".00") ? amount.substr(0, amount.size() - 3) : amount;
}

/// The goals as words: "2 h and 5 USD"; empty if there are none.
std::string goals_in_words(const PlanRequest& request) {
  std::string out;
  if (request.deadline_s) out = to_string(*request.deadline_s);
  if (request.budget) out += (out.empty() ? "" : " and ") + whole_usd(decimal(*request.budget)) + " USD";
  return out;
}

/// How many seeds a row's probability is the mean of, if chance decides there; otherwise 0. That of an FID is the
/// forecast's, too, and is no count of runs.
int drawn_runs(const PlanRow& row) {
  return row.risk == "none" || !row.probability || row.quality ? 0 : std::max(row.seeds, row.probability_runs);
}

/// Rounded down, so that 89.9 % is not called the 90 % that were asked for.
std::string floored_percent(double probability) {
  return probability > 0.99 ? "> 99 %" : fmt::format("{:.0f} %", std::floor(100 * probability + 1e-9));
}

/// Whether all of the runs kept the goals, as far as so many can tell.
bool is_all_of(double probability, int runs) { return probability > std::max(0.99, 1 - 0.5 / runs); }

/// How likely the chosen row keeps to the goals, for a sentence: one number, and where chance decides, its 95 %
/// interval by that many runs (Wilson, Journal of the American Statistical Association 22, 1927).
std::string goals_sentence(const PlanRow& row, const std::string& goals) {
  std::string error;
  if (const double runs = drawn_runs(row); runs > 0) {
    constexpr double kZ = 1.959964, kRounding = 1e-9;
    const double p = *row.probability, square = kZ * kZ / runs;
    const double middle = (p + square / 2) / (1 + square);
    const double half = kZ * std::sqrt(p * (1 - p) / runs + square / runs / 4) / (1 + square);
    error = fmt::format(" ({:.0f} to {:.0f} %, {:.0f} runs)", std::floor(100 * (middle - half) + kRounding),
                        std::ceil(100 * (middle + half) - kRounding), runs);
  }
  return fmt::format(" The probability to {}keep to {} is {}{}.", row.quality ? "get there and to " : "", goals,
                     error.empty() ? plan_probability(row) : floored_percent(*row.probability), error);
}

/// The price of all nodes an hour, with its date and age: "0.3106 USD/h of 2026-07-30, 20 days old"; empty in a
/// document without it.
std::string hourly_price(const PlanRow& row, const PlanRequest& request) {
  if (!row.usd_per_hour || row.usd_per_hour->value == 0) return "";
  const std::string date = price_date(row.prices_as_of, request.prices_aged_to.value_or(""));
  return price_cell(decimal(*row.usd_per_hour)) + " USD/h" +
         (date.empty() ? "" : (date == "undated" ? ", " : " ") + date);
}

/// The doubts that must be known beside the figures.
std::string doubts(const PlanRow& row) {
  const PlanMarks marks = plan_marks(row);
  std::string out;
  if (marks.price_doubtful)
    out += fmt::format(" The price is doubtful ({}) and may be {:.3g} times as high, which the range includes.",
                       *row.price->doubt, row.price->factors.high);
  if (marks.risk_assumed)
    out += fmt::format(" How often nodes are taken back there is assumed, not measured: {}.", plan_interruptions(row));
  return out;
}

/// How many nodes a run loses, on average.
std::string interruptions_of(const PlanRow& row) {
  const double losses = row.losses_mean;
  return losses == 0      ? "none"
         : losses < 0.095 ? "< 0.1"
         : losses < 99.5  ? fmt::format("{:.2g}", losses)
                          : with_thousands(std::llround(losses));
}

/// Its losses with nodes that are taken back, and how often it saves itself; empty in a document without it.
std::string losses_sentence(const PlanRow& row) {
  if (row.risk == "none" || !row.lost_s || !row.saved_every_s) return "";
  return fmt::format(" The training saves itself {}; a run loses {} of work to interruptions ({}).",
                     *row.saved_every_s > 0 ? "every " + spoken_time(*row.saved_every_s) : "at its end alone",
                     spoken_time(*row.lost_s), interruptions_of(row));
}

/// Says what a row of "more_money" gives for its price, beside the chosen one.
std::string for_more_money(const PlanRow& row, const PlanRow& chosen, const PlanRequest& request) {
  const double more = row.usd.median - chosen.usd.median;
  std::string out = more >= 0.005
                        ? fmt::format(" For {} USD more ({:+.1f} %)", spoken_usd(more), 100 * more / chosen.usd.median)
                        : " For the same money";
  out += fmt::format(", {} at {} takes {} instead of {}", plan_rented(row, request), plan_place(row),
                     spoken_time(row.time_s.median), spoken_time(chosen.time_s.median));
  if (request.has_goals())
    out += fmt::format(", and the goals are met in {} instead of {}", plan_probability(row), plan_probability(chosen));
  return out + ".";
}

/// The value to four digits, or to as many more as tell it from `now`.
std::string apart(double value, double now) {
  int digits = 4;
  const auto rounded = [&](double number) { return fmt::format("{:.{}g}", number, digits); };
  while (value != now && digits < 9 && rounded(value) == rounded(now)) ++digits;
  return rounded(value);
}

/// A value of what the choice hangs on, in its unit.
std::string value_in(const std::string& unit, double value, double now) {
  if (unit == "s") return clock(value);
  return fmt::format("{} {}", apart(value, now), unit == "factor" ? "times" : unit);
}

/// What is instead of a step's time; in milliseconds where the usual digits do not tell the two apart.
std::string instead_of(double value_s, double now_s) {
  const std::string value = to_string(Seconds{value_s}), now = to_string(Seconds{now_s});
  if (value != now || value_s == now_s) return fmt::format("{} instead of {}", value, now);
  return fmt::format("{} ms instead of {} ms", apart(1e3 * value_s, 1e3 * now_s), apart(1e3 * now_s, 1e3 * value_s));
}

std::string threshold_of(const documents::Why::HangsOn& one, const std::vector<documents::PlanStep>& steps) {
  if (one.without) return *one.without;
  const double value = one.threshold.value_or(one.tried);
  std::string out = value_in(one.unit, value, one.now);
  if (one.what == "step_time") out += " as long";
  if (one.what == "interruptions") out += " as often";
  out = one.threshold ? "above " + out : "no change up to " + out;
  constexpr double kTimes = 10;  // from this factor on percent are hard to read
  if (one.unit == "USD/h")
    out += value >= kTimes * one.now
               ? fmt::format(" a node (now {:.4g}, {:.3g} times as much)", one.now, value / one.now)
               : fmt::format(" a node (now {:.4g}, {:+.3g} %)", one.now, 100 * (value / one.now - 1));
  if (one.unit == "s") out += fmt::format(" (now {})", clock(one.now));
  if (one.what == "step_time" && !steps.empty()) {
    const documents::PlanStep& step = steps.front();
    out += fmt::format(" ({}; the stated error reaches {})", instead_of(step.seconds * value, step.seconds),
                       to_string(Seconds{step.interval_s.high}));
  }
  return out;
}

/// Whether two candidates rent and run the same.
bool is_same_rent(const PlanRow& one, const PlanRow& other) {
  const auto what = [](const PlanRow& row) {
    return std::tie(row.provider, row.region, row.market, row.instance, row.nodes, row.on_demand_nodes,
                    row.gpus_per_node, row.batch_per_gpu, row.scheme, row.policy, row.checkpoint);
  };
  return what(one) == what(other);
}

/// If an FID is the goal: its images, the chance never to get there, and what a point less costs.
std::string quality_in_words(const PlanRow& row, const PlanRequest& request) {
  if (!row.quality) return "";
  const documents::PlanQuality& quality = *row.quality;
  std::string out = fmt::format(
      " An FID of {:g} takes {:.3g} images ({:.3g} .. {:.3g}), time and cost being those of a training that gets "
      "there; "
      "{:.0f} % never do.",
      request.fid.value_or(0), quality.images.median, quality.images.interval.low, quality.images.interval.high,
      100 * quality.never);
  if (const auto& checks = quality.checks)
    out += fmt::format(" It is evaluated every {:.3g} images, {:g} times for {} each.", checks->every_images,
                       checks->count, clock(checks->pause_s));
  if (quality.usd_per_point)
    out += fmt::format(" One point of FID less costs {} USD more.", spoken_usd(*quality.usd_per_point));
  return out;
}

/// If nothing could be simulated or ruled out by its goals: what was left out and what cannot run, and why.
std::string why_nothing_runs(const Plan& plan) {
  if (plan.searched.candidates != plan.searched.impossible) return "";  // some could run, and miss the goals
  std::string out;
  for (const std::string& why : plan.left_out) out += (out.empty() ? "" : "; ") + why;
  for (const Plan::CannotRun& why : plan.cannot_run) out += (out.empty() ? "" : "; ") + why.reason;
  return out;
}

}  // namespace

std::string plan_outcome(const PlanRequest& request) {
  return request.has_goals() || request.fid ? "goals met" : "finishes";
}

std::string plan_target(const PlanRequest& request) {
  return request.fid ? fmt::format("an FID of {:g}", *request.fid)
                     : with_thousands(request.images.value_or(0)) + " images";
}

std::string plan_probability(const PlanRow& row) {
  if (!row.probability) return percent(row.met_share);
  const double probability = *row.probability;
  if (const int runs = drawn_runs(row); runs > 0 && is_all_of(probability, runs)) return fmt::format("all of {}", runs);
  return floored_percent(probability);
}

std::string plan_probability_of_runs(const PlanRow& row) {
  const std::string probability = plan_probability(row);
  const int runs = drawn_runs(row);
  if (runs == 0) return probability;
  return probability.starts_with("all") ? probability + " runs" : fmt::format("{} of {} runs", probability, runs);
}

std::string plan_interruptions(const PlanRow& row) {
  return row.risk == "none" ? "none" : interruptions_of(row) + " a run";
}

std::string plan_answer(const Plan& plan) {
  const PlanRequest& request = plan.request;
  if (!plan.chosen) {
    const std::string why = why_nothing_runs(plan);
    return why.empty() ? "Nothing that was searched meets the goals."
                       : "Nothing that was searched can run it: " + why + ".";
  }
  const PlanRow& chosen = *plan.chosen;
  std::string out = fmt::format("Rent {} at {}: {} in {}.", plan_rented(chosen, request), plan_place(chosen),
                                cost_with_range(chosen), time_with_range(chosen));
  if (const std::string goals = goals_in_words(request); !goals.empty()) out += goals_sentence(chosen, goals);
  out += quality_in_words(chosen, request);
  out += losses_sentence(chosen) + doubts(chosen);
  if (plan.more_money)
    for (const PlanRow& row : *plan.more_money) out += for_more_money(row, chosen, request);
  if (plan.more_money && plan.more_money->empty() && request.objective == "cost")
    out += " Up to 5 % more money buys nothing better.";
  return out;
}

std::string plan_cheaper_if(const Plan& plan) {
  if (!plan.cards) return "";
  const PlanRow& card = plan.cards->cheapest;
  const PlanRow* least = nullptr;
  for (const PlanRow& row : plan.simulated)
    if (row.verdict == "meets" && (least == nullptr || row.usd.median < least->usd.median)) least = &row;
  if (least == nullptr || least->usd.median > 0.995 * card.usd.median) return "";
  const auto highest = [](const PlanRow& row) { return row.usd.at_worst_prices.value_or(row.usd.median); };
  return fmt::format(
      "{} at {} is cheaper only if its doubtful price holds: {} USD, but {} USD at the high end of what that price may "
      "be, where the cheapest here costs {} USD.",
      plan_rented(*least, plan.request), plan_place(*least), spoken_usd(least->usd.median), spoken_usd(highest(*least)),
      spoken_usd(highest(card)));
}

std::string plan_range_level(const Plan& plan) {
  // The interval of images to an FID holds 90 %.
  const bool measured = plan.chosen && plan.chosen->inputs == "measured" && !plan.chosen->quality;
  const bool waits =
      std::any_of(plan.simulated.begin(), plan.simulated.end(), [](const PlanRow& row) { return drawn_runs(row) > 0; });
  return fmt::format("Ranges hold about {} % of what may happen: the spread of the runs and all stated error{}.{}",
                     measured ? 95 : 90, kUnknownMachines,
                     waits ? " Time holds the hours in which a node is waited for, which are not paid." : "");
}

std::vector<PlanCard> plan_cards(const Plan& plan) {
  std::vector<PlanCard> out;
  if (!plan.cards) return out;
  std::vector<const PlanRow*> rows;
  struct Named {
    std::string name, about;
    const PlanRow* row;
  };
  std::vector<Named> named = {{"cheapest", "the least that meets the goals", &plan.cards->cheapest},
                              {"balanced", "the best trade between time and money", &plan.cards->balanced},
                              {"safest", "the most probable, known risks first", &plan.cards->safest}};
  // The choice is none of them if something else than money was asked for.
  if (const std::string& objective = plan.request.objective; objective != "cost" && plan.chosen)
    named.insert(named.begin(), {objective == "time"     ? "fastest"
                                 : objective == "carbon" ? "least carbon"
                                                         : "best by " + objective,
                                 "what was asked for", &*plan.chosen});
  for (const auto& [name, about, shown] : named) {
    const PlanRow& row = *shown;
    std::size_t same = 0;
    while (same < rows.size() && !is_same_rent(*rows[same], row)) ++same;
    if (same < rows.size()) {
      out[same].name += ", " + name;
      out[same].about += "; " + about;
      continue;
    }
    rows.push_back(&row);
    const PlanMarks marks = plan_marks(row);
    out.push_back({name, about, plan_rented(row, plan.request) + ", " + plan_place(row),
                   cost_with_range(row) + (marks.price_doubtful ? " (?)" : ""), time_with_range(row),
                   plan_probability_of_runs(row) + (marks.risk_assumed ? " (!)" : ""), hourly_price(row, plan.request),
                   plan_interruptions(row)});
  }
  return out;
}

std::string plan_cards_text(const Plan& plan, std::size_t width) {
  std::string out;
  const std::vector<PlanCard> cards = plan_cards(plan);
  std::size_t widest = 0;
  for (const PlanCard& card : cards)
    for (const std::string& name : wrap_words(card.name, kCardNames)) widest = std::max(widest, name.size());
  const bool goals = plan.request.has_goals();
  for (const PlanCard& card : cards) {
    const std::vector<std::string> names = wrap_words(card.name, kCardNames);
    std::string how;
    for (const std::string& part : {goals ? "goals met: " + card.probability : "", card.hourly,
                                    card.interruptions == "none" ? "" : "interruptions: " + card.interruptions})
      if (!part.empty()) how += (how.empty() ? "" : "; ") + part;
    std::vector<std::string> lines = {card.rented, card.cost + " in " + card.time, how, card.about};
    std::erase(lines, "");
    for (std::size_t i = 0; i < std::max(lines.size(), names.size()); ++i)
      out += hanging(fmt::format("  {:<{}}  ", i < names.size() ? names[i] : "", widest),
                     i < lines.size() ? lines[i] : "", width);
  }
  return out;
}

std::string why_text(const Json& document, std::size_t width) {
  const documents::Why why = documents::why_in(document);
  const PlanRow& chosen = why.chosen;
  std::string out =
      wrap_prose(fmt::format("{}, {}: {} in {}\n\nIt is chosen until one of these rises, all else as planned:\n\n",
                             plan_rented(chosen, why.request), plan_place(chosen), cost_with_range(chosen),
                             time_with_range(chosen)),
                 width);
  for (const documents::Why::HangsOn& one : why.hangs_on) {
    std::string text = threshold_of(one, why.steps);
    if (one.threshold)
      text += one.to ? fmt::format(": {}, {}, {} USD in {}", plan_rented(*one.to, why.request), plan_place(*one.to),
                                   spoken_usd(one.to->usd.median), spoken_time(one.to->time_s.median))
                     : ": nothing meets the goals";
    std::string name = one.what;
    if (name == "price") name = "price there";
    if (name == "prices") name = "all regions";
    if (name == "step_time") name = "step time";
    out += hanging(fmt::format("  {:<15}", name), text, width);
  }
  return out;
}

}  // namespace ganymede::report

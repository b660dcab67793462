#include "report/plan_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plans.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
constexpr std::size_t kCardNames = 10;  ///< columns beside the cards on a terminal, for their names

double median_of(const Json& row, const char* what) { return row.at(what).at("median").get<double>(); }

/// The range of a row's interval, or nothing if both ends read the same.
std::string in_brackets(const Json& row, const char* what, auto&& shown) {
  const Json& ends = row.at(what).at("interval");
  return spoken_range(ends.at(0).get<double>(), ends.at(1).get<double>(), shown);
}

std::string cost_with_range(const Json& row) {
  return spoken_usd(median_of(row, "usd")) + " USD" + in_brackets(row, "usd", spoken_usd);
}
std::string time_with_range(const Json& row) {
  return spoken_time(median_of(row, "time_s")) + in_brackets(row, "time_s", spoken_time);
}

/// An amount without cents that are zero: "500" for "500.00".
std::string whole_usd(const std::string& amount) {
  return amount.ends_with(".00") ? amount.substr(0, amount.size() - 3) : amount;
}

/// The goals as words: "2 h and 5 USD"; empty if there are none.
std::string goals_in_words(const Json& request) {
  std::string out;
  if (request.contains("deadline_s") && request.at("deadline_s").is_number())
    out = to_string(Seconds{request.at("deadline_s").get<double>()});
  if (request.contains("budget_usd") && request.at("budget_usd").is_string())
    out += (out.empty() ? "" : " and ") + whole_usd(request.at("budget_usd").get<std::string>()) + " USD";
  return out;
}

/// How many seeds a row's probability is the mean of, if chance decides there; otherwise 0. That of an FID is the
/// forecast's, too, and is no count of runs.
int drawn_runs(const Json& row) {
  if (row.value("risk", "none") == "none" || !row.contains("probability") || row.contains("quality")) return 0;
  return row.value("seeds", 0);
}

/// Whether all of the runs kept the goals, as far as so many can tell.
bool is_all_of(double probability, int runs) { return probability > std::max(0.99, 1 - 0.5 / runs); }

/// The least probability that so many successes in so many runs show: the lower end of the one-sided interval of 95 %
/// (Clopper and Pearson, Biometrika 26, 1934), at which as many successes or more have a probability of 5 %.
double least_probability(int successes, int runs) {
  if (successes <= 0) return 0;
  double low = 0, high = 1;
  for (int step = 0; step < 50; ++step) {
    const double p = (low + high) / 2;
    // The logarithm of the probability of k successes, from all of them down.
    double term = runs * std::log(p), tail = std::exp(term);
    for (int k = runs; k > successes; --k) {
      term += std::log((1 - p) / p * k / (runs - k + 1));
      tail += std::exp(term);
    }
    (tail < 0.05 ? low : high) = p;
  }
  return low;
}

/// How likely the chosen row keeps to the goals, for a sentence. Runs whose interruptions are drawn are counted, and
/// what so few can show is said.
std::string goals_sentence(const Json& row, const std::string& goals) {
  const int runs = drawn_runs(row);
  if (runs == 0)
    return fmt::format(" The probability to {}keep to {} is {}.", row.contains("quality") ? "get there and to " : "",
                       goals, plan_probability(row));
  const double probability = row.at("probability").get<double>();
  const bool all = is_all_of(probability, runs);
  const int kept = all ? runs : static_cast<int>(std::floor(runs * probability + 1e-9));
  return fmt::format(
      " Of {} simulated runs, {} to {}. Other runs may have worse luck: with a confidence of 95 %, the probability is "
      "at least {:.0f} %.",
      runs, all ? "all keep" : plan_probability(row) + " keep", goals, std::floor(100 * least_probability(kept, runs)));
}

/// The price of all nodes an hour, with its date: "0.3106 USD/h of 2026-07-30"; empty in a document without it.
std::string hourly_price(const Json& row) {
  if (!row.contains("usd_per_hour") || std::stod(row.at("usd_per_hour").get<std::string>()) == 0) return "";
  const std::string date = row.value("prices_as_of", "");
  return price_cell(row.at("usd_per_hour")) + " USD/h" +
         (date.empty() ? "" : (date == "undated" ? ", " : " of ") + date);
}

/// What must be known beside the figures.
std::string doubts(const Json& row) {
  const PlanMarks marks = plan_marks(row);
  std::string out;
  if (marks.price_doubtful)
    out +=
        fmt::format(" The price is doubtful ({}) and may be {:.3g} times as high, which the range includes.",
                    row.at("price").at("doubt").get<std::string>(), row.at("price").at("factors").at(1).get<double>());
  if (marks.risk_assumed)
    out += fmt::format(" How often nodes are taken back there is assumed, not measured: {}.", plan_interruptions(row));
  return out;
}

/// What a row of "more_money" gives for its price, beside the chosen one.
std::string for_more_money(const Json& row, const Json& chosen, const Json& request) {
  const double more = median_of(row, "usd") - median_of(chosen, "usd");
  std::string out = more >= 0.005 ? fmt::format(" For {} USD more ({:+.1f} %)", spoken_usd(more),
                                                100 * more / median_of(chosen, "usd"))
                                  : " For the same money";
  out += fmt::format(", {} at {} takes {} instead of {}", plan_rented(row, request), plan_place(row),
                     spoken_time(median_of(row, "time_s")), spoken_time(median_of(chosen, "time_s")));
  if (!goals_in_words(request).empty())
    out += fmt::format(", and the goals are met in {} instead of {}", plan_probability(row), plan_probability(chosen));
  return out + ".";
}

/// The value of a knob in its unit.
std::string knob_value(const std::string& unit, double value) {
  if (unit == "s") return clock(value);
  if (unit == "factor") return fmt::format("{:.4g} times", value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string threshold_of(const Json& one, const Json& steps) {
  const auto unit = one.at("unit").get<std::string>();
  const auto what = one.at("what").get<std::string>();
  const double now = one.at("now").get<double>();
  if (!one.at("without").is_null()) return one.at("without").get<std::string>();
  const bool changes = !one.at("threshold").is_null();
  const double value = one.at(changes ? "threshold" : "tried").get<double>();
  std::string out = knob_value(unit, value);
  if (what == "step_time") out += " as long";
  if (what == "interruptions") out += " as often";
  out = changes ? "above " + out : "no change up to " + out;
  if (unit == "USD/h") out += fmt::format(" a node (now {:.4g}, {:+.3g} %)", now, 100 * (value / now - 1));
  if (unit == "s") out += fmt::format(" (now {})", clock(now));
  if (what == "step_time" && !steps.empty()) {
    const double seconds = steps[0].at("seconds").get<double>();
    out += fmt::format(" ({} instead of {}; the stated error reaches {})", to_string(Seconds{seconds * value}),
                       to_string(Seconds{seconds}), to_string(Seconds{steps[0].at("interval_s").at(1).get<double>()}));
  }
  return out;
}

/// Whether two candidates rent and run the same.
bool is_same_rent(const Json& one, const Json& other) {
  const auto member = [](const Json& row, const char* name) { return row.contains(name) ? row.at(name) : Json(); };
  return std::ranges::all_of(std::array{"provider", "region", "market", "instance", "nodes", "on_demand_nodes",
                                        "gpus_per_node", "batch_per_gpu", "scheme", "policy", "checkpoint"},
                             [&](const char* name) { return member(one, name) == member(other, name); });
}

/// If an FID is the goal: its images, the chance never to get there, and what a point less costs.
std::string quality_in_words(const Json& row, const Json& request) {
  if (!row.contains("quality")) return "";
  const Json& quality = row.at("quality");
  const Json& images = quality.at("images");
  std::string out = fmt::format(
      " An FID of {:g} takes {:.3g} images ({:.3g} .. {:.3g}), time and cost being those of a training that gets "
      "there; "
      "{:.0f} % never do.",
      request.at("fid").get<double>(), images.at("median").get<double>(), images.at("interval").at(0).get<double>(),
      images.at("interval").at(1).get<double>(), 100 * quality.at("never").get<double>());
  if (quality.contains("checks")) {
    const Json& checks = quality.at("checks");
    out += fmt::format(" It is evaluated every {:.3g} images, {:g} times for {} each.",
                       checks.at("every_images").get<double>(), checks.at("count").get<double>(),
                       clock(checks.at("pause_s").get<double>()));
  }
  if (quality.at("usd_per_point").is_number())
    out +=
        fmt::format(" One point of FID less costs {} USD more.", spoken_usd(quality.at("usd_per_point").get<double>()));
  return out;
}

/// If nothing could be simulated or ruled out by its goals: what was left out and what cannot run, and why.
std::string why_nothing_runs(const Json& plan) {
  const Json& searched = plan.at("searched");
  if (searched.at("candidates") != searched.at("impossible")) return "";  // some could run, and miss the goals
  std::string out;
  for (const Json& why : plan.at("left_out")) out += (out.empty() ? "" : "; ") + why.get<std::string>();
  for (const Json& why : plan.at("cannot_run")) out += (out.empty() ? "" : "; ") + why.at("reason").get<std::string>();
  return out;
}

}  // namespace

std::string plan_outcome(const Json& request) {
  return goals_in_words(request).empty() && !(request.contains("fid") && request.at("fid").is_number()) ? "finishes"
                                                                                                        : "goals met";
}

std::string plan_target(const Json& request) {
  if (request.contains("fid") && request.at("fid").is_number())
    return fmt::format("an FID of {:g}", request.at("fid").get<double>());
  return with_thousands(int64_of(request.at("images"))) + " images";
}

std::string plan_probability(const Json& row) {
  if (!row.contains("probability")) return percent(row.at("met_share").get<double>());
  const double probability = row.at("probability").get<double>();
  if (const int runs = drawn_runs(row); runs > 0 && is_all_of(probability, runs)) return fmt::format("all of {}", runs);
  // Rounded down, so that 89.9 % is not called the 90 % that were asked for.
  return probability > 0.99 ? "> 99 %" : fmt::format("{:.0f} %", std::floor(100 * probability + 1e-9));
}

std::string plan_probability_of_runs(const Json& row) {
  const std::string probability = plan_probability(row);
  const int runs = drawn_runs(row);
  if (runs == 0) return probability;
  return probability.starts_with("all") ? probability + " runs" : fmt::format("{} of {} runs", probability, runs);
}

std::string plan_interruptions(const Json& row) {
  if (row.value("risk", "none") == "none") return "none";
  const double losses = row.value("losses_mean", 0.0);
  return fmt::format("{} a run", losses == 0      ? "none"
                                 : losses < 0.095 ? "< 0.1"
                                 : losses < 99.5  ? fmt::format("{:.2g}", losses)
                                                  : with_thousands(std::llround(losses)));
}

std::string plan_answer(const Json& plan) {
  const Json& request = plan.at("request");
  const Json& chosen = plan.at("chosen");
  if (chosen.is_null()) {
    const std::string why = why_nothing_runs(plan);
    return why.empty() ? "Nothing that was searched meets the goals."
                       : "Nothing that was searched can run it: " + why + ".";
  }
  std::string out = fmt::format("Rent {} at {}: {} in {}.", plan_rented(chosen, request), plan_place(chosen),
                                cost_with_range(chosen), time_with_range(chosen));
  if (const std::string goals = goals_in_words(request); !goals.empty()) out += goals_sentence(chosen, goals);
  out += quality_in_words(chosen, request);
  out += doubts(chosen);
  if (plan.contains("more_money"))
    for (const Json& row : plan.at("more_money")) out += for_more_money(row, chosen, request);
  if (plan.contains("more_money") && plan.at("more_money").empty() && request.at("objective") == "cost")
    out += " Up to 5 % more money buys nothing better.";
  return out;
}

std::string plan_cheaper_if(const Json& plan) {
  if (!plan.contains("cards") || !plan.at("cards").is_object()) return "";
  const Json& card = plan.at("cards").at("cheapest");
  const Json* least = nullptr;
  for (const Json& row : plan.at("simulated"))
    if (row.value("verdict", "meets") == "meets" &&
        (least == nullptr || median_of(row, "usd") < median_of(*least, "usd")))
      least = &row;
  if (least == nullptr || median_of(*least, "usd") > 0.995 * median_of(card, "usd")) return "";
  const auto highest = [](const Json& row) { return row.at("usd").value("at_worst_prices", median_of(row, "usd")); };
  return fmt::format(
      "{} at {} is cheaper only if its doubtful price holds: {} USD, but {} USD at the high end of what that price may "
      "be, where the cheapest here costs {} USD.",
      plan_rented(*least, plan.at("request")), plan_place(*least), spoken_usd(median_of(*least, "usd")),
      spoken_usd(highest(*least)), spoken_usd(highest(card)));
}

std::string plan_range_level(const Json& plan) {
  // The interval of images to an FID holds 90 %.
  const bool measured = plan.at("chosen").is_object() && plan.at("chosen").value("inputs", "") == "measured" &&
                        !plan.at("chosen").contains("quality");
  const Json& rows = plan.at("simulated");
  const bool waits = std::any_of(rows.begin(), rows.end(), [](const Json& row) { return drawn_runs(row) > 0; });
  return fmt::format("Ranges hold about {} % of what may happen: the spread of the runs and all stated error{}.{}",
                     measured ? 95 : 90, kUnknownMachines,
                     waits ? " Time holds the hours in which a node is waited for, which are not paid." : "");
}

std::vector<PlanCard> plan_cards(const Json& plan) {
  std::vector<PlanCard> out;
  if (!plan.contains("cards") || plan.at("cards").is_null()) return out;
  std::vector<const Json*> rows;
  struct Named {
    std::string name, about;
    const Json* row;
  };
  const auto of = [&](const char* name) { return &plan.at("cards").at(name); };
  std::vector<Named> named = {{"cheapest", "the least that meets the goals", of("cheapest")},
                              {"balanced", "the best trade between time and money", of("balanced")},
                              {"safest", "the most probable, known risks first", of("safest")}};
  // The choice is none of them if something else than money was asked for.
  if (const auto objective = plan.at("request").at("objective").get<std::string>();
      objective != "cost" && plan.at("chosen").is_object())
    named.insert(named.begin(), {objective == "time"     ? "fastest"
                                 : objective == "carbon" ? "least carbon"
                                                         : "best by " + objective,
                                 "what was asked for", &plan.at("chosen")});
  for (const auto& [name, about, shown] : named) {
    const Json& row = *shown;
    std::size_t same = 0;
    while (same < rows.size() && !is_same_rent(*rows[same], row)) ++same;
    if (same < rows.size()) {
      out[same].name += ", " + name;
      out[same].about += "; " + about;
      continue;
    }
    rows.push_back(&row);
    const PlanMarks marks = plan_marks(row);
    out.push_back({name, about, plan_rented(row, plan.at("request")) + ", " + plan_place(row),
                   cost_with_range(row) + (marks.price_doubtful ? " (?)" : ""), time_with_range(row),
                   plan_probability_of_runs(row) + (marks.risk_assumed ? " (!)" : ""), hourly_price(row),
                   plan_interruptions(row)});
  }
  return out;
}

std::string plan_cards_text(const Json& plan, std::size_t width) {
  std::string out;
  const std::vector<PlanCard> cards = plan_cards(plan);
  std::size_t widest = 0;
  for (const PlanCard& card : cards)
    for (const std::string& name : wrap_words(card.name, kCardNames)) widest = std::max(widest, name.size());
  const bool goals = !goals_in_words(plan.at("request")).empty();
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

std::string why_text(const Json& why, std::size_t width) {
  const Json& request = why.at("request");
  const Json& chosen = why.at("chosen");
  std::string out =
      fmt::format("{}, {}: {} in {}\n\nIt is chosen until one of these rises, all else as planned:\n\n",
                  plan_rented(chosen, request), plan_place(chosen), cost_with_range(chosen), time_with_range(chosen));
  out = wrap_prose(out, width);
  for (const Json& one : why.at("hangs_on")) {
    std::string text = threshold_of(one, why.at("steps"));
    const Json& to = one.at("to");
    if (!one.at("threshold").is_null())
      text += to.is_null() ? ": nothing meets the goals"
                           : fmt::format(": {}, {}, {} USD in {}", plan_rented(to, request), plan_place(to),
                                         spoken_usd(median_of(to, "usd")), spoken_time(median_of(to, "time_s")));
    auto name = one.at("what").get<std::string>();
    if (name == "price") name = "price there";
    if (name == "prices") name = "all regions";
    if (name == "step_time") name = "step time";
    out += hanging(fmt::format("  {:<15}", name), text, width);
  }
  return out;
}

}  // namespace ganymede::report

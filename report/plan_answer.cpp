#include "report/plan_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plans.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

using Json = nlohmann::json;

double median_of(const Json& row, const char* what) { return row.at(what).at("median").get<double>(); }

/// "LOW .. HIGH" of a row's interval, or nothing if both ends read the same.
std::string in_brackets(const Json& row, const char* what, auto&& shown) {
  const Json& ends = row.at(what).at("interval");
  const std::string low = shown(ends.at(0).get<double>()), high = shown(ends.at(1).get<double>());
  return low == high ? "" : fmt::format(" ({} .. {})", low, high);
}

/// Dollars for a sentence: cents, or two digits of what is less than ten cents.
std::string spoken_usd(double amount) {
  return amount >= 0.1 || amount == 0 ? fmt::format("{:.2f}", amount) : fmt::format("{:.2g}", amount);
}

std::string cost_with_range(const Json& row) {
  return spoken_usd(median_of(row, "usd")) + " USD" + in_brackets(row, "usd", spoken_usd);
}
std::string time_with_range(const Json& row) {
  const auto longest = row.at("time_s").at("interval").at(1).get<double>();
  const auto shown = [&](double seconds) { return clock_like(seconds, longest); };
  return shown(median_of(row, "time_s")) + in_brackets(row, "time_s", shown);
}

/// What is rented, with its GPUs unless the instance is not all used, which plan_rented() says.
std::string rented_with_gpus(const Json& row, const Json& request) {
  return fmt::format("{} ({} x {})", plan_rented(row, request), row.at("gpus").dump(),
                     row.at("gpu").get<std::string>());
}

/// The goals as words: "2:00:00 and 5.00 USD"; empty if there are none.
std::string goals_in_words(const Json& request) {
  std::string out;
  if (request.contains("deadline_s") && request.at("deadline_s").is_number())
    out = clock(request.at("deadline_s").get<double>());
  if (request.contains("budget_usd") && request.at("budget_usd").is_string())
    out += (out.empty() ? "" : " and ") + request.at("budget_usd").get<std::string>() + " USD";
  return out;
}

/// What must be known beside the figures.
std::string doubts(const Json& row) {
  const PlanMarks marks = plan_marks(row);
  std::string out;
  if (marks.price_doubtful)
    out +=
        fmt::format(" The price is doubtful ({}) and may be {:.3g} times as high, which the range includes.",
                    row.at("price").at("doubt").get<std::string>(), row.at("price").at("factors").at(1).get<double>());
  if (marks.risk_assumed) out += " How often nodes are taken back there is assumed, not measured.";
  return out;
}

/// What a row of "more_money" gives for its price, beside the chosen one.
std::string for_more_money(const Json& row, const Json& chosen, const Json& request) {
  const double more = median_of(row, "usd") - median_of(chosen, "usd");
  std::string out = more >= 0.005 ? fmt::format(" For {} USD more ({:+.1f} %)", spoken_usd(more),
                                                100 * more / median_of(chosen, "usd"))
                                  : " For the same money";
  out += fmt::format(", {} at {} takes {} instead of {}", rented_with_gpus(row, request), plan_place(row),
                     clock(median_of(row, "time_s")), clock(median_of(chosen, "time_s")));
  if (!goals_in_words(request).empty())
    out += fmt::format(", with a probability of {} instead of {}", plan_probability(row), plan_probability(chosen));
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

}  // namespace

std::string plan_outcome(const Json& request) {
  return goals_in_words(request).empty() && !(request.contains("fid") && request.at("fid").is_number()) ? "finishes"
                                                                                                        : "goals met";
}

std::string plan_target(const Json& request) {
  if (request.contains("fid") && request.at("fid").is_number())
    return fmt::format("an FID of {:g}", request.at("fid").get<double>());
  return with_thousands(request.at("images").get<std::int64_t>()) + " images";
}

std::string plan_probability(const Json& row) {
  const double probability = row.value("probability", row.at("met_share").get<double>());
  if (!row.contains("probability")) return percent(probability);
  return probability > 0.999 ? "> 99.9 %" : percent(std::floor(1000 * probability) / 1000);
}

std::string plan_answer(const Json& plan) {
  const Json& request = plan.at("request");
  const Json& chosen = plan.at("chosen");
  if (chosen.is_null()) return "Nothing that was searched meets the goals.";
  std::string out = fmt::format("Rent {} at {}: {} in {}.", rented_with_gpus(chosen, request), plan_place(chosen),
                                cost_with_range(chosen), time_with_range(chosen));
  const std::string goals = goals_in_words(request);
  if (!goals.empty())
    out += fmt::format(" The probability to {}keep to {} is {}.", chosen.contains("quality") ? "get there and to " : "",
                       goals, plan_probability(chosen));
  out += quality_in_words(chosen, request);
  out += doubts(chosen);
  if (plan.contains("more_money"))
    for (const Json& row : plan.at("more_money")) out += for_more_money(row, chosen, request);
  if (plan.contains("more_money") && plan.at("more_money").empty() && request.at("objective") == "cost")
    out += " Up to 5 % more money buys nothing better.";
  return out;
}

std::vector<PlanCard> plan_cards(const Json& plan) {
  std::vector<PlanCard> out;
  if (!plan.contains("cards") || plan.at("cards").is_null()) return out;
  std::vector<const Json*> rows;
  std::vector<std::pair<std::string, const Json*>> named;
  for (const char* name : {"cheapest", "balanced", "safest"}) named.emplace_back(name, &plan.at("cards").at(name));
  // The choice is none of them if something else than money was asked for.
  if (const auto objective = plan.at("request").at("objective").get<std::string>();
      objective != "cost" && plan.at("chosen").is_object())
    named.emplace(named.begin(),
                  objective == "time"     ? "fastest"
                  : objective == "carbon" ? "least carbon"
                                          : "best by " + objective,
                  &plan.at("chosen"));
  for (const auto& [name, shown] : named) {
    const Json& row = *shown;
    std::size_t same = 0;
    while (same < rows.size() && !is_same_rent(*rows[same], row)) ++same;
    if (same < rows.size()) {
      out[same].name += ", " + name;
      continue;
    }
    rows.push_back(&row);
    const PlanMarks marks = plan_marks(row);
    out.push_back({name, rented_with_gpus(row, plan.at("request")) + ", " + plan_place(row),
                   cost_with_range(row) + (marks.price_doubtful ? " (?)" : ""), time_with_range(row),
                   plan_probability(row) + (marks.risk_assumed ? " (!)" : "")});
  }
  return out;
}

std::string plan_answer_text(const Json& plan, std::size_t width) {
  std::string out;
  const std::vector<PlanCard> cards = plan_cards(plan);
  std::size_t widest = 0;
  for (const PlanCard& card : cards) widest = std::max(widest, card.name.size());
  const bool goals = !goals_in_words(plan.at("request")).empty();
  if (!cards.empty()) out += "\nThe choice in short:\n\n";
  for (const PlanCard& card : cards) {
    const std::string indent(widest + 4, ' ');
    out += hanging(fmt::format("  {:<{}}  ", card.name, widest), card.rented, width);
    out += hanging(indent, card.cost, width) + hanging(indent, card.time, width);
    if (goals) out += hanging(indent, "goals met with a probability of " + card.probability, width);
  }
  return out + "\n" + wrap_prose(plan_answer(plan) + "\n", width);
}

std::string why_text(const Json& why, std::size_t width) {
  const Json& request = why.at("request");
  const Json& chosen = why.at("chosen");
  std::string out = fmt::format("{}, {}: {} in {}\n\nIt is chosen until one of these rises, all else as planned:\n\n",
                                rented_with_gpus(chosen, request), plan_place(chosen), cost_with_range(chosen),
                                time_with_range(chosen));
  out = wrap_prose(out, width);
  for (const Json& one : why.at("hangs_on")) {
    std::string text = threshold_of(one, why.at("steps"));
    const Json& to = one.at("to");
    if (!one.at("threshold").is_null())
      text += to.is_null() ? ": nothing meets the goals"
                           : fmt::format(": {}, {}, {} USD in {}", rented_with_gpus(to, request), plan_place(to),
                                         spoken_usd(median_of(to, "usd")), clock(median_of(to, "time_s")));
    auto name = one.at("what").get<std::string>();
    if (name == "price") name = "price there";
    if (name == "prices") name = "all regions";
    if (name == "step_time") name = "step time";
    out += hanging(fmt::format("  {:<15}", name), text, width);
  }
  return out;
}

}  // namespace ganymede::report

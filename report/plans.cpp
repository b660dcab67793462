#include "report/plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/dates.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
using documents::Plan;
using documents::PlanRequest;
using documents::PlanRow;
using Rows = std::vector<PlanRow>;

bool is_mixed(const PlanRow& row) { return row.on_demand_nodes > 0 && row.on_demand_nodes < row.nodes; }

bool has_several_batches(const PlanRequest& request) { return request.batches_per_gpu.size() > 1; }

bool doubtful_price(const PlanRow& row) { return row.price && row.price->doubt; }

}  // namespace

std::string price_date(const std::string& as_of, const std::string& today) {
  if (!is_date(as_of)) return as_of;
  const int days = is_date(today) ? days_between(as_of, today) : 0;
  return days > 0 ? fmt::format("of {}, {} old", as_of, counted(static_cast<std::size_t>(days), "day")) : "of " + as_of;
}

std::string price_age(const std::string& as_of, const std::string& today) {
  if (!is_date(as_of) || !is_date(today)) return as_of;
  const int days = days_between(as_of, today);
  return days < 0 ? "in the future" : days < 60 ? fmt::format("{} d", days) : fmt::format("{} mo", days / 30);
}

std::string plan_place(const PlanRow& row) {
  return row.provider + " " + row.region + (row.market == "on-demand" ? "" : " " + row.market) +
         (is_mixed(row) ? " and on demand" : "");
}

std::string plan_nodes(const PlanRow& row) {
  std::string out = fmt::format("{} x {}", row.nodes, row.instance);
  if (is_mixed(row)) out += fmt::format(", {} on demand", row.on_demand_nodes);
  if (row.part_of_instance) out += fmt::format(", {} GPUs of each", row.gpus_per_node);
  return out;
}

std::string plan_batch(const PlanRow& row, const PlanRequest& request) {
  return has_several_batches(request) && row.batch_per_gpu ? fmt::format("batch {}", *row.batch_per_gpu) : "";
}

std::string plan_rented(const PlanRow& row, const PlanRequest& request) {
  const std::string gpus = row.gpus == row.nodes ? row.gpu : fmt::format("{} x {}", row.gpus, row.gpu);
  const std::string batch = plan_batch(row, request);
  return fmt::format("{} ({}{}{})", plan_nodes(row), gpus, batch.empty() ? "" : ", ", batch);
}

PlanMarks plan_marks(const PlanRow& row) { return {row.risk == "assumed", doubtful_price(row)}; }

namespace {

bool is_guess(const PlanRow& row) { return plan_marks(row).risk_assumed; }

std::string checkpoint(const PlanRow& row) { return row.checkpoint.value_or("none"); }

/// The assumptions about owning behind the price of a candidate on the user's own machines.
std::string owned_note(const PlanRow& row) { return row.owned.empty() ? "" : "owned: " + row.owned; }

/// How much of the candidates a table shows.
enum class Columns { few, all };

/// Candidates with their money and time first, so that they are on the first line of a row that a narrow terminal
/// folds.
std::string table_of(const Rows& rows, const PlanRequest& request, std::size_t width, Columns columns) {
  double longest = 0;
  for (const PlanRow& row : rows) longest = std::max(longest, row.time_s.interval.high);
  const auto time = [&](double seconds) { return clock_like(seconds, longest); };
  std::vector<std::string> names = {"", ">USD", ">time", ">" + plan_outcome(request), "where", "rented"};
  if (columns == Columns::all)
    names.insert(names.end(), {"USD from .. to", "time from .. to", ">USD/h", "price of", "interruptions", "scheme",
                               "policy", "checkpoint", ">kg CO2e", "note"});
  Table table(names);
  for (const PlanRow& row : rows) {
    std::vector<std::string> cells = {
        row.chosen ? "->" : "",  spoken_usd(row.usd.median) + (doubtful_price(row) ? " (?)" : ""),
        time(row.time_s.median), plan_probability(row) + (is_guess(row) ? " (!)" : ""),
        plan_place(row),         plan_rented(row, request)};
    if (columns == Columns::all)
      cells.insert(cells.end(), {range(row.usd.interval.low, row.usd.interval.high, spoken_usd),
                                 range(row.time_s.interval.low, row.time_s.interval.high, time),
                                 row.usd_per_hour ? price_cell(decimal(*row.usd_per_hour)) : "", row.prices_as_of,
                                 plan_interruptions(row), row.scheme, row.policy, checkpoint(row),
                                 row.kg_co2e ? fmt::format("{:.3g}", row.kg_co2e->median) : "-", owned_note(row)});
    table.add(cells);
  }
  return table.text_below_constants(width);
}

std::string misses_of(const Rows& rows, const PlanRequest& request, std::size_t width) {
  Table table({"where", "rented", "why it fails", "scheme", "policy"});
  for (const PlanRow& row : rows)
    table.add({plan_place(row), plan_rented(row, request), row.reason, row.scheme, row.policy});
  return table.text_below_constants(width);
}

/// The batch sizes that were searched: "128", or "16, 32, 64 or 128".
std::string batches(const PlanRequest& request) {
  const std::vector<int>& all = request.batches_per_gpu;
  if (all.empty()) return std::to_string(request.batch_per_gpu);
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i)
    out += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + std::to_string(all[i]);
  return out;
}

/// The images of a step on all GPUs, if a recipe keeps them the same in all rows.
std::optional<int> batch_of_all(const Plan& plan) {
  std::optional<int> all;
  if (!plan.request.trace.starts_with("the recipe ")) return all;
  for (const Rows* rows : {&plan.best_of_each, &plan.pareto})
    for (const PlanRow& row : *rows) {
      const int images = row.batch_per_gpu.value_or(plan.request.batch_per_gpu) * row.gpus;
      if (all.value_or(images) != images) return {};
      all = images;
    }
  return all;
}

/// Says what is rented, its price with date and source, and which of its risks are not known.
std::string sentence(const PlanRow& row, const PlanRequest& request) {
  std::string out = fmt::format("{}, {}, {}, {}", plan_place(row), plan_rented(row, request), row.scheme, row.policy);
  if (row.checkpoint) out += ", checkpoint " + *row.checkpoint;
  out += fmt::format(": {} USD in {}", usd(row.usd.median), clock(row.time_s.median));
  if (!row.price) return out + fmt::format("; prices as of {}", row.prices_as_of);
  const documents::PlanPrice& price = *row.price;
  out += fmt::format("; price {} USD/h a node, {}, source {}", price_cell(decimal(price.usd_per_hour)),
                     price_date(price.as_of, request.prices_aged_to.value_or("")), price.source);
  if (price.doubt)
    out += fmt::format("; this price is doubtful ({}): with x {:.2f}, as it may be, {} USD", *price.doubt,
                       price.factors.high, usd(row.usd.at_worst_prices.value_or(row.usd.median)));
  if (is_guess(row)) out += "; RISK ASSUMED: when its nodes are taken back is drawn, not measured";
  if (row.never_finish > 0) out += fmt::format("; {} of {} seeds never finish", row.never_finish, row.seeds);
  return out;
}

/// The chosen candidate and, if its risk is assumed, the best one whose risk is not.
std::string choice(const Plan& plan) {
  if (!plan.chosen) return "";
  std::string out = "CHOSEN: " + sentence(*plan.chosen, plan.request) + "\n";
  if (!is_guess(*plan.chosen)) return out + "\n";
  return out +
         (plan.best_of_known_risk ? "without that risk: " + sentence(*plan.best_of_known_risk, plan.request)
                                  : "without that risk: nothing meets the goals") +
         "\n\n";
}

std::string goals(const PlanRequest& request) {
  std::string out;
  if (request.deadline && request.deadline_s) {
    out += " within " + to_string(*request.deadline_s);
    if (request.start) out += fmt::format(" (from {} to {})", *request.start, *request.deadline);
  }
  if (request.budget) out += " for at most " + decimal(*request.budget) + " USD";
  return out;
}

/// Whether this candidate trains with this step.
bool trains_with(const PlanRow& row, const documents::PlanStep& step) {
  return row.gpu == step.gpu && row.batch_per_gpu.value_or(step.batch_per_gpu) == step.batch_per_gpu;
}

/// The time of a step of one GPU on the GPUs of the tables, and in full how the chosen one's was found. Only steps that
/// were not measured are listed.
std::string steps_of(const Plan& plan, std::size_t width) {
  Table table({"GPU", ">batch", ">step", ">from", ">to", "inputs"});
  std::string chosen;
  for (const documents::PlanStep& step : plan.steps) {
    const auto any_of = [&](const Rows& rows) {
      return std::any_of(rows.begin(), rows.end(), [&](const PlanRow& row) { return trains_with(row, step); });
    };
    const bool is_chosen = plan.chosen && trains_with(*plan.chosen, step);
    if (step.inputs == "measured" || (!is_chosen && !any_of(plan.best_of_each) && !any_of(plan.pareto))) continue;
    const auto time = [](double seconds) { return to_string(Seconds{seconds}); };
    table.add({step.gpu, std::to_string(step.batch_per_gpu), time(step.seconds), time(step.interval_s.low),
               time(step.interval_s.high), step.inputs});
    if (is_chosen) chosen = step.how;
  }
  if (table.size() == 0) return "";
  return "Steps of one GPU alone:\n\n" + table.text(width) + (chosen.empty() ? "" : "The choice's: " + chosen + "\n") +
         "\n";
}

/// How many candidates were searched, and what became of them.
std::string search_of(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const Plan::Searched& searched = plan.searched;
  return fmt::format(
             "{} candidates in {}: {} proved too slow, {} too dear{}, {} beaten; {} simulated with {} seeds each{}, {} "
             "of "
             "them "
             "{} with a probability of at least {}{}\n",
             searched.candidates, fmt::join(request.catalogs, ", "), searched.too_slow, searched.too_dear,
             searched.too_rare == 0 ? "" : fmt::format(", {} to get to the FID too rarely", searched.too_rare),
             searched.beaten, searched.simulated, request.seeds,
             request.seeds_without_risk != 0 && request.seeds_without_risk != request.seeds
                 ? fmt::format(" ({} where no node may be lost)", request.seeds_without_risk)
                 : "",
             searched.meeting, plan_outcome(request) == "finishes" ? "finish" : "meet the goals",
             percent(request.certainty),
             searched.impossible == 0 ? "" : fmt::format("; {} cannot run", searched.impossible)) +
         (searched.untried == 0 ? "" : fmt::format("{} were not tried: the search ended early.\n", searched.untried));
}

const std::vector<std::string>& warnings_of(const Plan& plan) {
  static const std::vector<std::string> kNone;
  return plan.chosen && plan.chosen->warnings ? *plan.chosen->warnings : kNone;
}

/// Lists what was left out, what cannot run, and the warnings in full.
std::string remarks_of(const Plan& plan) {
  std::string out;
  for (const std::string& why : plan.left_out) out += "left out: " + why + "\n";
  constexpr std::size_t kReasons = 5;
  for (std::size_t i = 0; i < std::min(kReasons, plan.cannot_run.size()); ++i)
    out += fmt::format("{} cannot run: {}\n", plan.cannot_run[i].candidates, plan.cannot_run[i].reason);
  for (const std::string& warning : warnings_of(plan)) out += "warning: " + warning + "\n";
  return out;
}

/// The warnings up to their first colon, those of unconfirmed facts as a number.
std::string short_warnings(const Plan& plan) {
  std::string out;
  int unconfirmed = 0;
  for (const std::string& warning : warnings_of(plan)) {
    if (warning.starts_with("unconfirmed: "))
      ++unconfirmed;
    else
      out += "warning: " + warning.substr(0, warning.find(": ")) + "\n";
  }
  if (unconfirmed > 0) out += fmt::format("warning: facts of the catalog without a good source: {}\n", unconfirmed);
  return out;
}

/// Explains ranges and marks, and says what is not promised.
std::string notes_of(const Plan& plan) {
  std::string out = plan_range_level(plan) + "\n";
  const auto any_of = [&](auto&& holds) {
    const auto in = [&](const Rows& rows) { return std::any_of(rows.begin(), rows.end(), holds); };
    return in(plan.best_of_each) || in(plan.pareto);
  };
  if (any_of(is_guess)) out += "(!) " + std::string(kAssumedRisk) + ".\n";
  if (any_of(doubtful_price)) out += "(?) " + std::string(kDoubtfulPrice) + ".\n";
  if (const std::string cheaper = plan_cheaper_if(plan); !cheaper.empty()) out += cheaper + "\n";
  if (has_several_batches(plan.request) && plan.request.images && !batch_of_all(plan))
    out += "What a batch size does to quality is not known here: all train the same number of images.\n";
  return out + "Quota and availability are not known here: ask the provider before you rely on a plan.\n";
}

}  // namespace

std::string plan_text(const Json& document, std::size_t width, PlanDetail detail) {
  const Plan plan = documents::plan_in(document);
  const PlanRequest& request = plan.request;
  const bool all = detail == PlanDetail::all;
  const auto of_all = has_several_batches(request) ? batch_of_all(plan) : std::nullopt;
  std::string out = fmt::format("{}: {} in batches of {}{}; minimizing {}\n", request.model, plan_target(request),
                                of_all ? fmt::format("{} on all GPUs", *of_all) : batches(request) + " a GPU",
                                goals(request), request.objective);
  if (all) out += "steps from " + request.trace + "\n" + search_of(plan);
  if (const std::string cards = plan_cards_text(plan, width); !cards.empty()) out += "\n" + cards;
  out += "\n";
  if (all) out += choice(plan);
  if (!plan.best_of_each.empty())
    out += "The best of each provider and market (-> is the choice):\n\n" +
           table_of(plan.best_of_each, request, width, all ? Columns::all : Columns::few) + "\n";
  if (all && plan.pareto.size() > 1)
    out += std::string(kPlanPareto) + ":\n\n" + table_of(plan.pareto, request, width, Columns::all) + "\n";
  if ((all || !plan.chosen) && !plan.near_misses.empty())
    out += "Near misses:\n\n" + misses_of(plan.near_misses, request, width) + "\n";
  if (all) out += steps_of(plan, width);
  // Where nothing is chosen, why is the answer.
  if (!plan.chosen && plan.searched.candidates == plan.searched.impossible)
    out += "Nothing that was searched can run it:\n";
  out += all || !plan.chosen ? remarks_of(plan) : short_warnings(plan);
  out += notes_of(plan);
  if (!all) out += std::string(kPlanMore) + "\n";
  return wrap_prose(out + "\n" + plan_answer(plan) + "\n", width);
}

std::string plan_csv(const Json& document) {
  return csv_of(documents::plan_in(document).simulated, [](const PlanRow& row) -> NamedCells {
    return {{"provider", row.provider},
            {"region", row.region},
            {"market", row.market},
            {"instance", row.instance},
            {"nodes", std::to_string(row.nodes)},
            {"gpu", row.gpu},
            {"gpus", std::to_string(row.gpus)},
            {"scheme", row.scheme},
            {"policy", row.policy},
            {"checkpoint", checkpoint(row)},
            {"time_s", as_in_json(row.time_s.median)},
            {"time_low_s", as_in_json(row.time_s.interval.low)},
            {"time_high_s", as_in_json(row.time_s.interval.high)},
            {"usd", as_in_json(row.usd.median)},
            {"usd_low", as_in_json(row.usd.interval.low)},
            {"usd_high", as_in_json(row.usd.interval.high)},
            {"kg_co2e", row.kg_co2e ? as_in_json(row.kg_co2e->median) : ""},
            {"gpu_busy", as_in_json(row.gpu_busy)},
            {"losses_mean", as_in_json(row.losses_mean)},
            {"met_share", as_in_json(row.met_share)},
            {"probability", row.probability ? as_in_json(*row.probability) : ""},
            {"verdict", row.verdict},
            {"chosen", row.chosen ? "true" : "false"},
            {"batch_per_gpu", row.batch_per_gpu ? std::to_string(*row.batch_per_gpu) : ""},
            {"fid_images", row.quality ? as_in_json(row.quality->images.median) : ""},
            {"fid_never", row.quality ? as_in_json(row.quality->never) : ""}};
  });
}

}  // namespace ganymede::report

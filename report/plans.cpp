#include "report/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
double median(const Json& row, const char* what) { return row.at(what).at("median").get<double>(); }

std::string interval(const Json& row, const char* what, auto&& shown) {
  const Json& ends = row.at(what).at("interval");
  return range(ends.at(0).get<double>(), ends.at(1).get<double>(), shown);
}

/// A member that plans of earlier versions do not have, or its default value.
template <class T>
T member(const Json& row, const char* name, T default_value) {
  const auto found = row.find(name);
  return found == row.end() || found->is_null() ? default_value : found->get<T>();
}

bool is_mixed(const Json& row) {
  const int sure = member(row, "on_demand_nodes", 0);
  return sure > 0 && sure < int_of(row.at("nodes"));
}

bool has_several_batches(const Json& request) {
  return request.contains("batches_per_gpu") && request.at("batches_per_gpu").size() > 1;
}

bool doubtful_price(const Json& row) { return row.contains("price") && !row.at("price").at("doubt").is_null(); }

}  // namespace

std::string plan_place(const Json& row) {
  const auto market = row.at("market").get<std::string>();
  return row.at("provider").get<std::string>() + " " + row.at("region").get<std::string>() +
         (market == "on-demand" ? "" : " " + market) + (is_mixed(row) ? " and on demand" : "");
}

std::string plan_nodes(const Json& row) {
  std::string out = fmt::format("{} x {}", row.at("nodes").dump(), row.at("instance").get<std::string>());
  if (is_mixed(row)) out += fmt::format(", {} on demand", row.at("on_demand_nodes").dump());
  if (member(row, "part_of_instance", false)) out += fmt::format(", {} GPUs of each", row.at("gpus_per_node").dump());
  return out;
}

std::string plan_batch(const Json& row, const Json& request) {
  return has_several_batches(request) && row.contains("batch_per_gpu")
             ? fmt::format("batch {}", row.at("batch_per_gpu").dump())
             : "";
}

std::string plan_rented(const Json& row, const Json& request) {
  const auto gpu = row.at("gpu").get<std::string>();
  const std::string gpus = row.at("gpus") == row.at("nodes") ? gpu : fmt::format("{} x {}", row.at("gpus").dump(), gpu);
  const std::string batch = plan_batch(row, request);
  return fmt::format("{} ({}{}{})", plan_nodes(row), gpus, batch.empty() ? "" : ", ", batch);
}

PlanMarks plan_marks(const Json& row) {
  return {member<std::string>(row, "risk", "none") == "assumed", doubtful_price(row)};
}

namespace {

bool is_guess(const Json& row) { return plan_marks(row).risk_assumed; }

std::string checkpoint(const Json& row) {
  return row.at("checkpoint").is_null() ? "none" : row.at("checkpoint").get<std::string>();
}

/// What the price of a candidate on the user's own machines assumes about owning them.
std::string owned_note(const Json& row) {
  return row.contains("owned") ? "owned: " + row.at("owned").get<std::string>() : "";
}

/// How much of the candidates a table shows.
enum class Columns { few, all };

/// Candidates with their money and time first, so that they are on the first line of a row that a narrow terminal
/// folds.
std::string table_of(const Json& rows, const Json& request, std::size_t width, Columns columns) {
  double longest = 0;
  for (const Json& row : rows) longest = std::max(longest, row.at("time_s").at("interval").at(1).get<double>());
  const auto time = [&](double seconds) { return clock_like(seconds, longest); };
  std::vector<std::string> names = {"", ">USD", ">time", ">" + plan_outcome(request), "where", "rented"};
  if (columns == Columns::all)
    names.insert(names.end(), {"USD from .. to", "time from .. to", ">USD/h", "price of", "interruptions", "scheme",
                               "policy", "checkpoint", ">kg CO2e", "note"});
  Table table(names);
  for (const Json& row : rows) {
    std::vector<std::string> cells = {row.at("chosen").get<bool>() ? "->" : "",
                                      spoken_usd(median(row, "usd")) + (plan_marks(row).price_doubtful ? " (?)" : ""),
                                      time(median(row, "time_s")),
                                      plan_probability(row) + (is_guess(row) ? " (!)" : ""),
                                      plan_place(row),
                                      plan_rented(row, request)};
    if (columns == Columns::all)
      cells.insert(
          cells.end(),
          {interval(row, "usd", spoken_usd), interval(row, "time_s", time), price_cell(row.at("usd_per_hour")),
           row.at("prices_as_of"), plan_interruptions(row), row.at("scheme"), row.at("policy"), checkpoint(row),
           row.at("kg_co2e").is_null() ? "-" : fmt::format("{:.3g}", median(row, "kg_co2e")), owned_note(row)});
    table.add(cells);
  }
  return table.text_below_constants(width);
}

std::string misses_of(const Json& rows, const Json& request, std::size_t width) {
  Table table({"where", "rented", "why it fails", "scheme", "policy"});
  for (const Json& row : rows)
    table.add({plan_place(row), plan_rented(row, request),
               row.contains("reason") ? row.at("reason").get<std::string>() : "", row.at("scheme"), row.at("policy")});
  return table.text_below_constants(width);
}

/// The batch sizes that were searched: "128", or "16, 32, 64 or 128".
std::string batches(const Json& request) {
  if (!request.contains("batches_per_gpu")) return request.at("batch_per_gpu").dump();
  std::string out;
  const Json& all = request.at("batches_per_gpu");
  for (std::size_t i = 0; i < all.size(); ++i)
    out += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + all[i].dump();
  return out;
}

/// What is rented, its price with date and source, and which of its risks are not known.
std::string sentence(const Json& row, const Json& request) {
  std::string out = fmt::format("{}, {}, {}, {}", plan_place(row), plan_rented(row, request),
                                row.at("scheme").get<std::string>(), row.at("policy").get<std::string>());
  if (!row.at("checkpoint").is_null()) out += ", checkpoint " + checkpoint(row);
  out += fmt::format(": {} USD in {}", usd(median(row, "usd")), clock(median(row, "time_s")));
  if (!row.contains("price")) return out + fmt::format("; prices as of {}", row.at("prices_as_of").get<std::string>());
  const Json& price = row.at("price");
  const auto as_of = price.at("as_of").get<std::string>();
  out += fmt::format("; price {} USD/h a node, {}, source {}", price_cell(price.at("usd_per_hour")),
                     as_of == "undated" ? as_of : "of " + as_of, price.at("source").get<std::string>());
  if (!price.at("doubt").is_null())
    out += fmt::format("; this price is doubtful ({}): with x {:.2f}, as it may be, {} USD",
                       price.at("doubt").get<std::string>(), price.at("factors").at(1).get<double>(),
                       usd(row.at("usd").at("at_worst_prices").get<double>()));
  if (is_guess(row)) out += "; RISK ASSUMED: when its nodes are taken back is drawn, not measured";
  if (const int never = member<int>(row, "never_finish", 0); never > 0)
    out += fmt::format("; {} of {} seeds never finish", never, row.at("seeds").dump());
  return out;
}

/// The chosen candidate and, if its risk is assumed, the best one whose risk is not.
std::string choice(const Json& plan) {
  if (plan.at("chosen").is_null()) return "";
  std::string out = "CHOSEN: " + sentence(plan.at("chosen"), plan.at("request")) + "\n";
  if (!is_guess(plan.at("chosen"))) return out + "\n";
  const bool known = plan.contains("best_of_known_risk") && !plan.at("best_of_known_risk").is_null();
  return out +
         (known ? "without that risk: " + sentence(plan.at("best_of_known_risk"), plan.at("request"))
                : "without that risk: nothing meets the goals") +
         "\n\n";
}

std::string goals(const Json& request) {
  std::string out;
  if (!request.at("deadline").is_null()) {
    out += " within " + to_string(Seconds{request.at("deadline_s").get<double>()});
    if (!request.at("start").is_null())
      out += fmt::format(" (from {} to {})", request.at("start").get<std::string>(),
                         request.at("deadline").get<std::string>());
  }
  if (!request.at("budget_usd").is_null())
    out += " for at most " + request.at("budget_usd").get<std::string>() + " USD";
  return out;
}

/// Whether this candidate trains with this step; no candidate is a null.
bool trains_with(const Json& row, const Json& step) {
  return row.is_object() && row.at("gpu") == step.at("gpu") &&
         row.value("batch_per_gpu", step.at("batch_per_gpu")) == step.at("batch_per_gpu");
}

/// What a step of one GPU takes on the GPUs of the tables, and in full how the chosen one's was found. Only steps that
/// were not measured are listed.
std::string steps_of(const Json& plan, std::size_t width) {
  Table table({"GPU", ">batch", ">step", ">from", ">to", "inputs"});
  std::string chosen;
  for (const Json& step : plan.value("steps", Json::array())) {
    const auto any_of = [&](const Json& rows) {
      return std::any_of(rows.begin(), rows.end(), [&](const Json& row) { return trains_with(row, step); });
    };
    const bool is_chosen = trains_with(plan.at("chosen"), step);
    if (step.at("inputs") == "measured" ||
        (!is_chosen && !any_of(plan.at("best_of_each")) && !any_of(plan.at("pareto"))))
      continue;
    const auto time = [](const Json& seconds) { return to_string(Seconds{seconds.get<double>()}); };
    table.add({step.at("gpu").get<std::string>(), step.at("batch_per_gpu").dump(), time(step.at("seconds")),
               time(step.at("interval_s")[0]), time(step.at("interval_s")[1]), step.at("inputs").get<std::string>()});
    if (is_chosen) chosen = step.at("how").get<std::string>();
  }
  if (table.size() == 0) return "";
  return "Steps of one GPU alone:\n\n" + table.text(width) + (chosen.empty() ? "" : "The choice's: " + chosen + "\n") +
         "\n";
}

/// ", 12 to get to the FID too rarely"; empty if there are none, or in a document that does not count them.
std::string too_rare_of(const Json& searched) {
  const auto count = searched.value("too_rare", 0);
  return count == 0 ? "" : fmt::format(", {} to get to the FID too rarely", count);
}

/// How many candidates were searched, and what became of them.
std::string search_of(const Json& plan) {
  const Json& request = plan.at("request");
  const Json& searched = plan.at("searched");
  std::string catalogs;
  for (const Json& name : request.at("catalogs")) catalogs += (catalogs.empty() ? "" : ", ") + name.get<std::string>();
  return fmt::format(
      "{} candidates in {}: {} proved too slow, {} too dear{}, {} beaten; {} simulated with {} seeds each{}, {} of "
      "them "
      "{} with a probability of at least {}{}\n",
      searched.at("candidates").dump(), catalogs, searched.at("too_slow").dump(), searched.at("too_dear").dump(),
      too_rare_of(searched), searched.at("beaten").dump(), searched.at("simulated").dump(), request.at("seeds").dump(),
      request.contains("seeds_without_risk") && request.at("seeds_without_risk") != request.at("seeds")
          ? fmt::format(" ({} where no node may be lost)", request.at("seeds_without_risk").dump())
          : "",
      searched.at("meeting").dump(), plan_outcome(request) == "finishes" ? "finish" : "meet the goals",
      percent(request.at("certainty").get<double>()),
      searched.at("impossible") == 0 ? "" : fmt::format("; {} cannot run", searched.at("impossible").dump()));
}

/// What was left out, what cannot run, and the warnings in full.
std::string remarks_of(const Json& plan) {
  std::string out;
  for (const Json& why : plan.at("left_out")) out += "left out: " + why.get<std::string>() + "\n";
  constexpr std::size_t kReasons = 5;
  for (std::size_t i = 0; i < std::min(kReasons, plan.at("cannot_run").size()); ++i)
    out += fmt::format("{} cannot run: {}\n", plan.at("cannot_run")[i].at("candidates").dump(),
                       plan.at("cannot_run")[i].at("reason").get<std::string>());
  if (!plan.at("chosen").is_null())
    for (const Json& warning : plan.at("chosen").at("warnings")) out += "warning: " + warning.get<std::string>() + "\n";
  return out;
}

/// The warnings up to their first colon, those of unconfirmed facts as a number.
std::string short_warnings(const Json& plan) {
  std::string out;
  int unconfirmed = 0;
  if (!plan.at("chosen").is_null())
    for (const Json& each : plan.at("chosen").at("warnings")) {
      const auto warning = each.get<std::string>();
      if (warning.starts_with("unconfirmed: "))
        ++unconfirmed;
      else
        out += "warning: " + warning.substr(0, warning.find(": ")) + "\n";
    }
  if (unconfirmed > 0) out += fmt::format("warning: facts of the catalog without a good source: {}\n", unconfirmed);
  return out;
}

/// What ranges and marks mean, and what is not promised.
std::string notes_of(const Json& plan) {
  const Json& request = plan.at("request");
  std::string out = plan_range_level(plan) + "\n";
  const auto any_of = [&](auto&& holds) {
    const auto in = [&](const Json& rows) { return std::any_of(rows.begin(), rows.end(), holds); };
    return in(plan.at("best_of_each")) || in(plan.at("pareto"));
  };
  if (any_of(is_guess)) out += "(!) " + std::string(kAssumedRisk) + ".\n";
  if (any_of(doubtful_price)) out += "(?) " + std::string(kDoubtfulPrice) + ".\n";
  if (const std::string cheaper = plan_cheaper_if(plan); !cheaper.empty()) out += cheaper + "\n";
  if (has_several_batches(request) && request.at("images").is_number())
    out += "What a batch size does to quality is not known here: all train the same number of images.\n";
  return out + "Quota and availability are not known here: ask the provider before you rely on a plan.\n";
}

}  // namespace

std::string plan_text(const Json& plan, std::size_t width, PlanDetail detail) {
  const Json& request = plan.at("request");
  const bool all = detail == PlanDetail::all;
  std::string out =
      fmt::format("{}: {} in batches of {} a GPU{}; minimizing {}\n", request.at("model").get<std::string>(),
                  plan_target(request), batches(request), goals(request), request.at("objective").get<std::string>());
  if (all) out += "steps from " + request.at("trace").get<std::string>() + "\n" + search_of(plan);
  if (const std::string cards = plan_cards_text(plan, width); !cards.empty()) out += "\n" + cards;
  out += "\n";
  if (all) out += choice(plan);
  if (!plan.at("best_of_each").empty())
    out += "The best of each provider and market (-> is the choice):\n\n" +
           table_of(plan.at("best_of_each"), request, width, all ? Columns::all : Columns::few) + "\n";
  if (all && plan.at("pareto").size() > 1)
    out += std::string(kPlanPareto) + ":\n\n" + table_of(plan.at("pareto"), request, width, Columns::all) + "\n";
  if ((all || plan.at("chosen").is_null()) && !plan.at("near_misses").empty())
    out += "Near misses:\n\n" + misses_of(plan.at("near_misses"), request, width) + "\n";
  if (all) out += steps_of(plan, width);
  // Where nothing is chosen, why is the answer.
  out += all || plan.at("chosen").is_null() ? remarks_of(plan) : short_warnings(plan);
  out += notes_of(plan);
  if (!all) out += std::string(kPlanMore) + "\n";
  return wrap_prose(out + "\n" + plan_answer(plan) + "\n", width);
}

std::string plan_csv(const Json& plan) {
  Table table({"provider", "region",   "market",        "instance",   "nodes",       "gpu",         "gpus",
               "scheme",   "policy",   "checkpoint",    "time_s",     "time_low_s",  "time_high_s", "usd",
               "usd_low",  "usd_high", "kg_co2e",       "gpu_busy",   "losses_mean", "met_share",   "probability",
               "verdict",  "chosen",   "batch_per_gpu", "fid_images", "fid_never"});
  for (const Json& row : plan.at("simulated"))
    table.add({row.at("provider"),
               row.at("region"),
               row.at("market"),
               row.at("instance"),
               row.at("nodes").dump(),
               row.at("gpu"),
               row.at("gpus").dump(),
               row.at("scheme"),
               row.at("policy"),
               checkpoint(row),
               row.at("time_s").at("median").dump(),
               row.at("time_s").at("interval").at(0).dump(),
               row.at("time_s").at("interval").at(1).dump(),
               row.at("usd").at("median").dump(),
               row.at("usd").at("interval").at(0).dump(),
               row.at("usd").at("interval").at(1).dump(),
               row.at("kg_co2e").is_null() ? "" : row.at("kg_co2e").at("median").dump(),
               row.at("gpu_busy").dump(),
               row.at("losses_mean").dump(),
               row.at("met_share").dump(),
               row.contains("probability") ? row.at("probability").dump() : "",
               row.at("verdict"),
               row.at("chosen").dump(),
               row.contains("batch_per_gpu") ? row.at("batch_per_gpu").dump() : "",
               row.contains("quality") ? row.at("quality").at("images").at("median").dump() : "",
               row.contains("quality") ? row.at("quality").at("never").dump() : ""});
  return table.csv();
}

}  // namespace ganymede::report

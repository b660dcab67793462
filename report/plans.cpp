#include "report/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

double median(const Json& row, const char* what) { return row[what]["median"].get<double>(); }

std::string interval(const Json& row, const char* what, auto&& shown) {
  const Json& ends = row[what]["interval"];
  return range(ends[0].get<double>(), ends[1].get<double>(), shown);
}

std::string place(const Json& row) {
  const auto market = row["market"].get<std::string>();
  return row["provider"].get<std::string>() + " " + row["region"].get<std::string>() +
         (market == "on-demand" ? "" : " " + market);
}

std::string rented(const Json& row) {
  return fmt::format("{} x {}", row["nodes"].dump(), row["instance"].get<std::string>());
}

std::string checkpoint(const Json& row) {
  return row["checkpoint"].is_null() ? "none" : row["checkpoint"].get<std::string>();
}

/// Its stated error reaches beyond a goal.
bool may_miss(const Json& row, const Json& request) {
  const auto high = [&](const char* what) { return row[what]["interval"][1].get<double>(); };
  const bool late = !request["deadline_s"].is_null() && high("time_s") > request["deadline_s"].get<double>();
  const bool dear = !request["budget_usd"].is_null() &&
                    high("usd") > std::strtod(request["budget_usd"].get<std::string>().c_str(), nullptr);
  return late || dear;
}

std::string table_of(const Json& rows, const Json& request, std::size_t width) {
  Table table({"infrastructure", "rented", "GPUs", "scheme", "policy", "checkpoint", ">time", "interval", ">USD",
               "interval", ">kg CO2e", ">goals met", ""});
  for (const Json& row : rows)
    table.add({place(row), rented(row), fmt::format("{} x {}", row["gpus"].dump(), row["gpu"].get<std::string>()),
               row["scheme"], row["policy"], checkpoint(row), clock(median(row, "time_s")),
               interval(row, "time_s", clock), usd(median(row, "usd")), interval(row, "usd", usd),
               row["kg_co2e"].is_null() ? "-" : fmt::format("{:.3g}", median(row, "kg_co2e")),
               percent(row["met_share"].get<double>()) + (may_miss(row, request) ? " (*)" : ""),
               row["chosen"].get<bool>() ? "<- CHOSEN" : ""});
  return table.text(width);
}

std::string misses_of(const Json& rows, std::size_t width) {
  Table table({"infrastructure", "rented", "GPUs", "scheme", "policy", "why it fails"});
  for (const Json& row : rows)
    table.add({place(row), rented(row), fmt::format("{} x {}", row["gpus"].dump(), row["gpu"].get<std::string>()),
               row["scheme"], row["policy"], row.contains("reason") ? row["reason"].get<std::string>() : ""});
  return table.text(width);
}

std::string goals(const Json& request) {
  std::string out;
  if (!request["deadline"].is_null()) {
    out += " within " + clock(request["deadline_s"].get<double>());
    if (!request["start"].is_null())
      out +=
          fmt::format(" (from {} to {})", request["start"].get<std::string>(), request["deadline"].get<std::string>());
  }
  if (!request["budget_usd"].is_null()) out += " for at most " + request["budget_usd"].get<std::string>() + " USD";
  return out;
}

}  // namespace

std::string plan_text(const Json& plan, std::size_t width) {
  const Json& request = plan["request"];
  const Json& searched = plan["searched"];
  std::string out =
      fmt::format("{}: {} images in batches of {} a GPU{}; minimizing {}\n", request["model"].get<std::string>(),
                  request["images"].dump(), request["batch_per_gpu"].dump(), goals(request),
                  request["objective"].get<std::string>());
  out += fmt::format("steps from {}\n", request["trace"].get<std::string>());
  out += fmt::format(
      "{} candidates in {}: {} proved too slow, {} too dear, {} beaten; {} simulated with {} seeds each, {} of them "
      "meet the goals in at least {} of their runs{}\n\n",
      searched["candidates"].dump(),
      [&] {
        std::string names;
        for (const Json& name : request["catalogs"]) names += (names.empty() ? "" : ", ") + name.get<std::string>();
        return names;
      }(),
      searched["too_slow"].dump(), searched["too_dear"].dump(), searched["beaten"].dump(), searched["simulated"].dump(),
      request["seeds"].dump(), searched["meeting"].dump(), percent(request["certainty"].get<double>()),
      searched["impossible"] == 0 ? "" : fmt::format("; {} cannot run", searched["impossible"].dump()));
  if (!plan["best_of_each"].empty())
    out += "The best of each provider and market:\n\n" + table_of(plan["best_of_each"], request, width) + "\n";
  if (plan["pareto"].size() > 1)
    out += "Nothing that meets the goals is both faster and cheaper than one of these:\n\n" +
           table_of(plan["pareto"], request, width) + "\n";
  if (!plan["near_misses"].empty()) out += "Near misses:\n\n" + misses_of(plan["near_misses"], width) + "\n";
  for (const Json& why : plan["left_out"]) out += "left out: " + why.get<std::string>() + "\n";
  constexpr std::size_t kReasons = 5;
  for (std::size_t i = 0; i < std::min(kReasons, plan["cannot_run"].size()); ++i)
    out += fmt::format("{} cannot run: {}\n", plan["cannot_run"][i]["candidates"].dump(),
                       plan["cannot_run"][i]["reason"].get<std::string>());
  if (!plan["chosen"].is_null()) {
    out += fmt::format("prices of the chosen one as of: {}\n", plan["chosen"]["prices_as_of"].get<std::string>());
    for (const Json& warning : plan["chosen"]["warnings"]) out += "warning: " + warning.get<std::string>() + "\n";
  }
  const auto reaches = [&](const Json& row) { return may_miss(row, request); };
  if (std::any_of(plan["best_of_each"].begin(), plan["best_of_each"].end(), reaches) ||
      std::any_of(plan["pareto"].begin(), plan["pareto"].end(), reaches))
    out +=
        "(*) the interval, with the error of what the steps were carried over from, reaches beyond a goal; --sure "
        "rules\n"
        "these out.\n";
  out += "time and USD: median over the seeds; intervals hold the seeds' spread and all stated error.\n";
  out += "Quota and availability are not known here and not promised: ask the provider before you rely on a plan.\n";
  return wrap_prose(out, width);
}

std::string plan_csv(const Json& plan) {
  Table table({"provider", "region",     "market",      "instance",   "nodes",       "gpu",   "gpus",    "scheme",
               "policy",   "checkpoint", "time_s",      "time_low_s", "time_high_s", "usd",   "usd_low", "usd_high",
               "kg_co2e",  "gpu_busy",   "losses_mean", "met_share",  "verdict",     "chosen"});
  for (const Json& row : plan["simulated"])
    table.add({row["provider"],
               row["region"],
               row["market"],
               row["instance"],
               row["nodes"].dump(),
               row["gpu"],
               row["gpus"].dump(),
               row["scheme"],
               row["policy"],
               checkpoint(row),
               row["time_s"]["median"].dump(),
               row["time_s"]["interval"][0].dump(),
               row["time_s"]["interval"][1].dump(),
               row["usd"]["median"].dump(),
               row["usd"]["interval"][0].dump(),
               row["usd"]["interval"][1].dump(),
               row["kg_co2e"].is_null() ? "" : row["kg_co2e"]["median"].dump(),
               row["gpu_busy"].dump(),
               row["losses_mean"].dump(),
               row["met_share"].dump(),
               row["verdict"],
               row["chosen"].dump()});
  return table.csv();
}

}  // namespace ganymede

#include "report/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "common/units.hpp"
#include "report/table.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

/// How the simulator's warnings about single facts begin.
constexpr std::string_view kUnconfirmed = "unconfirmed: ";

double number(const Json& run, const char* pointer) { return run[Json::json_pointer(pointer)].get<double>(); }
std::string text(const Json& run, const char* pointer) { return run[Json::json_pointer(pointer)].get<std::string>(); }
double dollars(const Json& run) { return std::strtod(text(run, "/cost/total_usd").c_str(), nullptr); }

/// "1:02:03", or seconds below ten minutes.
std::string clock(double seconds) {
  if (seconds < 600) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string range(double low, double high, auto&& shown) { return shown(low) + " .. " + shown(high); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string usd(double amount) { return amount < 1 ? fmt::format("{:.4f}", amount) : fmt::format("{:.2f}", amount); }

/// GPU-seconds from the first step to the last, those of rented GPUs that train nothing included.
double training(const Json& run) {
  return number(run, "/gpu_seconds/total") - number(run, "/gpu_seconds/provisioning");
}
double training_s(const Json& run) { return number(run, "/time/step_mean_s") * number(run, "/time/steps"); }
double busy(const Json& run) {
  return number(run, "/utilization/gpu_busy") * number(run, "/gpu_seconds/total") / training(run);
}
double exposed(const Json& run) { return number(run, "/gpu_seconds/exposed_communication") / training(run); }

std::string joined(const std::set<std::string>& items, const char* separator) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : separator) + item;
  return all;
}

/// Where the numbers of all these runs come from, once; then what to beware of, facts that nobody confirmed grouped by
/// platform.
std::string provenance_lines(const std::vector<const Json*>& runs) {
  std::set<std::string> steps;
  std::set<std::string> fabrics;
  std::set<std::string> dates;
  std::set<std::string> warnings;
  std::map<std::string, std::set<std::string>> unconfirmed;
  for (const Json* run : runs) {
    const std::string platform = text(*run, "/run/platform");
    steps.insert(text(*run, "/provenance/steps"));
    if (const std::string fabric = text(*run, "/provenance/fabric"); fabric != "not used") fabrics.insert(fabric);
    dates.insert(platform + " " + text(*run, "/provenance/prices_as_of"));
    for (const auto& warning : run->at("provenance").at("warnings")) {
      const auto words = warning.get<std::string>();
      if (words.starts_with(kUnconfirmed))
        unconfirmed[platform].insert(words.substr(kUnconfirmed.size()));
      else
        warnings.insert(words);
    }
  }
  std::string out = fmt::format("Where the numbers come from: steps {}{}; prices as of: {}.\n", joined(steps, " and "),
                                fabrics.empty() ? "" : "; links: " + joined(fabrics, ", "), joined(dates, ", "));
  for (const auto& warning : warnings) out += "warning: " + warning + "\n";
  for (const auto& [platform, facts] : unconfirmed)
    out += fmt::format("unconfirmed for {}: {}\n", platform, joined(facts, "; "));
  return out;
}

}  // namespace

std::string run_text(const Json& run) {
  std::string out =
      fmt::format("{}, {}: {} x {}, scheme {}\n\n", text(run, "/run/platform"), text(run, "/run/allocation"),
                  run["run"]["gpus"].get<int>(), text(run, "/run/gpu"), text(run, "/run/scheme"));
  const auto& interval = run["time"]["interval_s"];
  const auto& cost_interval = run["cost"]["interval_usd"];
  Table summary({"what", ">value", "interval"});
  summary.add({"time", clock(number(run, "/time/total_s")),
               range(interval[0].get<double>(), interval[1].get<double>(), clock)});
  summary.add({"cost", text(run, "/cost/total_usd") + " USD",
               range(std::strtod(cost_interval[0].get<std::string>().c_str(), nullptr),
                     std::strtod(cost_interval[1].get<std::string>().c_str(), nullptr), usd)});
  summary.add({"step", to_string(Seconds{number(run, "/time/step_mean_s")}),
               fmt::format("{} steps, {} images", run["time"]["steps"].get<std::int64_t>(),
                           run["time"]["images"].get<std::int64_t>())});
  summary.add({"GPU busy", percent(number(run, "/utilization/gpu_busy")),
               fmt::format("{} while training", percent(busy(run)))});
  summary.add({"GPU FLOP rate used", percent(number(run, "/utilization/gpu_flops")), ""});
  summary.add({"busiest link", percent(number(run, "/utilization/network")), ""});
  summary.add({"GPU memory", to_string(Bytes{number(run, "/utilization/memory_bytes")}), ""});
  summary.add({"GPU-hours", fmt::format("{:.4f}", number(run, "/gpu_hours")), ""});
  if (!run["energy"].is_null())
    summary.add({"energy of the GPUs", fmt::format("{:.4f} kWh", number(run, "/energy/kwh")),
                 fmt::format("{:.4f} kg CO2e", number(run, "/energy/kg_co2e"))});
  out += summary.text() + "\n";

  Table gpu_seconds({"GPU-seconds", ">s", ">share"});
  const double total = number(run, "/gpu_seconds/total");
  // In the order of the result's text, which a parsed object loses: largest first is what people look for.
  std::vector<std::pair<double, std::string>> uses;
  for (const auto& [use, seconds] : run["gpu_seconds"].items())
    if (use != "total" && seconds.get<double>() >= 0.05) uses.emplace_back(seconds.get<double>(), use);
  std::sort(uses.rbegin(), uses.rend());
  for (const auto& [seconds, use] : uses)
    gpu_seconds.add({use, fmt::format("{:.1f}", seconds), percent(seconds / total)});
  gpu_seconds.rule();
  gpu_seconds.add({"total", fmt::format("{:.1f}", total), percent(1)});
  out += gpu_seconds.text() + "\n";

  Table bill({"bill", "pool", ">quantity", "unit", ">USD a unit", ">USD"});
  for (const auto& item : run["cost"]["items"])
    bill.add({item["item"], item["pool"], fmt::format("{:.4f}", item["quantity"].get<double>()), item["unit"],
              item["unit_price_usd"], item["usd"]});
  bill.rule();
  bill.add({"total", "", "", "", "", text(run, "/cost/total_usd")});
  return out + bill.text() + "\n" + provenance_lines({&run});
}

namespace {

Table flat_table(const std::vector<const Json*>& runs) {
  Table table({"platform", "market", "allocation", "gpu", "gpus", "scheme", "seed", "total_s", "low_s", "high_s",
               "step_mean_s", "gpu_busy", "gpu_flops", "exposed_communication_s", "gpu_hours", "total_usd", "inputs",
               "scenario_hash"});
  for (const Json* pointer : runs) {
    const Json& run = *pointer;
    const auto& interval = run["time"]["interval_s"];
    table.add({text(run, "/run/platform"), text(run, "/run/market"), text(run, "/run/allocation"),
               text(run, "/run/gpu"), run["run"]["gpus"].dump(), text(run, "/run/scheme"),
               run["provenance"]["seed"].dump(), run["time"]["total_s"].dump(), interval[0].dump(), interval[1].dump(),
               run["time"]["step_mean_s"].dump(), run["utilization"]["gpu_busy"].dump(),
               run["utilization"]["gpu_flops"].dump(), run["gpu_seconds"]["exposed_communication"].dump(),
               run["gpu_hours"].dump(), text(run, "/cost/total_usd"), text(run, "/provenance/inputs"),
               text(run, "/provenance/scenario_hash")});
  }
  return table;
}

std::vector<const Json*> runs_of(const Json& sweep) {
  std::vector<const Json*> runs;
  for (const auto& run : sweep["runs"]) runs.push_back(&run);
  return runs;
}

}  // namespace

std::string run_csv(const Json& run) { return flat_table({&run}).csv(); }
std::string sweep_csv(const Json& sweep) { return flat_table(runs_of(sweep)).csv(); }

namespace {

/// What a speed-up compares: the same GPU, in the same place and on the same market.
std::string kind_of(const Json& run) {
  return text(run, "/run/platform") + " " + text(run, "/run/market") + " " + text(run, "/run/gpu");
}

/// The first of `runs` with the fewest GPUs of the kind of `run`, which is one of them.
const Json& base_of(std::vector<const Json*> runs, const Json& run) {
  std::erase_if(runs, [&](const Json* other) { return kind_of(*other) != kind_of(run); });
  return **std::min_element(runs.begin(), runs.end(), [](const Json* a, const Json* b) {
    return number(*a, "/run/gpus") < number(*b, "/run/gpus");
  });
}

/// Runs may train unlike numbers of images: steps are a target too.
double images_per_s(const Json& run) { return number(run, "/time/images") / training_s(run); }

}  // namespace

std::string sweep_text(const Json& sweep) {
  const auto runs = runs_of(sweep);
  const auto faster = [](const Json* a, const Json* b) {
    return number(*a, "/time/total_s") < number(*b, "/time/total_s");
  };
  const auto cheaper = [](const Json* a, const Json* b) { return dollars(*a) < dollars(*b); };
  const Json* fastest = *std::min_element(runs.begin(), runs.end(), faster);
  const Json* cheapest = *std::min_element(runs.begin(), runs.end(), cheaper);

  Table table({"platform", "instances", ">GPUs", "scheme", ">time", "interval", ">training", ">speed-up", ">GPU busy",
               ">exposed comm.", ">GPU-hours", ">USD", ""});
  std::string above;
  const bool several_seeds = std::any_of(runs.begin(), runs.end(), [&](const Json* run) {
    return (*run)["provenance"]["seed"] != (*runs.front())["provenance"]["seed"];
  });
  for (const Json* run : runs) {
    if (!above.empty() && above != kind_of(*run)) table.rule();
    above = kind_of(*run);
    const std::string market = text(*run, "/run/market");
    const std::string platform = text(*run, "/run/platform") + (market == "on-demand" ? "" : " " + market);
    const double speed_up = images_per_s(*run) / images_per_s(base_of(runs, *run));
    const auto& interval = (*run)["time"]["interval_s"];
    std::string mark = run == cheapest ? "<- cheapest" : "";
    if (run == fastest) mark += mark.empty() ? "<- fastest" : " and fastest";
    table.add({platform, text(*run, "/run/allocation"), (*run)["run"]["gpus"].dump(),
               text(*run, "/run/scheme") + (several_seeds ? ", seed " + (*run)["provenance"]["seed"].dump() : ""),
               clock(number(*run, "/time/total_s")), range(interval[0].get<double>(), interval[1].get<double>(), clock),
               clock(training_s(*run)), fmt::format("{:.2f}", speed_up), percent(busy(*run)), percent(exposed(*run)),
               fmt::format("{:.4f}", number(*run, "/gpu_hours")), usd(dollars(*run)), mark});
  }
  return table.text() +
         "\ntime: from request to last step, with boot; training, speed-up, GPU busy and exposed communication: "
         "without it.\n" +
         provenance_lines(runs);
}

}  // namespace ganymede

#include "report/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
/// The beginning of the simulator's warnings about single facts.
constexpr std::string_view kUnconfirmed = "unconfirmed: ";

double number(const Json& run, const char* pointer) { return run.at(JsonPointer(pointer)).get<double>(); }
std::string text(const Json& run, const char* pointer) { return run.at(JsonPointer(pointer)).get<std::string>(); }
double dollars(const Json& run) { return std::strtod(text(run, "/cost/total_usd").c_str(), nullptr); }

double training_s(const Json& run) { return number(run, "/time/step_mean_s") * number(run, "/time/steps"); }
/// The share of all held GPU time, boot and unused GPUs included, during which GPUs are busy (the result's gpu_busy).
double busy(const Json& run) { return number(run, "/utilization/gpu_busy"); }
double exposed(const Json& run) {
  return number(run, "/gpu_seconds/exposed_communication") / number(run, "/gpu_seconds/total");
}
double busy_while_training(const Json& run) {
  const double held = number(run, "/gpu_seconds/total");
  return busy(run) * held / (held - number(run, "/gpu_seconds/provisioning"));
}

std::string joined(const std::set<std::string>& items, const char* separator) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : separator) + item;
  return all;
}

/// Says once where the numbers of all these runs come from; then the warnings, with unconfirmed facts grouped by
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

bool by_chance(const Json& run) {
  const auto risk = run.at("provenance").value("risk", "none");
  return risk == "assumed" || risk == "preset" || run.at("life").at("losses") != 0 || run.contains("seeds");
}

namespace {

/// The events of a run, without those that every run has. Long lists are cut in the middle.
std::string events_text(const Json& run, std::size_t width) {
  constexpr std::size_t kMaxRows = 24;
  const Json& events = run.at("events");
  if (events.size() <= 3) return "";
  Table table({">at", "event", "nodes", "of"});
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events.size() > kMaxRows && i == kMaxRows / 2) {
      table.add({"...", fmt::format("{} more", events.size() - kMaxRows), "", ""});
      i = events.size() - kMaxRows / 2;
    }
    const Json& event = events[i];
    std::string what = event.at("event").get<std::string>();
    if (event.contains("times")) what += fmt::format(" x{}", event.at("times").dump());
    if (event.contains("detail")) what += ", " + event.at("detail").get<std::string>();
    table.add({clock(event.at("at_s").get<double>()), what, event.contains("nodes") ? event.at("nodes").dump() : "",
               event.contains("pool") ? event.at("pool").get<std::string>() : ""});
  }
  return table.text(width) + "\n";
}

/// What follows the verdict on the goals, for example ", seed 1 alone; 17 of 20 seeds meet the goals".
std::string verdict_of_seeds(const Json& run) {
  const std::string own = fmt::format(", seed {} alone", run.at("provenance").at("seed").dump());
  if (!run.contains("seeds")) return by_chance(run) ? own : "";
  return fmt::format("{}; {} of {} seeds meet the goals", own, run.at("seeds").at("met").dump(),
                     run.at("seeds").at("count").dump());
}

/// The distribution over the run's seed and the next ones. It is shown before the result of the run's own seed.
void add_seeds(Table& summary, const Json& run) {
  if (!run.contains("seeds")) return;
  const Json& seeds = run.at("seeds");
  const auto add = [&](const char* what, const Json& of, auto&& shown) {
    summary.add({fmt::format("{}, {} seeds", what, seeds.at("finished").dump()),
                 of.at("median").is_number() ? shown(of.at("median").get<double>()) : "no price",
                 of.at("interval").at(0).is_number()
                     ? range(of.at("interval").at(0).get<double>(), of.at("interval").at(1).get<double>(), shown)
                     : ""});
  };
  add("time", seeds.at("time_s"), clock);
  add("cost", seeds.at("usd"), [](double value) { return usd(value) + " USD"; });
  if (seeds.at("finished") != seeds.at("count"))
    summary.add(
        {"never finish", fmt::format("{} seeds", index_of(seeds.at("count")) - index_of(seeds.at("finished"))), ""});
  summary.rule();
}

/// The goals, the pools if there are several, and the events.
std::string life_text(const Json& run, std::size_t width) {
  std::string out;
  const Json& goals = run.at("goals");
  const char* verdict = goals.at("met").get<bool>() ? "met" : "MISSED";
  if (!goals.at("deadline_s").is_null())
    out += fmt::format("deadline {}: the run takes {}\n", clock(goals.at("deadline_s").get<double>()),
                       clock(number(run, "/time/total_s")));
  if (!goals.at("budget_usd").is_null())
    out += fmt::format("budget {} USD: the run costs {} USD\n", usd_cell(goals.at("budget_usd")),
                       usd_cell(run.at("cost").at("total_usd")));
  if (!out.empty()) out += fmt::format("-> {}{}\n\n", verdict, verdict_of_seeds(run));
  if (run.at("pools").size() > 1) {
    Table pools({"pool", "GPU", ">node-hours", ">GPU-hours", ">lost", ">USD"});
    for (const auto& pool : run.at("pools"))
      pools.add(
          {pool.at("pool"), pool.at("gpu"), fmt::format("{:.3f}", pool.at("node_hours").get<double>()),
           fmt::format("{:.3f}", pool.at("gpu_seconds").at("total").get<double>() / 3600),
           percent(pool.at("gpu_seconds").at("lost").get<double>() / pool.at("gpu_seconds").at("total").get<double>()),
           usd_cell(pool.at("usd"))});
    out += pools.text(width) + "\n";
  }
  return out + events_text(run, width);
}

/// What the instance-hours of a bill were spent on: heading and name in the JSON, in the order of the table.
constexpr std::pair<const char*, const char*> kUses[] = {{"compute", "compute"},
                                                         {"exposed communication", "exposed_communication"},
                                                         {"stragglers", "straggler"},
                                                         {"input stalls", "input_stall"},
                                                         {"checkpoints", "checkpoint"},
                                                         {"evaluations", "evaluation"},
                                                         {"provisioning", "provisioning"},
                                                         {"lost work", "lost"},
                                                         {"idle GPUs", "idle"},
                                                         {"idle tail", "idle_tail"},
                                                         {"minimum charge and rounding", "minimum_and_rounding"}};

std::string heading_of(const Json& run) {
  std::string out = fmt::format("{}, {}: {} x {}, scheme {}", text(run, "/run/platform"), text(run, "/run/allocation"),
                                int_of(run.at("run").at("gpus")), text(run, "/run/gpu"), text(run, "/run/scheme"));
  for (const auto& [key, usual] : {std::pair{"mode", "all-reduce"}, std::pair{"placement", "data-parallel"}})
    if (const auto value = run.at("run").at(key).get<std::string>(); !value.empty() && value != usual)
      out += ", " + value;
  if (const auto policy = text(run, "/run/policy"); !policy.empty() && policy != "fixed") out += ", policy " + policy;
  return out;
}

Table summary_of(const Json& run) {
  const auto& interval = run.at("time").at("interval_s");
  const auto& cost_interval = run.at("cost").at("interval_usd");
  Table summary({"what", ">value", "interval"});
  add_seeds(summary, run);
  const std::string own = run.contains("seeds") ? ", seed " + run.at("provenance").at("seed").dump() : "";
  summary.add({"time" + own, clock(number(run, "/time/total_s")),
               range(interval.at(0).get<double>(), interval.at(1).get<double>(), clock)});
  summary.add({"cost" + own, usd_cell(run.at("cost").at("total_usd")) + " USD",
               range(std::strtod(cost_interval.at(0).get<std::string>().c_str(), nullptr),
                     std::strtod(cost_interval.at(1).get<std::string>().c_str(), nullptr), usd)});
  summary.add({"step", to_string(Seconds{number(run, "/time/step_mean_s")}),
               fmt::format("{} steps, {} images", int64_of(run.at("time").at("steps")),
                           int64_of(run.at("time").at("images")))});
  summary.add({"GPU busy", percent(busy(run)), fmt::format("{} while training", percent(busy_while_training(run)))});
  if (run.at("life").at("losses") != 0)
    summary.add({"nodes lost", run.at("life").at("losses").dump(),
                 fmt::format("{} of training lost with them", clock(number(run, "/life/lost_training_s")))});
  if (!run.at("life").at("staleness").is_null())
    summary.add({"staleness", fmt::format("{:.1f}", number(run, "/life/staleness")), "updates by others in between"});
  summary.add({"GPU FLOP rate used", percent(number(run, "/utilization/gpu_flops")), ""});
  summary.add({"busiest link", percent(number(run, "/utilization/network")), ""});
  summary.add({"GPU memory", to_string(Bytes{number(run, "/utilization/memory_bytes")}), ""});
  summary.add({"GPU-hours", fmt::format("{:.4f}", number(run, "/gpu_hours")), ""});
  if (!run.at("energy").is_null())
    summary.add({number(run, "/energy/host_kwh") > 0 ? "energy" : "energy of the GPUs",
                 fmt::format("{:.4f} kWh", number(run, "/energy/kwh")),
                 fmt::format("{:.4f} kg CO2e{}", number(run, "/energy/kg_co2e"),
                             number(run, "/energy/host_kwh") > 0
                                 ? fmt::format("; GPUs {:.4f}, hosts {:.4f} kWh", number(run, "/energy/gpu_kwh"),
                                               number(run, "/energy/host_kwh"))
                                 : "")});
  return summary;
}

std::string gpu_seconds_text(const Json& run, std::size_t width) {
  Table gpu_seconds({"GPU-seconds", ">s", ">share"});
  const double total = number(run, "/gpu_seconds/total");
  // Sorted, the largest first, because parsing loses the order of the result's text.
  std::vector<std::pair<double, std::string>> uses;
  for (const auto& [use, seconds] : run.at("gpu_seconds").items())
    if (use != "total" && seconds.get<double>() >= 0.05) uses.emplace_back(seconds.get<double>(), use);
  std::sort(uses.rbegin(), uses.rend());
  for (const auto& [seconds, use] : uses)
    gpu_seconds.add({use, fmt::format("{:.1f}", seconds), percent(seconds / total)});
  gpu_seconds.rule();
  gpu_seconds.add({"total", fmt::format("{:.1f}", total), percent(1)});
  return gpu_seconds.text(width) + "\n";
}

std::string bill_text(const Json& run, std::size_t width) {
  Table bill({"bill", "pool", ">quantity", "unit", ">USD a unit", ">USD"});
  for (const auto& item : run.at("cost").at("items"))
    bill.add({item.at("item"), item.at("pool"), fmt::format("{:.4f}", item.at("quantity").get<double>()),
              item.at("unit"), price_cell(item.at("unit_price_usd")), usd_cell(item.at("usd"))});
  bill.rule();
  bill.add({"total", "", "", "", "", usd_cell(run.at("cost").at("total_usd"))});
  std::string out = bill.text(width) + "\n";
  std::string spent;
  for (const auto& [name, key] : kUses) {
    const Json& amount = run.at("cost").at("instance_hours_by_use").at(key);
    if (amount != "0.00") spent += fmt::format("{}{} {}", spent.empty() ? "" : ", ", name, usd_cell(amount));
  }
  if (!spent.empty()) out += fmt::format("of the instance-hours, USD: {}\n\n", spent);
  return out;
}

}  // namespace

std::string run_text(const Json& run, std::size_t width) {
  return wrap_prose(heading_of(run) + "\n\n" + summary_of(run).text(width) + "\n" + life_text(run, width) +
                        gpu_seconds_text(run, width) + bill_text(run, width) + provenance_lines({&run}),
                    width);
}

namespace {

/// Columns of a CSV of runs: their name, and where the result has the value.
constexpr std::pair<const char*, const char*> kRunColumns[] = {
    {"platform", "/run/platform"},
    {"market", "/run/market"},
    {"allocation", "/run/allocation"},
    {"gpu", "/run/gpu"},
    {"gpus", "/run/gpus"},
    {"scheme", "/run/scheme"},
    {"seed", "/provenance/seed"},
    {"total_s", "/time/total_s"},
    {"low_s", "/time/interval_s/0"},
    {"high_s", "/time/interval_s/1"},
    {"step_mean_s", "/time/step_mean_s"},
    {"gpu_busy", "/utilization/gpu_busy"},
    {"gpu_flops", "/utilization/gpu_flops"},
    {"exposed_communication_s", "/gpu_seconds/exposed_communication"},
    {"gpu_hours", "/gpu_hours"},
    {"total_usd", "/cost/total_usd"},
    {"inputs", "/provenance/inputs"},
    {"scenario_hash", "/provenance/scenario_hash"},
    {"policy", "/run/policy"},
    {"mode", "/run/mode"},
    {"losses", "/life/losses"},
    {"lost_training_s", "/life/lost_training_s"},
    {"goals_met", "/goals/met"},
    {"fid", "/quality/fid"},
    {"fid_images", "/quality/images/median"},
    {"fid_never", "/quality/never"}};

Table flat_table(const std::vector<const Json*>& runs) {
  std::vector<std::string> names;
  for (const auto& [name, pointer] : kRunColumns) names.emplace_back(name);
  Table table(names);
  for (const Json* run : runs) {
    std::vector<std::string> row;
    for (const auto& [name, pointer] : kRunColumns) {
      const bool has = !std::string_view(pointer).starts_with("/quality") || run->contains("quality");
      const Json value = has ? run->at(JsonPointer(pointer)) : Json("");
      row.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.add(std::move(row));
  }
  return table;
}

std::vector<const Json*> runs_of(const Json& sweep) {
  std::vector<const Json*> runs;
  for (const auto& run : sweep.at("runs")) runs.push_back(&run);
  return runs;
}

}  // namespace

std::string run_csv(const Json& run) { return flat_table({&run}).csv(); }
std::string sweep_csv(const Json& sweep) { return flat_table(runs_of(sweep)).csv(); }

namespace {

/// A speed-up compares runs with the same GPU, in the same place and on the same market.
std::string comparison_key(const Json& run) {
  return text(run, "/run/platform") + " " + text(run, "/run/market") + " " + text(run, "/run/gpu");
}

/// The first of `runs` that has the fewest GPUs among those comparable with `run`, which is one of `runs`.
const Json& base_of(std::vector<const Json*> runs, const Json& run) {
  std::erase_if(runs, [&](const Json* other) { return comparison_key(*other) != comparison_key(run); });
  return **std::min_element(runs.begin(), runs.end(), [](const Json* a, const Json* b) {
    return number(*a, "/run/gpus") < number(*b, "/run/gpus");
  });
}

/// Images a second while training. Speed-ups compare this rate, because runs may train different numbers of images.
double images_per_s(const Json& run) { return number(run, "/time/images") / training_s(run); }

std::string runs_table(const std::vector<const Json*>& runs, std::size_t width) {
  const auto faster = [](const Json* a, const Json* b) {
    return number(*a, "/time/total_s") < number(*b, "/time/total_s");
  };
  const auto cheaper = [](const Json* a, const Json* b) { return dollars(*a) < dollars(*b); };
  const Json* fastest = *std::min_element(runs.begin(), runs.end(), faster);
  const Json* cheapest = *std::min_element(runs.begin(), runs.end(), cheaper);

  double longest = 0;
  for (const Json* run : runs) longest = std::max(longest, (*run).at("time").at("interval_s").at(1).get<double>());
  const auto time = [&](double seconds) { return clock_like(seconds, longest); };
  Table table({"platform", "instances", ">USD", ">time", "interval", "", ">GPUs", "scheme", ">training", ">speed-up",
               ">GPU busy", ">exposed comm.", ">GPU-hours", "note"});
  std::string above;
  const bool several_seeds = std::any_of(runs.begin(), runs.end(), [&](const Json* run) {
    return (*run).at("provenance").at("seed") != (*runs.front()).at("provenance").at("seed");
  });
  for (const Json* run : runs) {
    if (!above.empty() && above != comparison_key(*run)) table.rule();
    above = comparison_key(*run);
    const std::string market = text(*run, "/run/market");
    const std::string platform = text(*run, "/run/platform") + (market == "on-demand" ? "" : " " + market);
    const double speed_up = images_per_s(*run) / images_per_s(base_of(runs, *run));
    const auto& interval = (*run).at("time").at("interval_s");
    std::string mark = run == cheapest ? "<- cheapest" : "";
    if (run == fastest) mark += mark.empty() ? "<- fastest" : " and fastest";
    std::string note;
    for (const Json& pool : run->at("pools"))
      if (pool.contains("owned"))
        note += (note.empty() ? "owned: " : "; owned: ") + pool.at("owned").get<std::string>();
    table.add({platform, text(*run, "/run/allocation"), usd(dollars(*run)), time(number(*run, "/time/total_s")),
               range(interval.at(0).get<double>(), interval.at(1).get<double>(), time), mark,
               (*run).at("run").at("gpus").dump(),
               text(*run, "/run/scheme") + (several_seeds ? ", seed " + (*run).at("provenance").at("seed").dump() : ""),
               time(training_s(*run)), fmt::format("{:.2f}", speed_up), percent(busy(*run)), percent(exposed(*run)),
               fmt::format("{:.4f}", number(*run, "/gpu_hours")), note});
  }
  return table.text_below_constants(width) +
         "\ntime: from request to last step, with boot; training and speed-up: without it; GPU busy and exposed "
         "communication: shares of the GPU time that is held, with boot.\n";
}

std::string failures_text(const Json& sweep) {
  if (!sweep.contains("failed") || sweep.at("failed").empty()) return "";
  std::string out = fmt::format("{} runs have no result:\n", sweep.at("failed").size());
  std::map<std::string, std::pair<int, std::string>> by_reason;
  for (const Json& run : sweep.at("failed")) {
    auto& [count, first] = by_reason[text(run, "/policy") + ": " + text(run, "/kind")];
    if (count++ == 0) first = text(run, "/run") + ": " + text(run, "/reason");
  }
  for (const auto& [why, of] : by_reason) out += fmt::format("  {} ({} runs), e.g. {}\n", why, of.first, of.second);
  return out + "\n";
}

}  // namespace

std::string sweep_text(const Json& sweep, std::size_t width) {
  const auto runs = runs_of(sweep);
  if (runs.empty()) return wrap_prose("No run.\n" + failures_text(sweep), width);
  bool grouped = sweep.contains("rankings") && !sweep.at("rankings").empty();
  if (sweep.contains("groups"))
    for (const Json& group : sweep.at("groups")) grouped = grouped || group.at("runs").get<int>() > 1;
  const std::string tables = grouped ? groups_text(sweep, width) : runs_table(runs, width);
  return wrap_prose(tables + failures_text(sweep) + provenance_lines(runs), width);
}

}  // namespace ganymede::report

#include "report/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
using documents::Result;

/// The beginning of the simulator's warnings about single facts.
constexpr std::string_view kUnconfirmed = "unconfirmed: ";

double training_s(const Result& run) { return run.step_mean.si * static_cast<double>(run.steps); }
double exposed(const Result& run) {
  return run.gpu_seconds.seconds(GpuUse::exposed_communication) / run.gpu_seconds.total;
}
double busy_while_training(const Result& run) {
  const double held = run.gpu_seconds.total;
  return run.gpu_busy * held / (held - run.gpu_seconds.seconds(GpuUse::provisioning));
}

std::string joined(const std::set<std::string>& items, const char* separator) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : separator) + item;
  return all;
}

/// Says once where the numbers of all these runs come from; then the warnings, with unconfirmed facts grouped by
/// platform.
std::string provenance_lines(const std::vector<Result>& runs) {
  std::set<std::string> steps;
  std::set<std::string> fabrics;
  std::set<std::string> dates;
  std::set<std::string> warnings;
  std::map<std::string, std::set<std::string>> unconfirmed;
  for (const Result& run : runs) {
    steps.insert(run.step_source);
    if (run.fabric_source != "not used") fabrics.insert(run.fabric_source);
    dates.insert(run.platform + " " + run.prices_as_of);
    for (const std::string& warning : run.warnings) {
      if (warning.starts_with(kUnconfirmed))
        unconfirmed[run.platform].insert(warning.substr(kUnconfirmed.size()));
      else
        warnings.insert(warning);
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

bool by_chance(const Result& run) {
  return run.risk == "assumed" || run.risk == "preset" || run.losses != 0 || run.seeds;
}

namespace {

/// The events of a run, without those that every run has. Long lists are cut in the middle.
std::string events_text(const Result& run, std::size_t width) {
  constexpr std::size_t kMaxRows = 24;
  if (run.events.size() <= 3) return "";
  Table table({">at", "event", "nodes", "of"});
  for (std::size_t i = 0; i < run.events.size(); ++i) {
    if (run.events.size() > kMaxRows && i == kMaxRows / 2) {
      table.add({"...", fmt::format("{} more", run.events.size() - kMaxRows), "", ""});
      i = run.events.size() - kMaxRows / 2;
    }
    const documents::RunEvent& event = run.events[i];
    std::string what = event.what;
    if (event.times > 1) what += fmt::format(" x{}", event.times);
    if (!event.detail.empty()) what += ", " + event.detail;
    table.add({clock(event.at.si), what, event.nodes > 0 ? std::to_string(event.nodes) : "", event.pool});
  }
  return table.text(width) + "\n";
}

/// The words after the verdict on the goals, for example ", seed 1 alone; 17 of 20 seeds meet the goals".
std::string verdict_of_seeds(const Result& run) {
  const std::string own = fmt::format(", seed {} alone", run.seed);
  if (!run.seeds) return by_chance(run) ? own : "";
  return fmt::format("{}; {} of {} seeds meet the goals", own, run.seeds->met, run.seeds->count);
}

/// The distribution over the run's seed and the next ones. It is shown before the result of the run's own seed.
void add_seeds(Table& summary, const Result& run) {
  if (!run.seeds) return;
  const documents::SeedRuns& seeds = *run.seeds;
  const auto add = [&](const char* what, const SeedQuantiles& spread, auto&& shown) {
    summary.add({fmt::format("{}, {} seeds", what, seeds.finished),
                 std::isfinite(spread.median) ? shown(spread.median) : "no price",
                 std::isfinite(spread.low) ? range(spread.low, spread.high, shown) : ""});
  };
  add("time", seeds.time_s, clock);
  add("cost", seeds.usd, [](double value) { return usd(value) + " USD"; });
  if (seeds.finished != seeds.count)
    summary.add({"never finish", counted(static_cast<std::size_t>(seeds.count - seeds.finished), "seed"), ""});
  summary.rule();
}

/// The goals, the pools if there are several, and the events.
std::string life_text(const Result& run, std::size_t width) {
  std::string out;
  if (run.deadline) out += fmt::format("deadline {}: the run takes {}\n", clock(run.deadline->si), clock(run.total.si));
  if (run.budget) out += fmt::format("budget {} USD: the run costs {} USD\n", usd_cell(*run.budget), usd_cell(run.usd));
  if (!out.empty()) out += fmt::format("-> {}{}\n\n", run.met ? "met" : "MISSED", verdict_of_seeds(run));
  if (run.pools.size() > 1) {
    Table pools({"pool", "GPU", ">node-hours", ">GPU-hours", ">lost", ">USD"});
    for (const documents::PoolUse& pool : run.pools)
      pools.add({pool.pool, pool.gpu, fmt::format("{:.3f}", pool.node_hours),
                 fmt::format("{:.3f}", pool.gpu_seconds.hours()),
                 percent(pool.gpu_seconds.seconds(GpuUse::lost) / pool.gpu_seconds.total), usd_cell(pool.usd)});
    out += pools.text(width) + "\n";
  }
  return out + events_text(run, width);
}

/// The uses of a bill's instance-hours, in the order of GpuUse.
constexpr const char* kUses[kGpuUseNames.size()] = {
    "compute",     "exposed communication", "stragglers", "input stalls", "checkpoints",
    "evaluations", "provisioning",          "lost work",  "idle GPUs"};

std::string heading_of(const Result& run) {
  std::string out =
      fmt::format("{}, {}: {} x {}, scheme {}", run.platform, run.allocation, run.gpus, run.gpu, run.scheme);
  if (!run.mode.empty() && run.mode != "all-reduce") out += ", " + run.mode;
  if (!run.placement.empty() && run.placement != "data-parallel") out += ", " + run.placement;
  if (!run.policy.empty() && run.policy != "fixed") out += ", policy " + run.policy;
  return out;
}

Table summary_of(const Result& run) {
  Table summary({"what", ">value", "interval"});
  add_seeds(summary, run);
  const std::string own = run.seeds ? fmt::format(", seed {}", run.seed) : "";
  const auto time = [&](double seconds) { return clock_like(seconds, run.total.si); };
  summary.add({"time" + own, time(run.total.si), range(run.interval_s.low, run.interval_s.high, time)});
  summary.add({"cost" + own, usd_cell(run.usd) + " USD", range(run.cost_usd.low, run.cost_usd.high, usd)});
  summary.add({"step", to_string(run.step_mean), fmt::format("{} steps, {} images", run.steps, run.images)});
  summary.add({"GPU busy", percent(run.gpu_busy), fmt::format("{} while training", percent(busy_while_training(run)))});
  if (run.losses != 0)
    summary.add({"nodes lost", std::to_string(run.losses),
                 fmt::format("{} of training lost with them", clock(run.lost_training.si))});
  if (run.staleness) summary.add({"staleness", fmt::format("{:.1f}", *run.staleness), "updates by others in between"});
  // Winograd's algorithm multiplies up to four times less than the direct convolutions that are counted.
  summary.add({"GPU FLOP rate used", percent(run.gpu_flops),
               run.gpu_flops > 1 ? "of direct convolutions; Winograd's need fewer FLOPs" : ""});
  summary.add({"busiest link", percent(run.network), ""});
  summary.add({"GPU memory", to_string(run.memory), ""});
  summary.add({"GPU-hours", fmt::format("{:.4f}", run.gpu_seconds.hours()), ""});
  if (const auto& energy = run.energy) {
    const bool hosts = energy->host_kwh > 0;
    summary.add({hosts ? "energy" : "energy of the GPUs", fmt::format("{:.4f} kWh", energy->kwh),
                 fmt::format("{:.4f} kg CO2e", energy->kg_co2e) +
                     (hosts ? fmt::format("; GPUs {:.4f}, hosts {:.4f} kWh", energy->gpu_kwh, energy->host_kwh) : "")});
  }
  return summary;
}

std::string gpu_seconds_text(const Result& run, std::size_t width) {
  Table gpu_seconds({"GPU-seconds", ">s", ">share"});
  const double total = run.gpu_seconds.total;
  std::vector<std::pair<double, std::string>> uses;  // the largest first
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    if (const double seconds = run.gpu_seconds.by_use[use]; seconds >= 0.05)
      uses.emplace_back(seconds, kGpuUseNames[use]);
  std::sort(uses.rbegin(), uses.rend());
  for (const auto& [seconds, use] : uses)
    gpu_seconds.add({use, fmt::format("{:.1f}", seconds), percent(seconds / total)});
  gpu_seconds.rule();
  gpu_seconds.add({"total", fmt::format("{:.1f}", total), percent(1)});
  return gpu_seconds.text(width) + "\n";
}

std::string bill_text(const Result& run, std::size_t width) {
  Table bill({"bill", "pool", ">quantity", "unit", ">USD a unit", ">USD"});
  for (const documents::BillItem& item : run.bill.items)
    bill.add({item.item, item.pool, fmt::format("{:.4f}", item.quantity), item.unit,
              price_cell(decimal(item.unit_price)), usd_cell(item.usd)});
  bill.rule();
  bill.add({"total", "", "", "", "", usd_cell(run.usd)});
  std::string out = bill.text(width) + "\n";
  std::string spent;
  const auto add = [&](const char* name, MicroUsd amount) {
    if (amount.value != 0) spent += fmt::format("{}{} {}", spent.empty() ? "" : ", ", name, usd_cell(amount));
  };
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) add(kUses[use], run.cost_by_use.by_gpu_use[use]);
  add("idle tail", run.cost_by_use.idle_tail);
  add("minimum charge and rounding", run.cost_by_use.minimum_and_rounding);
  if (!spent.empty()) out += fmt::format("of the instance-hours, USD: {}\n\n", spent);
  return out;
}

}  // namespace

std::string run_text(const Json& document, std::size_t width) {
  const Result run = documents::result_in(document);
  return wrap_prose(heading_of(run) + "\n\n" + summary_of(run).text(width) + "\n" + life_text(run, width) +
                        gpu_seconds_text(run, width) + bill_text(run, width) + provenance_lines({run}),
                    width);
}

namespace {

NamedCells run_cells(const Result& run) {
  const auto& quality = run.quality;
  return {{"platform", run.platform},
          {"market", run.market},
          {"allocation", run.allocation},
          {"gpu", run.gpu},
          {"gpus", std::to_string(run.gpus)},
          {"scheme", run.scheme},
          {"seed", std::to_string(run.seed)},
          {"total_s", as_in_json(run.total.si)},
          {"low_s", as_in_json(run.interval_s.low)},
          {"high_s", as_in_json(run.interval_s.high)},
          {"step_mean_s", as_in_json(run.step_mean.si)},
          {"gpu_busy", as_in_json(run.gpu_busy)},
          {"gpu_flops", as_in_json(run.gpu_flops)},
          {"exposed_communication_s", as_in_json(run.gpu_seconds.seconds(GpuUse::exposed_communication))},
          {"gpu_hours", as_in_json(run.gpu_seconds.hours())},
          {"total_usd", decimal(run.usd)},
          {"inputs", run.inputs},
          {"scenario_hash", run.hash},
          {"policy", run.policy},
          {"mode", run.mode},
          {"losses", std::to_string(run.losses)},
          {"lost_training_s", as_in_json(run.lost_training.si)},
          {"goals_met", run.met ? "true" : "false"},
          {"fid", quality ? as_in_json(quality->fid) : ""},
          {"fid_images", quality ? as_in_json(quality->images) : ""},
          {"fid_never", quality ? as_in_json(quality->never) : ""}};
}

}  // namespace

std::vector<Result> runs_of(const Json& sweep) {
  std::vector<Result> runs;
  for (const Json& run : sweep.at("runs")) runs.push_back(documents::result_in(run));
  return runs;
}

std::string run_csv(const Json& run) { return csv_of(std::vector{documents::result_in(run)}, run_cells); }
std::string sweep_csv(const Json& sweep) { return csv_of(runs_of(sweep), run_cells); }

namespace {

/// A speed-up compares runs with the same GPU, in the same place and on the same market.
std::string comparison_key(const Result& run) { return run.platform + " " + run.market + " " + run.gpu; }

/// The first of `runs` that has the fewest GPUs among those comparable with `run`, which is one of `runs`.
const Result& base_of(const std::vector<Result>& runs, const Result& run) {
  const Result* base = &run;
  for (const Result& other : runs)
    if (comparison_key(other) == comparison_key(run) &&
        (other.gpus < base->gpus || (other.gpus == base->gpus && &other < base)))
      base = &other;
  return *base;
}

/// Images a second while training. Speed-ups compare this rate, because runs may train different numbers of images.
double images_per_s(const Result& run) { return static_cast<double>(run.images) / training_s(run); }

std::string runs_table(const std::vector<Result>& runs, std::size_t width) {
  const auto faster = [](const Result& a, const Result& b) { return a.total < b.total; };
  const auto cheaper = [](const Result& a, const Result& b) { return a.usd < b.usd; };
  const Result* fastest = &*std::min_element(runs.begin(), runs.end(), faster);
  const Result* cheapest = &*std::min_element(runs.begin(), runs.end(), cheaper);

  double longest = 0;
  for (const Result& run : runs) longest = std::max(longest, run.interval_s.high);
  const auto time = [&](double seconds) { return clock_like(seconds, longest); };
  Table table({"platform", "instances", ">USD", ">time", "interval", "", ">GPUs", "scheme", ">training", ">speed-up",
               ">GPU busy", ">exposed comm.", ">GPU-hours", "note"});
  std::string above;
  const bool several_seeds =
      std::any_of(runs.begin(), runs.end(), [&](const Result& run) { return run.seed != runs.front().seed; });
  for (const Result& run : runs) {
    if (!above.empty() && above != comparison_key(run)) table.rule();
    above = comparison_key(run);
    const double speed_up = images_per_s(run) / images_per_s(base_of(runs, run));
    std::string mark = &run == cheapest ? "<- cheapest" : "";
    if (&run == fastest) mark += mark.empty() ? "<- fastest" : " and fastest";
    std::string note;
    for (const documents::PoolUse& pool : run.pools)
      if (!pool.owned.empty()) note += (note.empty() ? "owned: " : "; owned: ") + pool.owned;
    table.add({run.platform + (run.market == "on-demand" ? "" : " " + run.market), run.allocation, usd(usd_of(run.usd)),
               time(run.total.si), range(run.interval_s.low, run.interval_s.high, time), mark, std::to_string(run.gpus),
               run.scheme + (several_seeds ? fmt::format(", seed {}", run.seed) : ""), time(training_s(run)),
               fmt::format("{:.2f}", speed_up), percent(run.gpu_busy), percent(exposed(run)),
               fmt::format("{:.4f}", run.gpu_seconds.hours()), note});
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
    const auto text = [&](const char* member) { return run.at(member).as_string(); };
    auto& [count, first] = by_reason[text("policy") + ": " + text("kind")];
    if (count++ == 0) first = text("run") + ": " + text("reason");
  }
  for (const auto& [why, runs] : by_reason)
    out += fmt::format("  {} ({} runs), e.g. {}\n", why, runs.first, runs.second);
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

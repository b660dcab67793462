#include "sim/run/run_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "calibration/device_memory.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/run/run_bill.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/run/run_energy.hpp"
#include "sim/run/run_utilization.hpp"
#include "sim/run/run_warnings.hpp"

namespace ganymede::sim {
namespace {

/// 97.5 % of the standard normal distribution lie below this value, so 95 % lie within as many standard deviations.
constexpr double kTwoSided95 = 1.96;

documents::GpuTime time_by_use(const GpuSeconds& account) {
  documents::GpuTime time;
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    time.by_use[use] = account.seconds(static_cast<GpuUse>(use));
  time.total = account.total_seconds();
  return time;
}

documents::StepSpans rows_of(const std::vector<StepSpan>& spans) {
  documents::StepSpans out;
  for (const StepSpan& span : spans) {
    auto name = std::find(out.names.begin(), out.names.end(), span.name);
    if (name == out.names.end()) name = out.names.insert(name, span.name);
    out.rows.push_back({static_cast<int>(span.worker), static_cast<int>(span.kind),
                        static_cast<int>(name - out.names.begin()), span.start, span.end - span.start});
  }
  return out;
}

/// Progress and events.
void add_training(Result& result, const Scenario& scenario, const RunRecord& record) {
  const StepTotals& totals = record.totals;
  for (const StepDistribution* steps : record.distributions) {
    if (!result.spans && !steps->spans.empty()) result.spans = rows_of(steps->spans);
    result.steps_simulated += steps->simulated;
  }
  result.gpus = std::max(1, record.most_gpus);
  result.total = to_seconds(record.end);
  result.steps = std::llround(record.steps);
  // A target of images or epochs is met exactly, though a last batch may be padded.
  result.images = scenario.target == Target::steps ? std::llround(record.images) : scenario.images;
  result.step_mean = Seconds{totals.steps > 0 ? totals.training_s / totals.steps : 0};
  if (scenario.synchronization.mode == Mode::async_parameter_server && totals.steps > 0)
    result.staleness = totals.stale_steps / totals.steps;
  result.losses = record.losses;
  result.checkpoints = totals.checkpoints;
  result.lost_training = record.lost_training;
  result.events = record.events;
}

/// Bounds of the run's time: by sampling alone, and by all stated error.
void add_intervals(Result& result, const Scenario& scenario, const RunRecord& record) {
  const RunError& error = record.error;
  const double total = to_seconds(record.end).si;
  const double sampling = calibration::in_quadrature(error.sampling_s, kTwoSided95 * std::sqrt(error.own_s2));
  result.sampling_interval_s = {std::max(0.0, total - sampling), total + sampling};
  // An error of a rounded last digit below zero must not leave the time outside of its own interval.
  result.interval_s = {
      std::clamp(total - calibration::in_quadrature(sampling, error.shorter_s) - error.low_s, 0.0, total),
      std::max(total, total + calibration::in_quadrature(sampling, error.longer_s) + error.high_s)};
  if (!(result.interval_s.high < kMaxRun_s))
    throw ConfigError(
        fmt::format("{}: the run would take {}, and up to {} by its interval, longer than can be accounted for",
                    scenario.file, to_string(result.total), to_string(Seconds{result.interval_s.high})));
}

/// Throws if something does not hold that holds of each run: a mistake must never pass for a prediction. The ledger
/// checks itself that all time which was held is accounted for once.
void check_result(const Result& result) {
  // Sums of rounded numbers may differ in their last digits.
  const auto inside = [](double low, double value, double high) {
    const double slack = 1e-9 * value;
    return 0 <= low && low <= value + slack && value <= high + slack && std::isfinite(high);
  };
  const double total = result.total.si;
  bool holds = inside(result.interval_s.low, total, result.interval_s.high) &&
               inside(result.sampling_interval_s.low, total, result.sampling_interval_s.high) &&
               inside(result.cost_usd.low, total_usd(result.bill), result.cost_usd.high);
  if (result.energy) {
    const auto& [kwh, kg_co2e, kwh_interval, kg_interval, gpu_kwh, host_kwh, grid] = *result.energy;
    holds = holds && inside(kwh_interval.low, kwh, kwh_interval.high) &&
            inside(kg_interval.low, kg_co2e, kg_interval.high) && gpu_kwh >= 0 && host_kwh >= 0;
  }
  MicroUsd hours, uses = result.cost_by_use.idle_tail + result.cost_by_use.minimum_and_rounding;
  for (const MicroUsd use : result.cost_by_use.by_gpu_use) uses += use;
  for (const BillItem& item : result.bill.items) {
    holds = holds && item.usd.value >= 0;
    if (item.item.starts_with("instance-hours")) hours += item.usd;
  }
  if (!holds || hours != uses) throw std::logic_error("a result contradicts itself; please report the scenario");
}

void add_utilization(Result& result, const RunUtilization& use) {
  result.gpu_seconds = time_by_use(use.gpu_seconds);
  result.gpu_busy = use.gpu_busy;
  result.gpu_flops = use.gpu_flops;
  result.cpu = use.cpu;
  result.cpu_reserved = use.cpu_reserved;
  result.memory_reserved = use.memory_reserved;
  result.network = use.network;
  append_new(result.warnings, use.warnings);
}

void add_energy(Result& result, const RunEnergy& energy) {
  if (energy.total)
    result.energy = {energy.total->kwh, energy.total->kg_co2e, energy.kwh, energy.kg_co2e,
                     energy.gpu_kwh,    energy.host_kwh,       energy.grid};
  append_new(result.warnings, energy.warnings);
}

/// Adds the bill and its interval. With recorded prices a longer run may be cheaper, because it meets lower prices.
void add_bill(Result& result, const Scenario& scenario, const RunRecord& record, const RunEnergy& energy) {
  const auto bill_at = [&](double total_s) {
    const double longer_s = total_s - to_seconds(record.end).si;
    return bill_of(scenario, record, energy, static_cast<Nanoseconds>(std::llround(longer_s * 1e9)));
  };
  RunBill bill = bill_of(scenario, record, energy);
  result.bill = std::move(bill.bill);
  result.warnings.insert(result.warnings.end(), bill.warnings.begin(), bill.warnings.end());
  const auto [low, high] = std::minmax({total_usd(bill_at(result.interval_s.low).bill), total_usd(result.bill),
                                        total_usd(bill_at(result.interval_s.high).bill)});
  result.cost_usd = {low, high};
  result.usd = result.bill.total();
}

std::vector<PoolUse> pool_uses(const Scenario& scenario, const std::vector<PoolAccount>& accounts, const Bill& bill) {
  std::vector<PoolUse> uses;
  for (const PoolAccount& account : accounts) {
    const ScenarioPool& pool = scenario.pools[account.pool];
    PoolUse& use = uses.emplace_back();
    use.pool = pool.name;
    use.gpu = pool.gpu().name;
    use.gpu_seconds = time_by_use(account.gpu_seconds);
    use.node_hours = to_seconds(account.held).si / 3600;
    use.usd = instance_hours_usd(bill, pool);
    use.owned = platforms::owning_assumes(*pool.platform, pool.instance(), pool.price);
  }
  return uses;
}

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::all_reduce:
      return "all-reduce";
    case Mode::async_parameter_server:
      return "async-parameter-server";
    case Mode::local_sgd:
      return "local-sgd";
    case Mode::gossip:
      return "gossip";
  }
  return "";
}

/// The policy's name with those settings that differ from their defaults: "predictive (usd_per_hour_waited 50)".
std::string policy_text(const PolicyChoice& choice) {
  std::string settings;
  for (std::size_t i = 0; i < choice.settings.size(); ++i)
    if (const policies::PolicySetting& setting = choice.policy->settings[i];
        choice.settings[i] != setting.default_value)
      settings += fmt::format("{}{} {:g}", settings.empty() ? "" : ", ", setting.name, choice.settings[i]);
  if (choice.blind) settings += settings.empty() ? "blind" : ", blind";
  return std::string(choice.policy->name) + (settings.empty() ? "" : " (" + settings + ")");
}

/// Returns text(pool) for the pools that the scenario asks for, without repetitions, joined by " + ".
template <class Text>
std::string joined(const Scenario& scenario, Text&& text) {
  std::string all;
  std::set<std::string> seen;
  for (const auto& pool : scenario.pools) {
    if (pool.pool.nodes == 0) continue;
    const std::string one = text(pool);
    if (seen.insert(one).second) all += (all.empty() ? "" : " + ") + one;
  }
  return all;
}

LaunchRequest launch_request(const Scenario& scenario) {
  LaunchRequest launch{scenario.trace->model,
                       scenario.trace->precision,
                       scenario.dataset.name,
                       static_cast<int>(scenario.batch_per_gpu()),
                       scenario.images_a_step(scenario.workers()),
                       {}};
  for (const auto& pool : scenario.pools)
    if (pool.pool.nodes > 0)
      launch.pools.push_back({pool.platform->name, pool.pool.region, pool.zone,
                              std::string(platforms::to_string(pool.pool.market)), pool.pool.instance, pool.gpu().name,
                              pool.pool.nodes, pool.pool.gpus_per_node});
  return launch;
}

/// Sets names, sources and goals of `result`.
void describe(Result& result, const Scenario& scenario) {
  const ScenarioPool& first = scenario.pools.front();
  result.platform =
      joined(scenario, [](const ScenarioPool& pool) { return pool.platform->name + " " + pool.pool.region; });
  result.market =
      joined(scenario, [](const ScenarioPool& pool) { return std::string(platforms::to_string(pool.pool.market)); });
  result.allocation = joined(
      scenario, [](const ScenarioPool& pool) { return fmt::format("{} x {}", pool.pool.nodes, pool.pool.instance); });
  result.gpu = joined(scenario, [](const ScenarioPool& pool) { return pool.gpu().name; });
  result.gpus = scenario.workers();
  result.launch = launch_request(scenario);
  result.scheme = scenario.workers() > 1 ? scenario.synchronization.scheme.name() : "none";
  result.mode = mode_name(scenario.synchronization.mode);
  result.placement =
      scenario.synchronization.placement == Placement::component_split ? "component-split" : "data-parallel";
  result.policy = policy_text(scenario.policy);
  result.fidelity = scenario.fidelity == Fidelity::message ? "message" : "sampled";
  for (const ScenarioPool& pool : scenario.pools)
    for (const std::size_t stage : scenario.stages)
      result.memory =
          std::max(result.memory, Bytes{calibration::device_memory(*scenario.trace, scenario.trace->batches[stage],
                                                                   pool.gpu(), scenario.workers() > 1)
                                            .expected});
  result.hash = scenario.hash;
  result.tool = "ganymede " GANYMEDE_VERSION;
  if (!scenario.content.empty()) {
    result.scenario.text = scenario.content;
    result.file_hashes = scenario.file_hashes;
  }
  result.seed = scenario.seed;
  result.fabric_source = first.platform->fabric_label(first.instance(), first.max_nodes, first.pool.gpus_per_node);
  result.software = fmt::format("{} {} ({})", scenario.trace->software.name, scenario.trace->software.version,
                                scenario.trace->software.backend);
  result.prices_as_of = first.price.as_of;
  result.deadline = scenario.deadline;
  result.budget = scenario.budget;
}

}  // namespace

Result result_of(const Scenario& scenario, const RunRecord& record) {
  Result result;
  describe(result, scenario);
  if (const std::optional<calibration::TargetOutlook>& goal = scenario.quality)
    result.quality = {goal->fid, goal->images.median, {goal->images.low, goal->images.high}, 1 - goal->probability};
  result.inputs = step_inputs(record);
  result.step_source = step_source(record);
  result.risk = interruption_risk(scenario, record);
  result.warnings = warnings_of(scenario, record);
  add_training(result, scenario, record);
  add_intervals(result, scenario, record);

  const std::vector<PoolAccount> accounts = close_accounts(scenario, record);
  const RunUtilization use = utilization_of(scenario, record, accounts);
  add_utilization(result, use);
  const std::vector<std::optional<double>> cpu(scenario.pools.size(), use.cpu);
  const RunEnergy energy = energy_of(scenario, record, accounts, cpu, result.interval_s);
  add_energy(result, energy);
  add_bill(result, scenario, record, energy);
  result.pools = pool_uses(scenario, accounts, result.bill);
  result.cost_by_use = cost_by_use(scenario, record, accounts, result.bill);
  result.met = (!scenario.deadline || result.total <= *scenario.deadline) &&
               (!scenario.budget || result.bill.total() <= *scenario.budget);
  check_result(result);
  return result;
}

}  // namespace ganymede::sim

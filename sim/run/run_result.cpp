#include "sim/run/run_result.hpp"

#include <algorithm>
#include <cmath>

#include "calibration/statistics.hpp"
#include "common/units.hpp"
#include "sim/run/cost_by_use.hpp"
#include "sim/run/run_bill.hpp"
#include "sim/run/run_description.hpp"
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
void add_intervals(Result& result, const RunRecord& record) {
  const RunError& error = record.error;
  const double total = to_seconds(record.end).si;
  const double sampling = calibration::in_quadrature(error.sampling_s, kTwoSided95 * std::sqrt(error.own_s2));
  result.sampling_interval_s = {std::max(0.0, total - sampling), total + sampling};
  // An error of a rounded last digit below zero must not leave the time outside of its own interval.
  result.interval_s = {
      std::clamp(total - calibration::in_quadrature(sampling, error.shorter_s) - error.low_s, 0.0, total),
      std::max(total, total + calibration::in_quadrature(sampling, error.longer_s) + error.high_s)};
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
  add_intervals(result, record);

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
  return result;
}

}  // namespace ganymede::sim

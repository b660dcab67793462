#include "plan/run_sums.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibration/statistics.hpp"
#include "common/statistics.hpp"
#include "common/usd.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {
namespace {

/// A run's bill in dollars: at the stated prices, and with each doubtful price at its lowest and at its highest value.
struct RunCost {
  double usd = 0, low = 0, high = 0;
};

RunCost cost_of(const Request& request, const sim::Scenario& scenario, const sim::Result& run) {
  RunCost cost;
  cost.usd = cost.low = cost.high = usd_of(run.bill.total());
  for (const sim::PoolUse& use : run.pools)
    for (const sim::ScenarioPool& pool : scenario.pools) {
      if (pool.name != use.pool) continue;
      const platforms::PriceRange doubt = platforms::price_range(pool.instance(), pool.price, request.price_age);
      cost.low -= usd_of(use.usd) * (1 - doubt.low);
      cost.high += usd_of(use.usd) * (doubt.high - 1);
    }
  return cost;
}

/// The part of a run's cost that does not grow with the time that it trains. GPUs of an instance that are not used are
/// idle for as long.
double fixed_usd_of(const sim::Result& run) {
  double usd = usd_of(run.bill.total());
  for (const GpuUse use : {GpuUse::compute, GpuUse::exposed_communication, GpuUse::straggler, GpuUse::input_stall,
                           GpuUse::lost, GpuUse::idle})
    usd -= usd_of(run.cost_by_use.by_gpu_use.at(static_cast<std::size_t>(use)));
  return usd;
}

/// A run with its errors, for the probability that it keeps the goals. What is stated about a step stretches the time
/// of training alone: hosts boot, and evaluations and checkpoints pause, for as long as they did.
RunChances chances_of(const sim::Result& run, const RunCost& cost) {
  const double deviations = run.inputs == "measured" ? kOf95 : kOf90;
  RunChances chances;
  chances.time_s = {run.total.si, run.interval_s.low, run.interval_s.high, deviations};
  chances.usd = {cost.usd, run.cost_usd.low, run.cost_usd.high, deviations};
  const double training_s = run.step_mean.si * static_cast<double>(run.steps) + run.lost_training.si;
  chances.time_s.least = std::clamp(run.total.si - training_s, 0.0, run.interval_s.low);
  chances.usd.least = std::clamp(fixed_usd_of(run), 0.0, run.cost_usd.low);
  if (cost.usd > 0) chances.price = {1, cost.low / cost.usd, cost.high / cost.usd, kOf95};
  return chances;
}

}  // namespace

PlanMeasure SeedValues::measure() const {
  const SeedQuantiles spread = seed_quantiles(values, lows, highs);
  return {spread.median, spread.low, spread.high};
}

void RunSums::add(const Request& request, const sim::Scenario& scenario, const sim::Result& run) {
  if (++finished == 1) {
    inputs = run.inputs;
    warnings = run.warnings;
  }
  risk = sim::less_sure(risk, run.risk);
  const RunCost cost = cost_of(request, scenario, run);
  const RunChances chances = chances_of(run, cost);
  const double low = chances.usd.low, high = chances.usd.high * chances.price.high;
  time.add(run.total.si, chances.time_s.low, chances.time_s.high);
  usd.add(cost.usd, low * chances.price.low, high);
  usd_at_worst.add(cost.high, cost.high, cost.high);
  const double deviations = chances.usd.deviations, least = chances.usd.least;
  costs.push_back({cost.high, low * chances.price.high, high, deviations, least * chances.price.high});
  if (scenario.quality) {
    times_s.push_back(chances.time_s);
    all_usd.push_back({cost.usd, low * chances.price.low, high, deviations, least * chances.price.low});
    images.push_back(static_cast<double>(scenario.images));
  }
  const auto energy = run.energy.value_or(documents::EnergyUse());
  kg.add(energy.kg_co2e, energy.kg_co2e_interval.low, energy.kg_co2e_interval.high);
  busy += run.gpu_busy;
  images_per_s += static_cast<double>(run.images) / (run.step_mean.si * static_cast<double>(run.steps));
  losses += static_cast<double>(run.losses);
  lost_s += run.lost_training.si;
  trained_s += run.step_mean.si * static_cast<double>(run.steps) + run.lost_training.si;
  checkpoints += static_cast<double>(run.checkpoints);
  carbon = carbon && run.energy.has_value();
  const std::optional<double> deadline_s = request.deadline ? std::optional(request.deadline->si) : std::nullopt;
  const std::optional<double> budget_usd = request.budget ? std::optional(usd_of(*request.budget)) : std::nullopt;
  const bool in_time = !deadline_s || (request.sure ? chances.time_s.high : run.total.si) <= *deadline_s;
  const bool in_budget = !budget_usd || (request.sure ? high : cost.usd) <= *budget_usd;
  met += in_time && in_budget ? 1 : 0;
  const double gets_there = scenario.quality ? scenario.quality->probability : 1;
  chance += gets_there * chance_of(chances, deadline_s, budget_usd);
}

PlannedRun RunSums::planned() const {
  PlannedRun out;
  out.verdict = Verdict::misses;
  out.time_s = time.measure();
  out.usd = usd.measure();
  if (!images.empty()) {
    constexpr double kBelow = 0.05;  // at each end, as for images
    out.time_s = {out.time_s.median, quantile_of(times_s, kBelow), quantile_of(times_s, 1 - kBelow)};
    out.usd = {out.usd.median, quantile_of(all_usd, kBelow), quantile_of(all_usd, 1 - kBelow)};
    out.usd_per_image = std::max(0.0, slope_of(images, usd.values));
  }
  out.usd_at_worst = usd_at_worst.measure().median;
  if (finished == runs) {  // a run that never finishes has no cost, and then there is no mean
    out.usd_expected = expected(costs);
    out.usd_worst_tenth = tail_mean(costs);
  }
  out.kg_co2e = kg.measure();
  out.carbon_known = carbon;
  out.gpu_busy = busy / finished;
  out.images_per_s = images_per_s / finished;
  out.losses = losses / finished;
  out.lost_s = lost_s / finished;
  out.saved_every_s = checkpoints > 0 ? trained_s / checkpoints : 0;
  out.met_share = met / runs;
  out.probability = std::round(chance / runs * 1e6) / 1e6;
  out.seeds = runs;
  out.never_finish = runs - finished;
  out.risk = risk;
  out.inputs = inputs;
  out.warnings = warnings;
  return out;
}

}  // namespace ganymede::plan

#include "sim/run/run_configuration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/run/capacity.hpp"
#include "sim/steps/dataset_cache.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::sim {
namespace {

/// Part of a step or of an interval that counts as rounding.
constexpr double kRounding = 1e-9;

/// Share of the storage's rate that slowdowns leave.
double storage_share(const RunState& state) {
  double share = 1;
  for (const ActiveSlowdown& slowdown : state.slowdowns)
    if (slowdown.kind == InjectedEvent::Kind::storage) share = std::min(share, slowdown.factor);
  return share;
}

int worker_count(const Scenario& scenario, const std::vector<int>& nodes) {
  int workers = 0;
  for (std::size_t p = 0; p < nodes.size(); ++p) workers += nodes[p] * scenario.pools[p].pool.gpus_per_node;
  return workers;
}

void apply_slowdowns(const RunContext& context, const RunState& state, Configuration& configuration) {
  for (const ActiveSlowdown& slowdown : state.slowdowns) {
    if (slowdown.kind == InjectedEvent::Kind::network)
      configuration.network = std::min(configuration.network, slowdown.factor);
    if (slowdown.kind == InjectedEvent::Kind::straggler) {
      configuration.slow += slowdown.nodes * context.scenario.pools[0].pool.gpus_per_node;
      configuration.slow_factor = std::max(configuration.slow_factor, slowdown.factor);
    }
  }
  configuration.storage = storage_share(state);
  configuration.slow = std::min(configuration.slow, worker_count(context.scenario, configuration.nodes));
}

/// Mean losses per second of `nodes` nodes by pool.
double loss_rate(const Scenario& scenario, const std::vector<int>& nodes) {
  double rate = 0;
  for (std::size_t p = 0; p < nodes.size(); ++p) rate += nodes[p] * hazard_rate(scenario, scenario.pools[p]);
  return rate;
}

/// Young (1974) and Daly (FGCS 22, 2006): sqrt(2 C M) - C seconds between the end of a checkpoint of cost C and the
/// start of the next, for a mean time M between losses; at least C. 0 if nothing is ever lost.
double daly_interval_s(double cost_s, double losses_per_s) {
  if (losses_per_s == 0) return 0;
  return std::max(cost_s, std::sqrt(2 * std::max(cost_s, 1e-3) / losses_per_s) - cost_s);
}

}  // namespace

double target_rounding(const RunContext& context, const RunState& state) {
  constexpr double kShareOfStep = 1e-5;
  if (context.scenario.target == Target::steps) return kShareOfStep;
  const double workers = 1 + worker_count(context.scenario, state.fleet.members());
  return kShareOfStep * static_cast<double>(context.scenario.batch_per_gpu()) * workers;
}

std::size_t stage_at(const RunContext& context, const RunState& state, double done) {
  const double rounding = target_rounding(context, state);
  std::size_t stage = 0;
  while (stage + 1 < context.stage_ends.size() && done >= context.stage_ends[stage] - rounding) ++stage;
  return stage;
}

Configuration configuration_of(const RunContext& context, const RunState& state) {
  const Scenario& scenario = context.scenario;
  Configuration configuration;
  configuration.nodes = state.fleet.members();
  configuration.cpus = state.decision.cpus;
  configuration.memory = state.decision.memory;
  const double done = state.training.done(state.now);
  configuration.stage = stage_at(context, state, done);
  apply_slowdowns(context, state, configuration);
  configuration.nic_burst = state.nic_credits_left && nics_burst(scenario, configuration.nodes);
  if (scenario.input.storage) {
    const int workers = worker_count(scenario, configuration.nodes);
    const double images_a_unit =
        scenario.target == Target::steps ? static_cast<double>(scenario.images_a_step(workers)) : 1;
    configuration.cached = fits_cache(scenario, state.decision.memory) &&
                           done * images_a_unit >= static_cast<double>(scenario.dataset.images) -
                                                       target_rounding(context, state) * images_a_unit;
    configuration.burst =
        !configuration.cached && state.burst_credits_left && scenario.input.storage->burst_iops.has_value();
  }
  return configuration;
}

Nanoseconds checkpoint_write_time(const Checkpoints& checkpoints, double share) {
  if (!checkpoints.storage) return 0;
  return to_nanoseconds(checkpoints.storage->latency + checkpoints.bytes / (share * checkpoints.storage->write));
}

Nanoseconds checkpoint_write_time(const RunContext& context, const RunState& state) {
  return checkpoint_write_time(context.scenario.checkpoints, storage_share(state));
}

Nanoseconds checkpoint_read_time(const Checkpoints& checkpoints) {
  if (!checkpoints.storage) return 0;
  return to_nanoseconds(checkpoints.storage->latency + checkpoints.bytes / checkpoints.storage->read);
}

double steps_between_checkpoints(const Scenario& scenario, const StepDistribution& steps, Seconds step, Seconds write,
                                 double losses_per_s) {
  const Checkpoints& checkpoints = scenario.checkpoints;
  if (checkpoints.every == Checkpoints::Every::never) return 0;
  if (checkpoints.every == Checkpoints::Every::images)
    return std::max(1.0, std::round(checkpoints.count / steps.images));
  if (checkpoints.every == Checkpoints::Every::epochs)
    return std::max(1.0, std::ceil(static_cast<double>(scenario.dataset.images) / steps.images) * checkpoints.count);
  const double seconds = checkpoints.every == Checkpoints::Every::interval ? checkpoints.interval.si
                                                                           : daly_interval_s(write.si, losses_per_s);
  return seconds == 0 ? 0 : std::max(1.0, std::round(seconds / step.si));
}

double steps_between_checkpoints(const RunContext& context, const RunState& state, const StepDistribution& steps) {
  return steps_between_checkpoints(context.scenario, steps, steps.mean,
                                   to_seconds(checkpoint_write_time(context, state)),
                                   loss_rate(context.scenario, state.fleet.members()));
}

double steps_between_evaluations(const Scenario& scenario, const StepDistribution& steps) {
  const Evaluation& evaluation = *scenario.evaluation;
  double every = evaluation.count;
  if (evaluation.every == Evaluation::Every::images)
    every /= steps.images;
  else if (evaluation.every == Evaluation::Every::epochs)
    every *= std::ceil(static_cast<double>(scenario.dataset.images) / steps.images - kRounding);
  else if (evaluation.every == Evaluation::Every::interval)
    every = std::round(evaluation.interval / steps.mean);
  return std::max(1.0, every);
}

double steps_to_evaluation(const RunContext& context, const RunState& state, const StepDistribution& steps) {
  const Scenario& scenario = context.scenario;
  if (!scenario.evaluation) return std::numeric_limits<double>::infinity();
  // Progress in the evaluation's unit: now, of one step, and from one evaluation to the next.
  const bool by_images = scenario.evaluation->every == Evaluation::Every::images;
  const double trained = state.training.steps();
  const double now = by_images ? state.training.images() : trained, step = by_images ? steps.images : 1;
  const double every =
      by_images ? std::max(scenario.evaluation->count, step) : steps_between_evaluations(scenario, steps);
  // Steps that have been trained are known from times in whole nanoseconds, so a step may lack some millionths.
  constexpr double kWholeStep = 1e-3;
  const double next = (std::floor((now + kWholeStep * step) / every) + 1) * every;
  return std::ceil(trained + (next - now) / step - 1e-6) - trained;
}

double bytes_to_enter(const Scenario& scenario) { return dataset_bytes(scenario) + scenario.checkpoints.bytes.si; }

double usd_to_enter(const RunContext& context, const RunState& state, std::size_t pool) {
  const Scenario& scenario = context.scenario;
  const auto link = std::find_if(scenario.links.begin(), scenario.links.end(),
                                 [&](const PoolLink& joins) { return joins.a == pool || joins.b == pool; });
  if (!state.pools[pool].lacks_data || link == scenario.links.end()) return 0;
  return bytes_to_enter(scenario) / 1e9 * link->usd_per_gb;
}

}  // namespace ganymede::sim

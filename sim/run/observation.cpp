#include "sim/run/observation.hpp"

#include <algorithm>

#include "sim/ledger/nanoseconds.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {
namespace {

/// Carbon intensity of a pool's region at a time; none where it is not known.
std::optional<double> carbon_at(const ScenarioPool& pool, Nanoseconds now) {
  if (pool.carbon) return pool.carbon->at(to_seconds(now));
  const platforms::Region* region = pool.platform->region(pool.pool.region);
  return region && region->carbon ? std::optional<double>(region->carbon->si) : std::nullopt;
}

policies::PoolView view_of(const RunContext& context, const RunState& state, std::size_t p) {
  const ScenarioPool& pool = context.scenario.pools[p];
  const PoolCount count = state.fleet.count(p);
  policies::PoolView view;
  view.market = pool.pool.market;
  view.gpus_per_node = pool.pool.gpus_per_node;
  view.requested = pool.pool.nodes;
  view.most = pool.max_nodes;
  view.ready = count.ready;
  view.starting = count.booting;
  view.waiting = count.waiting + count.queued;
  view.noticed = count.noticed;
  view.lost = count.lost;
  if (count.waiting > 0) view.refused_for = to_seconds(state.now - count.waiting_since);
  view.usd_per_hour = price_at(pool, state.now);
  view.speed = context.pool_speeds[p];
  view.g_per_kwh = carbon_at(pool, state.now);
  if (pool.gpu().peak) view.gpu_watts = pool.gpu().peak->si * pool.instance().gpus;
  view.usd_to_enter = usd_to_enter(context, state, p);
  return view;
}

/// Rates and shares of the segment under way.
void observe_training(const RunContext& context, const Segment& segment, policies::Observation& seen) {
  const Scenario& scenario = context.scenario;
  const StepDistribution& steps = *segment.steps;
  PoolStep sum;
  double vcpus = 0;
  for (std::size_t p = 0; p < steps.pools.size(); ++p) {
    sum.exposed += steps.pools[p].exposed;
    sum.straggler += steps.pools[p].straggler;
    sum.stall += steps.pools[p].stall;
    sum.device += steps.pools[p].device;
    vcpus += segment.configuration.nodes[p] * scenario.pools[p].instance().vcpus;
  }
  const double all = steps.mean.si * steps.workers;
  seen.rate = segment.per_step / steps.mean.si;
  seen.training_gpus = steps.workers;
  seen.step_s = steps.mean.si;
  seen.gpu_busy = std::min(1.0, sum.device.si / all);
  seen.exposed = sum.exposed.si / all;
  seen.straggler = sum.straggler.si / all;
  seen.input_stall = sum.stall.si / all;
  if (vcpus > 0) seen.cpu = std::min(1.0, steps.host.si / (steps.mean.si * vcpus));
  double pause_s = 0;  // for each step
  if (segment.checkpoint_every > 0) pause_s += segment.checkpoint_ns / kNanosecondsPerSecond / segment.checkpoint_every;
  if (scenario.evaluation) {
    seen.evaluation = scenario.evaluation->pause(steps.workers);
    pause_s += seen.evaluation.si / steps_between_evaluations(scenario, steps);
  }
  seen.pause_s = pause_s / segment.per_step;
  if (segment.configuration.cached) seen.host_memory = std::min(1.0, cache_share(scenario));
  seen.memory = gpu_memory(scenario.trace.batches[scenario.stages[segment.configuration.stage]]).si /
                scenario.pools[0].gpu().memory.si;
}

}  // namespace

policies::Observation observe(const RunContext& context, const RunState& state) {
  const Scenario& scenario = context.scenario;
  const platforms::Provisioning& provisioning = scenario.provisioning;
  const ScenarioPool& first = scenario.pools[0];
  policies::Observation seen;
  seen.now = to_seconds(state.now);
  seen.deadline = scenario.deadline;
  if (scenario.budget) seen.budget_usd = static_cast<double>(scenario.budget->value) * 1e-6;
  seen.spent_usd = spent_usd(context, state);
  seen.done = state.training.done(state.now);
  seen.left = std::max(0.0, context.target - seen.done);
  seen.training = state.training.under_way();
  seen.since_durable = state.training.at_risk(state.now);
  seen.every = scenario.policy.every;
  seen.save = to_seconds(checkpoint_write_time(context, state));
  seen.restart = provisioning.framework_start.median + provisioning.communicator_start.median +
                 to_seconds(checkpoint_read_time(context.scenario.checkpoints));
  seen.boot = provisioning.queue.median + provisioning.image_pull.median +
              (scenario.boot_given ? provisioning.boot.median : first.platform->boot(first.instance()).median);
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) seen.pools.push_back(view_of(context, state, p));
  if (state.training.under_way()) observe_training(context, state.training.segment(), seen);
  return seen;
}

}  // namespace ganymede::sim

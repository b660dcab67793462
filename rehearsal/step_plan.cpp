#include "rehearsal/step_plan.hpp"

#include <fmt/format.h>

#include "calibration/statistics.hpp"
#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/execution.hpp"
#include "sim/engine/folded_engine.hpp"
#include "sim/steps/gradient_passes.hpp"
#include "sim/steps/step_sampling.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::rehearsal {
namespace {

const sim::ScenarioPool& rented_pool(const sim::Scenario& scenario) {
  const sim::ScenarioPool* rented = nullptr;
  for (const sim::ScenarioPool& pool : scenario.pools) {
    if (pool.pool.nodes == 0) continue;
    if (rented != nullptr)
      throw ConfigError(scenario.file + ": /platform: found several pools, expected one to rehearse");
    rented = &pool;
  }
  return *rented;
}

void check_can_be_rehearsed(const sim::Scenario& scenario) {
  const sim::Synchronization& sync = scenario.synchronization;
  const auto refuse = [&](const char* where, const char* what) {
    throw ConfigError(fmt::format("{}: {}: {} cannot be rehearsed", scenario.file, where, what));
  };
  if (sync.mode != sim::Mode::all_reduce) refuse("/synchronization/mode", "another mode than all-reduce");
  if (sync.placement != sim::Placement::data_parallel) refuse("/synchronization/placement", "component-split");
  if (sync.backup_workers > 0) refuse("/synchronization/backup_workers", "a step that drops workers");
  if (scenario.stages.size() > 1) refuse("/workload/trace", "a model that grows");
}

/// The models of a scenario's workers, as ScenarioSteps makes them for a simulation.
calibration::StepModel model_of(const sim::Scenario& scenario, std::size_t rented, int nodes) {
  sim::Configuration configuration;
  std::vector<calibration::WorkloadModel> workloads;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    const sim::ScenarioPool& pool = scenario.pools[p];
    configuration.nodes.push_back(p == rented ? nodes : 0);
    workloads.emplace_back();
    if (p != rented) continue;
    const platforms::Instance& instance = pool.instance();
    workloads.back() = sim::in_passes(calibration::workload_on(*scenario.trace, scenario.batch(), pool.gpu(),
                                                               instance.host_link ? &*instance.host_link : nullptr),
                                      scenario);
  }
  auto models = sim::models_of(scenario, configuration, workloads, sim::Bound::central);
  return std::move(models.by_pool[rented]);
}

void scale_times(calibration::StepModel& model, double scale) {
  const auto scale_all = [&](std::vector<double>& times) {
    for (double& time : times) time *= scale;
  };
  for (calibration::StepPhase& phase : model.phases)
    for (auto* times : {&phase.gap_s, &phase.device_s, &phase.host_s}) scale_all(*times);
  scale_all(model.tail_s);
}

}  // namespace

std::vector<std::vector<std::size_t>> StepPlan::rows(std::size_t steps) const {
  sim::StepSampler sampler(model.samples, static_cast<std::size_t>(topology.ranks), calibration::kBlockSteps, seed);
  std::vector<std::vector<std::size_t>> out;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto row = sampler.next();
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}

sim::FabricGraph fabric_of(const sim::Scenario& scenario) {
  const sim::ScenarioPool& pool = rented_pool(scenario);
  return {*pool.platform, pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node};
}

StepPlan plan_steps(const sim::Scenario& scenario, const sim::Topology& topology, double scale) {
  const sim::ScenarioPool& rented = rented_pool(scenario);
  return plan_steps(scenario, static_cast<std::size_t>(&rented - scenario.pools.data()), rented.pool.nodes, topology,
                    scale);
}

StepPlan plan_steps(const sim::Scenario& scenario, std::size_t pool, int nodes, const sim::Topology& topology,
                    double scale) {
  check_can_be_rehearsed(scenario);
  StepPlan plan{.model = model_of(scenario, pool, nodes),
                .topology = topology,
                .schedules = {},
                .options = {},
                .seed = scenario.seed};
  if (topology.ranks == 1) plan.model.buckets.clear();
  if (plan.model.serial_host && topology.gpus_per_node > 1)
    throw ConfigError(scenario.file +
                      ": /workload/trace: one process drives all GPUs of a node there, and ranks are "
                      "processes; such steps cannot be rehearsed");
  scale_times(plan.model, scale);
  const sim::Synchronization& sync = scenario.synchronization;
  plan.options = {.overlap = sync.overlap && !sync.flat_reduction, .prefetch_depth = scenario.input.prefetch};
  try {
    for (const calibration::StepBucket& bucket : plan.model.buckets)
      plan.schedules.push_back(plan_for_processes(sync.scheme, topology, bucket.bytes));
  } catch (const sim::SchemeRefused& refused) {
    throw ConfigError(fmt::format("{}: /synchronization/scheme: {}", scenario.file, refused.what()));
  }
  return plan;
}

std::vector<sim::StepOutcome> predict_steps(const StepPlan& plan, const sim::FabricGraph& fabric,
                                            const std::vector<std::vector<std::size_t>>& rows) {
  const sim::Reduce reduce = [&](std::span<const sim::Reduction> reductions) {
    sim::Communicator communicator;
    for (const sim::Reduction& reduction : reductions)
      communicator.calls.push_back({&plan.schedules[reduction.bucket], reduction.arrivals});
    const sim::Job job{{communicator}};
    const sim::FoldedTimes folded = sim::run_folded(fabric, {&job, 1});
    std::vector<std::vector<Seconds>> ends;
    for (const sim::CollectiveTimes& call : folded.times[0][0]) ends.push_back(call.done);
    return ends;
  };
  sim::SynchronousStep steps(plan.model, plan.topology, plan.options, reduce);
  std::vector<sim::StepOutcome> out;
  for (const auto& row : rows) out.push_back(steps.next(row));
  return out;
}

}  // namespace ganymede::rehearsal

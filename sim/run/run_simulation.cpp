#include "sim/run/run_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/run/node_supply.hpp"
#include "sim/run/observation.hpp"

namespace ganymede::sim {
namespace {

RunContext context_of(const Scenario& scenario, ScenarioSteps& steps) {
  RunContext context{
      .scenario = scenario,
      .steps_of = [&steps](const Configuration& configuration) -> const StepDistribution& {
        return steps.distribution(configuration);
      },
      .measured_error =
          [&steps](std::size_t pool, std::size_t stage) {
            const WorkloadSummary& workload = steps.workload(pool, stage);
            return calibration::is_of_the_device(workload.provenance) ? workload.relative_error : 0.0;
          },
      .pool_speeds = {},
      .stage_ends = {},
      .target = static_cast<double>(scenario.target == Target::steps ? scenario.steps : scenario.images)};
  for (std::size_t p = 0; p < scenario.pools.size(); ++p)
    context.pool_speeds.push_back(steps.workload(0, 0).mean_s / steps.workload(p, 0).mean_s);
  context.stage_ends = draw_stage_ends(scenario, context.target);
  return context;
}

/// The distributions from which steps were taken, by descending number of steps.
std::vector<const StepDistribution*> by_steps_trained(const std::map<const StepDistribution*, double>& steps) {
  std::vector<std::pair<double, const StepDistribution*>> ranked;
  for (const auto& [distribution, count] : steps) ranked.emplace_back(-count, distribution);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->mean < b.second->mean;
  });
  std::vector<const StepDistribution*> distributions;
  for (const auto& [count, distribution] : ranked) distributions.push_back(distribution);
  return distributions;
}

}  // namespace

RunSimulation::RunSimulation(const Scenario& scenario, ScenarioSteps& steps, Controller& controller)
    : steps_(steps), controller_(controller), context_(context_of(scenario, steps)), state_(initial_state(scenario)) {}

RunRecord RunSimulation::run() {
  const PolicyChoice& policy = context_.scenario.policy;
  apply(start_of_run(context_, state_));
  consult_policy();
  if (policy.policy->periodic) queue_.schedule({to_nanoseconds(policy.every), PolicyReviewDue{}});
  while (!state_.finished) {
    if (queue_.empty()) throw_nothing_happens();
    const ScheduledEvent next = queue_.pop();
    const bool stale = next.phase != 0 && next.phase != state_.phase_number;
    if (stale) continue;
    advance_clock(context_, state_, next.at);
    give_up_if_stagnant(context_, state_, std::holds_alternative<PolicyReviewDue>(next.event));
    apply(transition(context_, state_, next.event));
  }
  return record();
}

void RunSimulation::apply(Actions actions) {
  for (RunEvent& entry : actions.log) log_.append(std::move(entry));
  for (const ScheduledEvent& event : actions.schedule) queue_.schedule(event);
  if (actions.consult_policy) consult_policy();
  for (const SimulationEvent& event : actions.next) apply(transition(context_, state_, event));
}

void RunSimulation::consult_policy() {
  if (state_.finished) return;
  apply(apply_decision(context_, state_, controller_.decide(observe(context_, state_))));
}

void RunSimulation::throw_nothing_happens() const {
  std::string waits;
  for (std::size_t p = 0; p < context_.scenario.pools.size(); ++p)
    if (const int waiting = state_.fleet.count(p).waiting; waiting > 0)
      waits +=
          fmt::format("{}{} more of \"{}\"", waits.empty() ? "" : " and ", waiting, context_.scenario.pools[p].name);
  throw_never_finishes(
      context_, state_,
      waits.empty() ? "its policy holds nothing that could train" : "it waits for " + waits + ", which never come");
}

RunRecord RunSimulation::record() const {
  const Scenario& scenario = context_.scenario;
  const TrainingProgress& training = state_.training;
  RunRecord record;
  record.end = state_.now;
  record.nodes = state_.fleet.nodes();
  record.trained = state_.facts.trained;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    record.ledgers.push_back(training.ledger(p));
    record.device_s.push_back(training.device_s(p));
  }
  record.totals = training.totals();
  record.error = training.error();
  record.steps = training.steps();
  record.images = training.images();
  record.lost_training = training.lost();
  record.losses = state_.facts.losses;
  record.most_gpus = state_.facts.most_gpus;
  record.moved_usd = state_.facts.moved_usd;
  record.nodes_usd = spent_usd(context_, state_);
  record.distributions = by_steps_trained(state_.facts.steps);
  record.events = log_.events();
  record.events_truncated = log_.truncated();
  record.workloads.resize(scenario.pools.size());
  for (std::size_t p = 0; p < scenario.pools.size(); ++p)
    if (held_time(record, p) > 0) record.workloads[p] = steps_.workload(p, scenario.stages.size() - 1);
  return record;
}

RunRecord simulate_run(const Scenario& scenario, ScenarioSteps& steps, Controller& controller) {
  return RunSimulation(scenario, steps, controller).run();
}

RunRecord simulate_run(const Scenario& scenario, ScenarioSteps& steps) {
  return simulate_run(scenario, steps, *make_controller(scenario));
}

}  // namespace ganymede::sim

#include "sim/run/run_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/budget.hpp"
#include "sim/run/decisions.hpp"
#include "sim/run/node_supply.hpp"

namespace ganymede::sim {
namespace {

/// Events after which it is asked again whether a run is given up, which takes about as long as one of them.
constexpr std::int64_t kEventsToAsk = 8;

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
  context.stage_ends = draw_stage_ends(scenario.seed, scenario.stage_shares, scenario.stage_variation, context.target);
  return context;
}

/// The distributions from which steps were taken, by descending number of steps.
std::vector<const StepDistribution*> by_steps_trained(std::vector<std::pair<const StepDistribution*, double>> steps) {
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first->mean < b.first->mean;
  });
  std::vector<const StepDistribution*> distributions;
  for (const auto& [distribution, count] : steps) distributions.push_back(distribution);
  return distributions;
}

/// The key of a scenario that asks for events such as this one.
std::string_view key_of(const SimulationEvent& event) {
  if (std::holds_alternative<SlowdownStarted>(event) || std::holds_alternative<SlowdownEnded>(event) ||
      std::holds_alternative<NodeCrashed>(event) || std::holds_alternative<FaultInjected>(event))
    return "/faults";
  if (std::holds_alternative<PolicyReviewDue>(event)) return "/policy/every";
  if (std::holds_alternative<SegmentCompleted>(event) || std::holds_alternative<PauseEnded>(event)) return "/workload";
  return "/platform";
}

}  // namespace

RunSimulation::RunSimulation(const Scenario& scenario, ScenarioSteps& steps, Controller& controller, RunWorld* world)
    : steps_(steps),
      controller_(controller),
      world_(world),
      context_(context_of(scenario, steps)),
      state_(initial_state(scenario)) {}

RunRecord RunSimulation::run() { return *run(/*gives_up=*/{}); }

std::optional<RunRecord> RunSimulation::run(const GivesUp& gives_up) {
  const PolicyChoice& policy = context_.scenario.policy;
  apply(start_of_run(context_, state_));
  consult_policy();
  if (policy.policy->periodic) schedule({to_nanoseconds(policy.every), PolicyReviewDue{}});
  Work work;
  for (std::int64_t events = 1; !state_.finished; ++events) {
    if (gives_up && events % kEventsToAsk == 0 && gives_up(state_.now, state_.fleet.nodes())) return std::nullopt;
    if (world_ != nullptr) world_->follow(context_, state_);
    const std::optional<ScheduledEvent> next = next_event();
    if (!next) throw_nothing_happens();
    const bool stale = next->phase != 0 && next->phase != state_.phase_number;
    work.spend(context_.scenario.file, key_of(next->event));
    if (stale) continue;
    advance(next->at);
    give_up_if_stagnant(context_, state_, std::holds_alternative<PolicyReviewDue>(next->event));
    const bool loses_node =
        std::holds_alternative<NodeReclaimed>(next->event) || std::holds_alternative<NodeCrashed>(next->event);
    const Change change = [&](RunState& state) { return transition(context_, state, next->event); };
    if (loses_node || std::holds_alternative<SegmentCompleted>(next->event))
      apply(change(state_));  // workers do not end their step before they are lost, and have ended a segment's last
    else
      enact(change);
  }
  if (world_ != nullptr) world_->follow(context_, state_);
  return record();
}

std::optional<ScheduledEvent> RunSimulation::next_event() {
  if (world_ != nullptr) return world_->next(queue_);
  if (queue_.empty()) return std::nullopt;
  return queue_.pop();
}

void RunSimulation::advance(Nanoseconds to) {
  if (world_ != nullptr && state_.training.under_way()) world_->measure(state_);
  advance_clock(context_, state_, std::max(to, state_.now));
}

void RunSimulation::schedule(const ScheduledEvent& event) {
  if (world_ == nullptr || !world_->takes(state_, event)) queue_.schedule(event);
}

bool RunSimulation::stops_training(const Change& change) const {
  if (world_ == nullptr || state_.phase != RunPhase::training) return false;
  RunState copy = state_;
  change(copy);
  if (copy.phase_number == state_.phase_number) return false;
  const auto same_member = [](const Node& a, const Node& b) { return a.member == b.member; };
  const std::vector<Node>&before = state_.fleet.nodes(), &after = copy.fleet.nodes();
  return copy.phase != RunPhase::training || !std::equal(before.begin(), before.end(), after.begin(), same_member);
}

void RunSimulation::enact(const Change& change) {
  if (stops_training(change)) advance(world_->stop_training());
  apply(change(state_));
}

void RunSimulation::apply(Actions actions) {
  for (RunEvent& entry : actions.log) log_.append(std::move(entry));
  for (const ScheduledEvent& event : actions.schedule) schedule(event);
  if (actions.consult_policy) consult_policy();
  for (const SimulationEvent& event : actions.next) apply(transition(context_, state_, event));
}

void RunSimulation::consult_policy() {
  if (state_.finished) return;
  const policies::Decision decision = controller_.decide(observe(context_, state_));
  enact([&](RunState& state) { return apply_decision(context_, state, decision); });
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
  static_cast<TrainingAccount&>(record) = training.account();
  record.steps = training.steps();
  record.images = training.images();
  record.lost_training = training.lost();
  record.losses = state_.facts.losses;
  record.most_gpus = state_.facts.most_gpus;
  record.moved = state_.facts.moved;
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

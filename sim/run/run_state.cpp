#include "sim/run/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::sim {
namespace {

/// 285 years: sums of times up to here stay within 64 bits.
constexpr Nanoseconds kLastEvent = 9'000'000'000 * static_cast<Nanoseconds>(1'000'000'000);

}  // namespace

void SimulationQueue::schedule(ScheduledEvent event) {
  if (event.at < kLastEvent) queue_.push({event, order_++});
}

ScheduledEvent SimulationQueue::pop() {
  const ScheduledEvent next = queue_.top().scheduled;
  queue_.pop();
  return next;
}

namespace {

/// Limits after which a run without training is given up: longer waits have never been seen to help.
constexpr std::int64_t kMaxIdleReviews = 10'000;
constexpr std::int64_t kMaxIdleDays = 30;
constexpr std::int64_t kMaxIdleLosses = 10'000, kMaxIdleLossesOfNode = 10;
constexpr Nanoseconds kDay = static_cast<Nanoseconds>(86'400) * 1'000'000'000;

std::vector<TrainingNode> training_nodes(const Scenario& scenario) {
  std::vector<TrainingNode> nodes;
  for (const ScenarioPool& pool : scenario.pools) {
    const platforms::Instance& instance = pool.instance();
    nodes.push_back(
        {pool.pool.gpus_per_node, static_cast<double>(instance.vcpus), instance.memory ? instance.memory->si : 0});
  }
  return nodes;
}

}  // namespace

std::vector<double> draw_stage_ends(std::uint64_t seed, std::span<const double> shares, double variation,
                                    double target) {
  RandomStream random(seed, "run/stages");
  std::vector<double> ends;
  double sum = 0;
  for (const double share : shares) {
    sum += share * (1 + variation * (2 * random.uniform() - 1));
    ends.push_back(sum);
  }
  for (double& end : ends) end *= target / sum;
  ends.back() = target;
  return ends;
}

RunState initial_state(const Scenario& scenario) {
  std::vector<PoolState> pools;
  for (const ScenarioPool& pool : scenario.pools) {
    // The pools that the scenario asks for have the dataset. A pool that only the policy may use has it if it is in the
    // first pool's region.
    const bool lacks_data = pool.pool.nodes == 0 && pool.pool.region != scenario.pools[0].pool.region;
    pools.push_back(
        {Capacity(scenario, pool), RandomStream(scenario.seed, "run/lifetimes/" + pool.name), 0, lacks_data});
  }
  return {.fleet = Fleet(scenario.pools.size()),
          .pools = std::move(pools),
          .training = TrainingProgress(training_nodes(scenario)),
          .delays = RandomStream(scenario.seed, "run/delays"),
          .picks = RandomStream(scenario.seed, "run/picks"),
          .slowdown_draws = RandomStream(scenario.seed, "run/slowdowns")};
}

void log_event(Actions& actions, const RunState& state, std::string what, std::string pool, int nodes,
               std::string detail, std::int64_t times) {
  actions.log.push_back({to_seconds(state.now), std::move(what), std::move(pool), nodes, std::move(detail), times});
}

void advance_clock(const RunContext& context, RunState& state, Nanoseconds to) {
  state.now = to;
  const Nanoseconds time = to - state.accounted_until;
  if (time == 0) return;
  const bool starting = state.phase == RunPhase::starting;
  const Nanoseconds loading =
      starting ? std::max<Nanoseconds>(0, to - std::max(state.accounted_until, state.loading_from)) : 0;
  for (std::size_t p = 0; p < context.scenario.pools.size(); ++p) {
    const ScenarioPool& pool = context.scenario.pools[p];
    const GpuNanoseconds members = GpuNanoseconds{state.fleet.members()[p]} * pool.pool.gpus_per_node;
    Ledger& ledger = state.training.ledger(p);
    if (const int fresh = state.fleet.fresh(p); fresh > 0)
      ledger.add(GpuUse::provisioning, GpuNanoseconds{time} * fresh * pool.instance().gpus);
    if (starting) {
      ledger.add(GpuUse::provisioning, members * (time - loading));
      ledger.add(GpuUse::checkpoint, members * loading);
    }
    if (state.phase == RunPhase::evaluating) ledger.add(GpuUse::evaluation, members * time);
    if (state.phase == RunPhase::saving) ledger.add(GpuUse::checkpoint, members * time);
  }
  state.accounted_until = to;
}

void throw_never_finishes(const RunContext& context, const RunState& state, const std::string& why) {
  throw Infeasible(fmt::format("{}: this run never finishes: {} ({:.1f} % are done after {})", context.scenario.file,
                               why, 100 * state.training.done(state.now) / context.target,
                               to_string(to_seconds(state.now))));
}

void give_up_if_stagnant(const RunContext& context, RunState& state, bool review) {
  Stagnation& stagnation = state.stagnation;
  if (state.phase != RunPhase::idle) stagnation.idle_since = state.now;
  if (state.now - stagnation.idle_since > kMaxIdleDays * kDay)
    throw_never_finishes(context, state,
                         fmt::format("for {} days it never had the nodes that it needs all at once", kMaxIdleDays));
  if (state.phase == RunPhase::training) {
    stagnation.idle_reviews = 0;
    stagnation.losses_when_trained = state.facts.losses;
  }
  std::int64_t most_nodes = 0;
  for (const ScenarioPool& pool : context.scenario.pools) most_nodes += pool.max_nodes;
  const std::int64_t most_losses = std::max(kMaxIdleLosses, kMaxIdleLossesOfNode * most_nodes);
  if (state.facts.losses - stagnation.losses_when_trained > most_losses)
    throw_never_finishes(
        context, state,
        fmt::format("it lost {} nodes in a row without ever having all that it needs at once", most_losses));
  if (review && state.phase == RunPhase::idle && ++stagnation.idle_reviews > kMaxIdleReviews)
    throw_never_finishes(context, state, "its policy lets it wait");
}

}  // namespace ganymede::sim

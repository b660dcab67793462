#include "sim/run/training_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/run/capacity.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {
namespace {

/// Largest number of successive starts that make nothing durable; more would not help.
constexpr std::int64_t kMaxFruitlessStarts = 2000;
/// Most evaluations of a run: each is an event, and this many take some seconds.
constexpr double kMaxEvaluations = 1e6;
/// Burst credits that last longer, in seconds, are taken to last for ever.
constexpr double kMaxBurst_s = 8e9;

/// Units of the target that a step trains.
double units_per_step(const Scenario& scenario, const StepDistribution& steps) {
  const auto images = static_cast<double>(scenario.dataset.images);
  switch (scenario.target) {
    case Target::steps:
      return 1;
    case Target::images:
      return steps.images;
    case Target::epochs:
      break;
  }
  // The last step of an epoch counts by its real images.
  return images / std::ceil(images / steps.images - 1e-9);
}

/// The target at which a segment ends: the end of the stage, or of the first epoch if the dataset is cached from then
/// on.
double segment_target(const RunContext& context, const RunState& state, const Segment& segment, double done) {
  const Scenario& scenario = context.scenario;
  const double stage_end = context.stage_ends[segment.configuration.stage];
  if (!scenario.input.storage || segment.configuration.cached || !fits_cache(scenario, state.decision.memory))
    return stage_end;
  const auto images = static_cast<double>(scenario.dataset.images);
  const double first_epoch = scenario.target == Target::steps ? std::ceil(images / segment.steps->images) : images;
  return done < first_epoch - target_rounding(context, state) ? std::min(stage_end, first_epoch) : stage_end;
}

void check_length(const RunContext& context, const RunState& state, const Segment& segment, double steps) {
  if (!(segment.step_ns > 0)) throw std::logic_error("a step takes no time, so that the run would never end");
  const double checkpoint_ns = segment.checkpoint_every > 0 ? segment.checkpoint_ns / segment.checkpoint_every : 0;
  const double length_s = steps * (segment.step_ns + checkpoint_ns) / kNanosecondsPerSecond;
  if (!(to_seconds(state.now).si + length_s < kMaxRun_s))
    throw ConfigError(fmt::format("{}: the run would take {}, longer than can be accounted for", context.scenario.file,
                                  to_string(steps * segment.steps->mean)));
}

/// Throws ConfigError if the rest of a segment, `left` steps, would pause for more evaluations than can be simulated.
void check_evaluations(const RunContext& context, double left, const StepDistribution& steps) {
  const Scenario& scenario = context.scenario;
  if (scenario.evaluation && left / steps_between_evaluations(scenario, steps) > kMaxEvaluations)
    throw ConfigError(
        fmt::format("{}: /evaluation/every: the run would pause for more than {:.0f} evaluations; "
                    "expected a longer time between them",
                    scenario.file, kMaxEvaluations));
}

/// Throws BudgetExceeded if so many seconds of training would bring, at the mean, more events than may be simulated.
void check_events(const RunContext& context, const RunState& state, double length_s) {
  const Scenario& scenario = context.scenario;
  const auto check = [&](double mean_s, double nodes, std::string_view key) {
    check_work(nodes * length_s / mean_s, "event", fmt::format("{}: {}", scenario.file, key),
               "longer times between them");
  };
  const auto nodes =
      static_cast<double>(std::accumulate(state.fleet.members().begin(), state.fleet.members().end(), 0));
  const Faults& faults = scenario.faults;
  if (scenario.policy.policy->periodic) check(scenario.policy.every.si, 1, "/policy/every");
  if (faults.crash) check(faults.crash->si, nodes, "/faults/crash/every");
  for (const auto& [slowdown, key, hit] : {std::tuple(&faults.straggler, "/faults/straggler/every", nodes),
                                           {&faults.network, "/faults/network/every", 1.0},
                                           {&faults.storage, "/faults/storage/every", 1.0}})
    if (*slowdown) check((*slowdown)->every.si, 2 * hit, key);  // each begins and ends
}

/// Schedules the moment at which the burst credits of the dataset's storage are used up.
void schedule_end_of_burst(const RunContext& context, const RunState& state, Actions& actions, const Segment& segment) {
  if (!segment.configuration.burst) return;
  const platforms::Storage& storage = *context.scenario.input.storage;
  const std::vector<int>& nodes = segment.configuration.nodes;
  const double volumes = storage.each_node ? std::accumulate(nodes.begin(), nodes.end(), 0.0) : 1;
  const double demand = segment.steps->reads / segment.steps->mean.si / volumes;
  if (demand <= storage.iops.value_or(demand)) return;
  const Seconds lasts{std::min(kMaxBurst_s, storage.burst_credits / (demand - *storage.iops))};
  actions.schedule.push_back({state.now + to_nanoseconds(lasts), BurstCreditsUsedUp{}, state.phase_number});
}

/// Schedules the moment at which the first NICs have used up their credits. Full credits last for Nic::kFullBurst at
/// the burst rate and flow back at the rate that is sustained: a step that sends less than that on average keeps them.
/// The busiest link is taken to be a NIC, which it is wherever NICs have a burst.
void schedule_end_of_nic_burst(const RunContext& context, const RunState& state, Actions& actions,
                               const Segment& segment) {
  if (!segment.configuration.nic_burst) return;
  const double busy = segment.steps->busiest_link / segment.steps->mean;
  double least_s = kMaxBurst_s;
  for (std::size_t p = 0; p < segment.configuration.nodes.size(); ++p) {
    const auto& nic = context.scenario.pools[p].instance().nic;
    if (segment.configuration.nodes[p] == 0 || !nic || !nic->burst) continue;
    const BytesPerSecond excess = busy * *nic->burst - nic->bandwidth;
    if (excess.si > 0)
      least_s = std::min(least_s, (*nic->burst - nic->bandwidth) / excess * platforms::Nic::kFullBurst.si);
  }
  const Seconds left{std::max(0.0, least_s - state.nic_burst.si)};
  if (least_s < kMaxBurst_s)
    actions.schedule.push_back({state.now + to_nanoseconds(left), BurstCreditsUsedUp{true}, state.phase_number});
}

/// The largest relative error of the measured steps of a segment's pools.
double measured_error(const RunContext& context, const Configuration& configuration) {
  double error = 0;
  for (std::size_t p = 0; p < configuration.nodes.size(); ++p)
    if (configuration.nodes[p] > 0) error = std::max(error, context.measured_error(p, configuration.stage));
  return error;
}

/// Throws Infeasible if more than kMaxFruitlessStarts successive starts made nothing durable.
void check_fruitless_starts(const RunContext& context, RunState& state) {
  Stagnation& stagnation = state.stagnation;
  const double durable = state.training.durable();
  if (stagnation.durable_at_last_start == durable && ++stagnation.fruitless_starts > kMaxFruitlessStarts)
    throw_never_finishes(
        context, state,
        fmt::format("{} starts in a row were lost before anything of them was durable{}", kMaxFruitlessStarts,
                    context.scenario.checkpoints.every == Checkpoints::Every::never
                        ? "; it writes no checkpoints"
                        : "; checkpoints are too far apart for how often nodes are lost"));
  if (stagnation.durable_at_last_start != durable) stagnation.fruitless_starts = 0;
  stagnation.durable_at_last_start = durable;
}

/// Makes exactly the chosen nodes members and returns their number.
int set_members(const RunContext& context, RunState& state) {
  int nodes = 0;
  const std::vector<std::size_t> chosen = choose_workers(state);
  for (const std::size_t index : state.fleet.alive()) state.fleet.set_member(index, false);
  for (const std::size_t index : chosen) {
    const std::size_t pool = state.fleet[index].pool;
    state.fleet.set_member(index, true);
    ++nodes;
    if (std::exchange(state.pools[pool].lacks_data, false))
      state.facts.moved[{0, pool}] += bytes_to_enter(context.scenario);
  }
  return nodes;
}

/// The GPUs that the process of the member with most of them drives.
int most_gpus_of_a_member(const RunContext& context, const RunState& state) {
  int most = 0;
  for (std::size_t pool = 0; pool < context.scenario.pools.size(); ++pool)
    if (state.fleet.members()[pool] > 0) most = std::max(most, context.scenario.pools[pool].pool.gpus_per_node);
  return most;
}

}  // namespace

void begin_segment(const RunContext& context, RunState& state, Actions& actions, bool same_workers) {
  const Scenario& scenario = context.scenario;
  state.phase = RunPhase::training;
  Segment segment;
  segment.start = state.now;
  segment.configuration = configuration_of(context, state);
  segment.steps = &context.steps_of(segment.configuration);
  segment.step_ns = segment.steps->mean.si * kNanosecondsPerSecond;
  segment.per_step = units_per_step(scenario, *segment.steps);
  segment.checkpoint_every = steps_between_checkpoints(context, state, *segment.steps);
  segment.checkpoint_ns = static_cast<double>(checkpoint_write_time(context, state));
  state.facts.most_gpus = std::max(state.facts.most_gpus, segment.steps->workers);
  const std::size_t stage = segment.configuration.stage;
  if (stage != state.stage && state.has_trained)
    log_event(actions, state, "stage", "", 0, scenario.trace->batches[scenario.stages[stage]].stage);
  state.stage = stage;
  // A segment ends with a whole step, counting those that earlier segments began.
  const double done = state.training.done(state.now);
  const double target = segment_target(context, state, segment, done);
  double left = steps_to_whole(state.training.steps(), (target - done) / segment.per_step);
  check_length(context, state, segment, left);
  const double to_evaluation = steps_to_evaluation(context, state, *segment.steps);
  check_evaluations(context, left, *segment.steps);
  check_events(context, state, left * segment.steps->mean.si);
  state.evaluation_due = to_evaluation <= left;
  left = std::min(left, to_evaluation);
  state.training.begin_segment(segment, same_workers);
  ++state.phase_number;
  actions.schedule.push_back({state.training.segment().time_of(left), SegmentCompleted{}, state.phase_number});
  schedule_end_of_burst(context, state, actions, segment);
  schedule_end_of_nic_burst(context, state, actions, segment);
}

void end_segment(const RunContext& context, RunState& state, Actions& actions, bool lost) {
  assert(state.phase == RunPhase::training);
  const Segment& segment = state.training.segment();
  if (segment.configuration.nic_burst) state.nic_burst += to_seconds(state.now - segment.start);
  std::vector<Span>& trained = state.facts.trained;
  if (!trained.empty() && trained.back().to == segment.start)
    trained.back().to = state.now;
  else
    trained.push_back({segment.start, state.now});
  const double before = state.training.account().totals.steps;
  const std::int64_t checkpoints =
      state.training.end_segment(state.now, lost, measured_error(context, segment.configuration));
  auto& from = state.facts.steps;
  auto known = std::find_if(from.begin(), from.end(), [&](const auto& entry) { return entry.first == segment.steps; });
  if (known == from.end()) known = from.insert(known, {segment.steps, 0});
  known->second += state.training.account().totals.steps - before;
  ++state.phase_number;
  if (checkpoints > 0) log_event(actions, state, "checkpoint", "", 0, "", checkpoints);
  state.phase = RunPhase::idle;
}

void change_pace(const RunContext& context, RunState& state, Actions& actions) {
  if (state.phase != RunPhase::training) return;
  end_segment(context, state, actions, false);
  begin_segment(context, state, actions, true);
}

void begin_pause(RunState& state, Actions& actions, RunPhase phase, Nanoseconds length) {
  state.phase = phase;
  state.phase_end = state.now + length;
  state.loading_from = state.phase_end;
  ++state.phase_number;
  actions.schedule.push_back({state.phase_end, PauseEnded{}, state.phase_number});
}

void start_training(const RunContext& context, RunState& state, Actions& actions, bool load) {
  const platforms::Provisioning& provisioning = context.scenario.provisioning;
  Nanoseconds length = draw(provisioning.framework_start, state.delays);
  const int nodes = set_members(context, state), more = most_gpus_of_a_member(context, state) - 1;
  if (nodes > 1 || more > 0) length += draw(provisioning.communicator_start, state.delays);
  if (more > 0) length += more * draw(provisioning.replica_start, state.delays);
  if (state.has_trained && !load) log_event(actions, state, "resized", "", nodes);
  const Nanoseconds loading =
      load && state.training.durable() > 0 ? checkpoint_read_time(context.scenario.checkpoints) : 0;
  begin_pause(state, actions, RunPhase::starting, length + loading);
  state.loading_from = state.phase_end - loading;
  if (load) check_fruitless_starts(context, state);
  if (length + loading == 0) begin_training(context, state, actions);
}

void begin_training(const RunContext& context, RunState& state, Actions& actions) {
  state.must_load = false;
  if (!state.has_trained) log_event(actions, state, "ready");
  if (state.restoring) log_event(actions, state, "restored");
  state.has_trained = true;
  state.restoring = false;
  begin_segment(context, state, actions);
}

std::vector<std::size_t> choose_workers(const RunState& state) {
  std::vector<std::size_t> chosen;
  std::vector<int> wanted = state.decision.nodes;
  int missing = std::accumulate(wanted.begin(), wanted.end(), 0);
  std::size_t unnoticed = 0;
  for (const bool noticed : {false, true}) {
    unnoticed = chosen.size();
    for (const std::size_t index : state.fleet.alive()) {
      const Node& node = state.fleet[index];
      if (node.state != Node::State::ready || node.noticed != noticed || missing == 0) continue;
      if (!noticed && wanted[node.pool]-- <= 0) continue;
      --missing;
      chosen.push_back(index);
    }
  }
  // Both parts are in the order of their requests, as the nodes that are alive are.
  std::inplace_merge(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(unnoticed), chosen.end());
  return chosen;
}

void adapt_training(const RunContext& context, RunState& state, Actions& actions) {
  if (state.finished || state.phase == RunPhase::saving || state.phase == RunPhase::evaluating ||
      state.phase == RunPhase::starting)
    return;
  const bool on_the_way = state.fleet.on_the_way() > 0;
  const std::vector<std::size_t> chosen = choose_workers(state);
  if (state.phase == RunPhase::training) {
    if (state.decision.pause) return end_segment(context, state, actions, false);
    const bool all_train =
        std::all_of(chosen.begin(), chosen.end(), [&](std::size_t index) { return state.fleet[index].member; });
    if (all_train || on_the_way) return;
    end_segment(context, state, actions, false);
    return start_training(context, state, actions, false);
  }
  if (state.decision.pause || chosen.empty()) return;
  const auto wanted =
      static_cast<std::size_t>(std::accumulate(state.decision.nodes.begin(), state.decision.nodes.end(), 0));
  if (state.decision.elastic ? on_the_way : chosen.size() < wanted) return;
  start_training(context, state, actions, state.must_load || !state.has_trained);
}

void finish_run(RunState& state, Actions& actions) {
  state.finished = true;
  log_event(actions, state, "finished");
}

}  // namespace ganymede::sim

#include "sim/run/decisions.hpp"

#include <algorithm>
#include <tuple>

#include "sim/ledger/ledger.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {
namespace {

/// Nodes of lower rank are released first: nodes not granted, then booting ones, then ones that do not train.
int release_rank(const Node& node) {
  switch (node.state) {
    case Node::State::queued:
    case Node::State::waiting:
      return 0;
    case Node::State::booting:
      return 1;
    default:
      return node.member ? 3 : 2;
  }
}

/// Releases `nodes` nodes of a pool by release_rank(), the youngest first within a rank. Nodes under notice are left
/// out.
void release_nodes(const RunContext& context, RunState& state, Actions& actions, std::size_t pool, int nodes) {
  std::vector<std::size_t> candidates;
  for (const std::size_t index : state.fleet.alive())
    if (state.fleet[index].pool == pool && !state.fleet[index].noticed) candidates.push_back(index);
  std::stable_sort(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    const int rank_a = release_rank(state.fleet[a]), rank_b = release_rank(state.fleet[b]);
    return rank_a != rank_b ? rank_a < rank_b : a > b;
  });
  int held = 0;
  for (int i = 0; i < nodes; ++i) {
    const std::size_t index = candidates[static_cast<std::size_t>(i)];
    held += state.fleet[index].held() ? 1 : 0;
    remove_node(context, state, index, false);
  }
  if (held > 0) log_event(actions, state, "released", context.scenario.pools[pool].name, held);
}

/// How a decision changes the nodes.
struct NodeChanges {
  std::vector<int> surplus;  ///< by pool: nodes to release
  int members_go = 0, members_stay = 0;
};

/// Requests the missing nodes and returns the surplus ones.
NodeChanges request_missing(const RunContext& context, RunState& state, Actions& actions) {
  NodeChanges changes;
  for (std::size_t p = 0; p < context.scenario.pools.size(); ++p) {
    const PoolCount count = state.fleet.count(p);
    const int have = count.queued + count.waiting + count.booting + count.ready;
    const int wanted = state.decision.nodes[p];
    request_nodes(context, state, actions, p, wanted - have);
    const int surplus = std::max(0, have - wanted);
    // Members are released only if no other node is left to release.
    const int go = std::clamp(surplus - (have - count.members), 0, count.members);
    changes.surplus.push_back(surplus);
    changes.members_go += go;
    changes.members_stay += count.members - go;
  }
  return changes;
}

/// Continues after members were released: the remaining members start again among themselves. If none remains, the next
/// start reads the weights from the last checkpoint.
void go_on_without_released(const RunContext& context, RunState& state, Actions& actions, bool some_stay) {
  ++state.phase_number;
  state.phase = RunPhase::idle;
  if (some_stay) return start_training(context, state, actions, state.must_load);
  if (state.training.done(state.now) > state.training.durable()) state.training.lose();
  state.must_load = true;
}

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
  seen.memory = gpu_memory(scenario.trace->batches[scenario.stages[segment.configuration.stage]]).si /
                scenario.pools[0].gpu().memory.si;
}

}  // namespace

void follow_decision(const RunContext& context, RunState& state, Actions& actions, const policies::Decision& decision) {
  const bool share_changes =
      std::tie(decision.cpus, decision.memory) != std::tie(state.decision.cpus, state.decision.memory);
  state.decision = decision;
  // Followed when the checkpoint is written, or the evaluation has ended.
  if (state.phase == RunPhase::saving || state.phase == RunPhase::evaluating) return;
  const NodeChanges changes = request_missing(context, state, actions);
  const bool members_go = changes.members_go > 0, members_stay = changes.members_stay > 0;
  if (members_go && state.phase == RunPhase::training) {
    end_segment(context, state, actions, false);
    // If no member remains to hold the weights, a checkpoint keeps them before any member goes.
    if (!members_stay && context.scenario.checkpoints.storage &&
        state.training.done(state.now) > state.training.durable())
      return begin_pause(state, actions, RunPhase::saving, checkpoint_write_time(context, state));
  }
  for (std::size_t p = 0; p < changes.surplus.size(); ++p)
    if (changes.surplus[p] > 0) release_nodes(context, state, actions, p, changes.surplus[p]);
  if (members_go) return go_on_without_released(context, state, actions, members_stay);
  // The job's share of processors and memory changes while it runs.
  if (share_changes) change_pace(context, state, actions);
}

Seconds program_start(const Scenario& scenario, const std::vector<int>& nodes) {
  int gpus = 0, most = 1;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const int of_node = scenario.pools[p].pool.gpus_per_node;
    gpus += nodes[p] * of_node;
    if (nodes[p] > 0) most = std::max(most, of_node);
  }
  const platforms::Provisioning& times = scenario.provisioning;
  return times.framework_start.median + (gpus > 1 ? times.communicator_start.median : Seconds{}) +
         (most - 1.0) * times.replica_start.median;
}

Seconds longest_program_start(const Scenario& scenario, const std::vector<int>& nodes) {
  Seconds longest = program_start(scenario, nodes);
  std::vector<int> alone(scenario.pools.size(), 0);
  for (std::size_t p = 0; p < alone.size(); ++p) {
    alone[p] = scenario.pools[p].max_nodes;
    longest = std::max(longest, program_start(scenario, alone));
    alone[p] = 0;
  }
  return longest;
}

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
  seen.restart = longest_program_start(scenario, state.decision.nodes) +
                 to_seconds(checkpoint_read_time(context.scenario.checkpoints));
  seen.boot = provisioning.queue.median + provisioning.image_pull.median +
              (scenario.boot_given ? provisioning.boot.median : first.platform->boot(first.instance()).median);
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) seen.pools.push_back(view_of(context, state, p));
  if (state.training.under_way()) observe_training(context, state.training.segment(), seen);
  return seen;
}

}  // namespace ganymede::sim

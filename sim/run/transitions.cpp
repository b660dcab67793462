// The transitions of a run: of nodes and of capacity, of faults, and of training and decisions of the policy.

#include "sim/run/transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "common/units.hpp"
#include "sim/run/decisions.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"

namespace ganymede::sim {
namespace {

/// Draws for how long a pool from which the provider has just taken a node has no other node.
void draw_empty_time(const RunContext& context, RunState& state, Actions& actions, std::size_t p) {
  const auto& lifetimes = context.scenario.pools[p].lifetimes;
  if (!lifetimes || lifetimes->back_after.si <= 0) return;
  PoolState& pool = state.pools[p];
  const Nanoseconds back = state.now + to_nanoseconds(lifetimes->back_after * pool.lifetimes.exponential());
  pool.empty_until = std::max(pool.empty_until, back);
  actions.schedule.push_back({back, WaitingRetried{p}});
}

/// Ends training or a pause because a member is lost. `survives`: other members hold the weights.
void stop_for_loss(const RunContext& context, RunState& state, Actions& actions, bool survives) {
  if (state.phase == RunPhase::training) {
    end_segment(context, state, actions, !survives);
  } else {
    ++state.phase_number;
    if (!survives) state.training.lose();
  }
  state.phase = RunPhase::idle;
  state.must_load = state.must_load || !survives;
  state.restoring = true;
}

enum class LossKind { reclaimed, crashed };

/// Handles the loss of a node. After a notice the other members hold the weights and go on; a crash, or the loss of the
/// last member, loses all work that is not durable.
Actions lose_node(const RunContext& context, RunState& state, std::size_t index, LossKind kind) {
  Actions actions;
  const Node node = state.fleet[index];
  if (!node.held()) return actions;  // released meanwhile
  const bool crashed = kind == LossKind::crashed;
  const auto& alive = state.fleet.alive();
  const bool others_train = std::any_of(alive.begin(), alive.end(),
                                        [&](std::size_t other) { return other != index && state.fleet[other].member; });
  log_event(actions, state, crashed ? "crashed" : "lost", context.scenario.pools[node.pool].name, 1);
  if (!crashed) draw_empty_time(context, state, actions, node.pool);
  ++state.facts.losses;
  const bool survives = others_train && node.warned && !crashed && state.decision.elastic;
  if (node.member) stop_for_loss(context, state, actions, survives);
  remove_node(context, state, index, true);
  if (node.member) {
    for (const std::size_t other : state.fleet.alive()) state.fleet.set_member(other, false);
    if (survives && !choose_workers(state).empty()) {
      start_training(context, state, actions, state.must_load);
    } else if (survives) {  // the policy wants none of the nodes that hold the weights
      state.training.lose();
      state.must_load = true;
    }
  }
  // Requests that already wait are served before those that the policy makes next.
  retry_waiting(context, state, actions, node.pool);
  actions.consult_policy = true;
  return actions;
}

/// Gives notice to nodes for which known capacity leaves no room; they go when capacity falls. Returns true if there is
/// a notice that the policy has not heard of.
bool reclaim_excess(const RunContext& context, RunState& state, Actions& actions, std::size_t p) {
  bool news = false;
  for (const CapacityFrom& change : known_capacity(context, state, p)) {
    if (static_cast<std::size_t>(state.fleet.held(p)) <= change.nodes) continue;
    // Nodes that have notice for a later time are taken before nodes without notice.
    std::vector<std::size_t> told, others;
    for (const std::size_t index : state.fleet.alive()) {
      const Node& node = state.fleet[index];
      if (node.pool == p && node.held() && node.leaves > change.at) (node.noticed ? told : others).push_back(index);
    }
    while (told.size() + others.size() > change.nodes) {
      std::vector<std::size_t>& from = told.empty() ? others : told;
      const auto pick = from.begin() + static_cast<std::ptrdiff_t>(state.picks.below(from.size()));
      news = announce_reclaim(context, state, actions, *pick, change.at) || news;
      from.erase(pick);
    }
  }
  return news;
}

}  // namespace

Actions transition(const RunContext& context, RunState& state, const RequestAnswered& event) {
  Actions actions;
  answer_request(context, state, actions, event.node);
  // Nodes that became ready meanwhile were kept for this one, which may never come.
  const auto& alive = state.fleet.alive();
  actions.consult_policy = state.phase == RunPhase::idle && state.fleet.on_the_way() == 0 &&
                           std::any_of(alive.begin(), alive.end(),
                                       [&](std::size_t i) { return state.fleet[i].state == Node::State::ready; });
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const WaitingRetried& event) {
  Actions actions;
  retry_waiting(context, state, actions, event.pool);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const NodeReady& event) {
  Actions actions;
  const Node& node = state.fleet[event.node];
  if (node.state != Node::State::booting) return actions;  // lost while it booted
  state.fleet.make_ready(event.node, state.now);
  if (state.has_trained) log_event(actions, state, "provisioned", context.scenario.pools[node.pool].name, 1);
  // Nothing changes while other nodes are on their way.
  actions.consult_policy = state.fleet.on_the_way() == 0;
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const NoticeGiven& event) {
  Actions actions;
  const Nanoseconds notice = to_nanoseconds(context.scenario.pools[state.fleet[event.node].pool].notice);
  actions.consult_policy = announce_reclaim(context, state, actions, event.node, state.now + notice);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const FinalCheckpointDue&) {
  Actions actions;
  if (state.phase != RunPhase::training && state.phase != RunPhase::evaluating) return actions;
  bool some_stay = false, some_go = false;
  for (const std::size_t index : state.fleet.alive())
    if (const Node& node = state.fleet[index]; node.member) (node.noticed ? some_go : some_stay) = true;
  // Nothing needs saving if no member goes, or if the members that stay hold the weights and the run may go on with
  // fewer.
  if (!some_go || (some_stay && state.decision.elastic)) return actions;
  if (state.phase == RunPhase::training) end_segment(context, state, actions, false);  // else an evaluation is given up
  begin_pause(state, actions, RunPhase::saving, checkpoint_write_time(context, state));
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const NodeReclaimed& event) {
  return lose_node(context, state, event.node, LossKind::reclaimed);
}

Actions transition(const RunContext& context, RunState& state, const NodeCrashed& event) {
  return lose_node(context, state, event.node, LossKind::crashed);
}

Actions transition(const RunContext& context, RunState& state, const CapacityChanged& event) {
  Actions actions;
  schedule_capacity_change(context, state, actions, event.pool);
  actions.consult_policy = reclaim_excess(context, state, actions, event.pool);
  actions.next.push_back(WaitingRetried{event.pool});
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const ReclaimDue& event) {
  Actions actions;
  actions.consult_policy = reclaim_excess(context, state, actions, event.pool);
  return actions;
}

namespace {

using FaultKind = InjectedEvent::Kind;

const std::optional<Slowdown>& slowdown_of(const Faults& faults, FaultKind kind) {
  switch (kind) {
    case FaultKind::network:
      return faults.network;
    case FaultKind::storage:
      return faults.storage;
    default:
      return faults.straggler;
  }
}

/// The most nodes that the run may hold at once.
std::uint64_t most_nodes(const Scenario& scenario) {
  std::uint64_t most = 0;
  for (const ScenarioPool& pool : scenario.pools) most += static_cast<std::uint64_t>(pool.max_nodes);
  return most;
}

/// Schedules the next slowdown of a kind. The rate of stragglers is proportional to the number of nodes that the run
/// may hold.
void schedule_slowdown(const RunContext& context, RunState& state, Actions& actions, FaultKind kind) {
  constexpr double kNever_s = 8e9;
  const std::optional<Slowdown>& slowdown = slowdown_of(context.scenario.faults, kind);
  if (!slowdown) return;
  const double sources = kind == FaultKind::straggler ? static_cast<double>(most_nodes(context.scenario)) : 1;
  const double wait_s = slowdown->every.si / sources * state.slowdown_draws.exponential();
  if (wait_s < kNever_s)
    actions.schedule.push_back({state.now + to_nanoseconds(Seconds{wait_s}), SlowdownStarted{kind}});
}

const char* slowdown_name(FaultKind kind) {
  return kind == FaultKind::straggler ? "straggler" : kind == FaultKind::network ? "network slower" : "storage slower";
}

/// Slowdowns of a run that are drawn, and those at once, beyond which it is given up: their records would fill memory,
/// and each change of pace looks at all that last.
constexpr std::int64_t kMostDrawn = 1'000'000;
constexpr std::size_t kMostAtOnce = 20'000;

void give_up_if_too_many(const RunContext& context, RunState& state, FaultKind kind) {
  if (++state.slowdowns_drawn <= kMostDrawn && state.slowdowns.size() < kMostAtOnce) return;
  throw_never_finishes(
      context, state,
      fmt::format("/faults/{}: {} slowdowns have begun and {} last, at most {} and {} at once can be followed",
                  kind == FaultKind::straggler ? "straggler"
                  : kind == FaultKind::network ? "network"
                                               : "storage",
                  state.slowdowns_drawn, state.slowdowns.size(), kMostDrawn, kMostAtOnce));
}

void begin_slowdown(const RunContext& context, RunState& state, Actions& actions, const InjectedEvent& fault) {
  const Nanoseconds until = state.now + to_nanoseconds(fault.lasts);
  state.slowdowns.push_back({fault.kind, fault.factor, fault.nodes, until});
  actions.schedule.push_back({until, SlowdownEnded{}});
  log_event(actions, state, slowdown_name(fault.kind), "", fault.kind == FaultKind::straggler ? fault.nodes : 0,
            fmt::format("factor {:g}", fault.factor));
  change_pace(context, state, actions);
}

/// True if a drawn slowdown hits a node that trains. Slowdowns of nodes are drawn for all nodes that the run may hold.
bool hits_a_member(const RunContext& context, RunState& state) {
  std::uint64_t members = 0;
  for (const int nodes : state.fleet.members()) members += static_cast<std::uint64_t>(nodes);
  return state.slowdown_draws.below(most_nodes(context.scenario)) < members;
}

}  // namespace

Actions start_of_run(const RunContext& context, RunState& state) {
  Actions actions;
  for (const auto kind : {FaultKind::straggler, FaultKind::network, FaultKind::storage})
    schedule_slowdown(context, state, actions, kind);
  for (std::size_t p = 0; p < state.pools.size(); ++p)
    if (state.pools[p].capacity.limited()) schedule_capacity_change(context, state, actions, p);
  const std::vector<InjectedEvent>& faults = context.scenario.faults.events;
  for (std::size_t i = 0; i < faults.size(); ++i)
    actions.schedule.push_back({to_nanoseconds(faults[i].at), FaultInjected{i}});
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SlowdownStarted& event) {
  Actions actions;
  give_up_if_too_many(context, state, event.kind);
  schedule_slowdown(context, state, actions, event.kind);
  if (event.kind == FaultKind::straggler && !hits_a_member(context, state)) return actions;
  const Slowdown& slowdown = *slowdown_of(context.scenario.faults, event.kind);
  begin_slowdown(context, state, actions, {event.kind, {}, 0, 1, slowdown.factor, slowdown.lasts});
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SlowdownEnded&) {
  Actions actions;
  std::erase_if(state.slowdowns, [&](const ActiveSlowdown& slowdown) { return slowdown.until <= state.now; });
  log_event(actions, state, "recovered");
  change_pace(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const FaultInjected& event) {
  Actions actions;
  const InjectedEvent& fault = context.scenario.faults.events[event.index];
  if (fault.kind != FaultKind::interruption && fault.kind != FaultKind::crash) {
    begin_slowdown(context, state, actions, fault);
    return actions;
  }
  std::vector<std::size_t> held;
  for (const std::size_t index : state.fleet.alive())
    if (const Node& node = state.fleet[index]; node.pool == fault.pool && node.held() && !node.noticed)
      held.push_back(index);
  for (int i = 0; i < fault.nodes && !held.empty(); ++i) {
    const auto pick = held.begin() + static_cast<std::ptrdiff_t>(state.picks.below(held.size()));
    if (fault.kind == FaultKind::crash)
      actions.next.push_back(NodeCrashed{*pick});
    else
      actions.next.push_back(NoticeGiven{*pick});
    held.erase(pick);
  }
  return actions;
}

namespace {

bool target_reached(const RunContext& context, const RunState& state) {
  return state.training.done(state.now) >= context.target - target_rounding(context, state);
}

/// Goes on after a segment and the evaluation at its end: trains, writes the last checkpoint, or finishes the run.
void go_on_after_segment(const RunContext& context, RunState& state, Actions& actions) {
  if (!target_reached(context, state)) {
    begin_segment(context, state, actions, true);
  } else if (context.scenario.checkpoints.every != Checkpoints::Every::never) {
    begin_pause(state, actions, RunPhase::saving, checkpoint_write_time(context, state));
  } else {
    state.training.finish();
    finish_run(state, actions);
  }
}

void end_evaluation(const RunContext& context, RunState& state, Actions& actions) {
  log_event(actions, state, "evaluated");
  go_on_after_segment(context, state, actions);
  if (state.phase != RunPhase::training) return;
  // A decision of the policy, or a node that became ready, may have waited for the evaluation.
  follow_decision(context, state, actions, state.decision);
  adapt_training(context, state, actions);
}

}  // namespace

Actions transition(const RunContext& context, RunState& state, const PauseEnded&) {
  Actions actions;
  if (state.phase == RunPhase::starting) {
    begin_training(context, state, actions);
    return actions;
  }
  if (state.phase == RunPhase::evaluating) {
    end_evaluation(context, state, actions);
    return actions;
  }
  state.training.save();
  log_event(actions, state, "checkpoint");
  if (target_reached(context, state)) {
    finish_run(state, actions);
    return actions;
  }
  state.phase = RunPhase::idle;
  // A decision of the policy may have waited for the checkpoint.
  follow_decision(context, state, actions, state.decision);
  if (state.phase == RunPhase::idle) adapt_training(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SegmentCompleted&) {
  Actions actions;
  const int gpus = state.training.segment().steps->workers;
  end_segment(context, state, actions, false);
  if (state.evaluation_due)
    begin_pause(state, actions, RunPhase::evaluating, to_nanoseconds(context.scenario.evaluation->pause(gpus)));
  else
    go_on_after_segment(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const BurstCreditsUsedUp& event) {
  Actions actions;
  (event.nics ? state.nic_credits_left : state.burst_credits_left) = false;
  log_event(actions, state, event.nics ? "network credits used up" : "burst credits used up");
  change_pace(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const PolicyReviewDue&) {
  Actions actions;
  actions.schedule.push_back({state.now + to_nanoseconds(context.scenario.policy.every), PolicyReviewDue{}});
  actions.consult_policy = true;
  return actions;
}

Actions apply_decision(const RunContext& context, RunState& state, const policies::Decision& decision) {
  Actions actions;
  follow_decision(context, state, actions, decision);
  adapt_training(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SimulationEvent& event) {
  return std::visit([&](const auto& typed) { return transition(context, state, typed); }, event);
}

}  // namespace ganymede::sim

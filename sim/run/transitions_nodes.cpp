// Nodes become ready, get their notice and are lost.

#include <algorithm>

#include "sim/run/node_supply.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

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

}  // namespace ganymede::sim

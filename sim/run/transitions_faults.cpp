// Faults: slowdowns, drawn or stated by the scenario, and nodes that the scenario takes away.

#include <fmt/format.h>

#include <cstdint>

#include "common/units.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
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

}  // namespace ganymede::sim

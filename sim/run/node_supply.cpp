#include "sim/run/node_supply.hpp"

#include <algorithm>

#include "sim/run/capacity.hpp"
#include "sim/run/run_configuration.hpp"

namespace ganymede::sim {
namespace {

/// True if a pool of limited capacity has room for one more node.
bool has_room(const RunContext& context, RunState& state, std::size_t pool) {
  const std::vector<CapacityFrom> known = known_capacity(context, state, pool);
  const auto held = static_cast<std::size_t>(state.fleet.held(pool));
  std::size_t least = known.front().nodes;
  if (held >= least) return false;
  for (const CapacityFrom& change : known) least = std::min(least, change.nodes);
  // A node that gets its notice together with its grant may fill a gap, but it must not replace another node under
  // notice. Otherwise each such node would be replaced at once by the next one, while nodes last.
  return held < least || held < static_cast<std::size_t>(state.decision.nodes[pool]);
}

bool is_available(const RunContext& context, RunState& state, std::size_t pool) {
  if (state.now < state.pools[pool].empty_until) return false;
  return !state.pools[pool].capacity.limited() || has_room(context, state, pool);
}

/// Draws when a node that was just granted is taken back or crashes.
void draw_end_of_node(const RunContext& context, RunState& state, Actions& actions, std::size_t node) {
  const ScenarioPool& pool = context.scenario.pools[state.fleet[node].pool];
  RandomStream& random = state.pools[state.fleet[node].pool].lifetimes;
  if (pool.lifetimes) {
    const Nanoseconds life = draw(*pool.lifetimes, random);
    if (life != kNever) {
      const Nanoseconds notice = std::min(life, to_nanoseconds(pool.notice));
      actions.schedule.push_back({state.now + life - notice, NoticeGiven{node}});
    }
  }
  if (context.scenario.faults.crash) {
    Lifetimes crashes;
    crashes.mean = *context.scenario.faults.crash;
    const Nanoseconds life = draw(crashes, random);
    if (life != kNever) actions.schedule.push_back({state.now + life, NodeCrashed{node}});
  }
}

double held_usd(const ScenarioPool& pool, const Node& node, Nanoseconds until) {
  return pool.prices ? integral(*pool.prices, to_seconds(node.granted), to_seconds(until)) / 3600
                     : to_seconds(until - node.granted).si / 3600 * price_at(pool, until);
}

}  // namespace

void request_nodes(const RunContext& context, RunState& state, Actions& actions, std::size_t pool, int nodes) {
  if (nodes <= 0) return;
  log_event(actions, state, "requested", context.scenario.pools[pool].name, nodes);
  int wanted = nodes;
  for (const std::size_t index : state.fleet.alive())
    wanted += state.fleet[index].pool == pool && !state.fleet[index].noticed ? 1 : 0;
  state.pools[pool].capacity.raise_demand(wanted);
  for (int i = 0; i < nodes; ++i) {
    const std::size_t node = state.fleet.add(pool, state.now);
    const Nanoseconds queue = draw(context.scenario.provisioning.queue, state.delays);
    if (queue == 0)
      answer_request(context, state, actions, node);
    else
      actions.schedule.push_back({state.now + queue, RequestAnswered{node}});
  }
}

void answer_request(const RunContext& context, RunState& state, Actions& actions, std::size_t index) {
  const Node& node = state.fleet[index];
  if (node.state != Node::State::queued && node.state != Node::State::waiting) return;
  const Scenario& scenario = context.scenario;
  const ScenarioPool& pool = scenario.pools[node.pool];
  if (!is_available(context, state, node.pool)) {
    if (node.state == Node::State::queued) log_event(actions, state, "waiting", pool.name, 1);
    state.fleet.wait(index);
    return;
  }
  const platforms::Delay boot_delay =
      scenario.boot_given ? scenario.provisioning.boot : pool.platform->boot(pool.instance());
  const Nanoseconds boot = draw(boot_delay, state.delays);
  state.fleet.grant(index, state.now, boot);
  // The provider finds out now that it must take this node back. That is a separate event, because a decision of the
  // policy may be in progress.
  if (state.pools[node.pool].capacity.limited() && known_capacity(context, state, node.pool).size() > 1)
    actions.schedule.push_back({state.now, ReclaimDue{node.pool}});
  actions.schedule.push_back(
      {state.now + boot + draw(scenario.provisioning.image_pull, state.delays), NodeReady{index}});
  draw_end_of_node(context, state, actions, index);
}

void retry_waiting(const RunContext& context, RunState& state, Actions& actions, std::size_t pool) {
  const std::vector<std::size_t> alive = state.fleet.alive();
  for (const std::size_t index : alive) {
    if (state.fleet[index].pool != pool || state.fleet[index].state != Node::State::waiting) continue;
    if (!is_available(context, state, pool)) return;  // then the other requests get no node either
    answer_request(context, state, actions, index);
  }
}

bool announce_reclaim(const RunContext& context, RunState& state, Actions& actions, std::size_t index,
                      Nanoseconds leaves) {
  const Node& node = state.fleet[index];
  if (!node.held() || node.leaves <= leaves) return false;
  const bool in_advance = leaves > state.now;
  const bool news = in_advance && !node.noticed;
  state.fleet.notice(index, leaves, in_advance);
  if (news) log_event(actions, state, "notice", context.scenario.pools[node.pool].name, 1);
  actions.schedule.push_back({leaves, NodeReclaimed{index}});
  // The checkpoint must be complete before the node goes, not as it goes.
  const Nanoseconds write_from = leaves - (checkpoint_write_time(context, state) + 1);
  const Checkpoints& checkpoints = context.scenario.checkpoints;
  if (checkpoints.on_notice && checkpoints.storage && write_from >= state.now)
    actions.schedule.push_back({write_from, FinalCheckpointDue{}});
  return news;
}

void remove_node(const RunContext& context, RunState& state, std::size_t index, bool lost) {
  const Node& node = state.fleet[index];
  if (node.granted != kNever)
    state.facts.gone_nodes_usd += held_usd(context.scenario.pools[node.pool], node, state.now);
  state.fleet.remove(index, state.now, lost);
}

std::vector<CapacityFrom> known_capacity(const RunContext& context, RunState& state, std::size_t pool) {
  Capacity& capacity = state.pools[pool].capacity;
  const auto from = [&](Nanoseconds at) { return CapacityFrom{at, static_cast<std::size_t>(capacity.at(at))}; };
  const Nanoseconds horizon = state.now + to_nanoseconds(context.scenario.pools[pool].notice);
  std::vector<CapacityFrom> known{from(state.now)};
  for (Nanoseconds at = capacity.next_after(state.now); at <= horizon; at = capacity.next_after(at))
    known.push_back(from(at));
  return known;
}

void schedule_capacity_change(const RunContext& context, RunState& state, Actions& actions, std::size_t pool) {
  Capacity& capacity = state.pools[pool].capacity;
  const Nanoseconds notice = to_nanoseconds(context.scenario.pools[pool].notice);
  Nanoseconds next = capacity.next_after(state.now);
  if (const Nanoseconds foreseen = capacity.next_after(state.now + notice); foreseen != kNever)
    next = std::min(next, foreseen - notice);
  actions.schedule.push_back({next, CapacityChanged{pool}});
}

double price_at(const ScenarioPool& pool, Nanoseconds now) {
  if (pool.prices) return pool.prices->at(to_seconds(now));
  return static_cast<double>(pool.price.per_hour.value) * 1e-6;
}

double spent_usd(const RunContext& context, const RunState& state) {
  double sum = state.facts.gone_nodes_usd;
  for (const std::size_t index : state.fleet.alive())
    if (const Node& node = state.fleet[index]; node.held())
      sum += held_usd(context.scenario.pools[node.pool], node, state.now);
  return sum;
}

}  // namespace ganymede::sim

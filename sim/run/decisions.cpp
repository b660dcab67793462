#include "sim/run/decisions.hpp"

#include <algorithm>
#include <tuple>

#include "sim/run/node_supply.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"

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

}  // namespace ganymede::sim

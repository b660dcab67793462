#include "sim/run/fleet.hpp"

#include <algorithm>

namespace ganymede::sim {

Fleet::Fleet(std::size_t pools) : lost_(pools, 0), held_(pools, 0), fresh_(pools, 0), members_(pools, 0) {}

std::size_t Fleet::add(std::size_t pool, Nanoseconds now) {
  Node node;
  node.pool = pool;
  node.requested = now;
  nodes_.push_back(node);
  alive_.push_back(nodes_.size() - 1);
  ++on_the_way_;
  return nodes_.size() - 1;
}

void Fleet::wait(std::size_t index) {
  Node& node = nodes_[index];
  if (node.state == Node::State::queued) --on_the_way_;
  node.state = Node::State::waiting;
}

void Fleet::grant(std::size_t index, Nanoseconds now, Nanoseconds boot) {
  Node& node = nodes_[index];
  if (node.state == Node::State::waiting) ++on_the_way_;
  node.state = Node::State::booting;
  node.granted = now;
  node.runs = now + boot;
  ++held_[node.pool];
  ++fresh_[node.pool];
}

void Fleet::make_ready(std::size_t index, Nanoseconds now) {
  nodes_[index].state = Node::State::ready;
  nodes_[index].readied = now;
  --on_the_way_;
}

void Fleet::notice(std::size_t index, Nanoseconds leaves, bool warned) {
  nodes_[index].noticed = true;
  nodes_[index].leaves = leaves;
  nodes_[index].warned = nodes_[index].warned || warned;
}

void Fleet::set_member(std::size_t index, bool member) {
  Node& node = nodes_[index];
  if (node.member != member) members_[node.pool] += member ? 1 : -1;
  node.member = member;
  if (member && !node.joined) {
    node.joined = true;
    --fresh_[node.pool];
  }
}

PoolCount Fleet::count(std::size_t pool) const {
  PoolCount count;
  count.lost = lost_[pool];
  for (const std::size_t index : alive_) {
    const Node& node = nodes_[index];
    if (node.pool != pool) continue;
    switch (node.state) {
      case Node::State::queued:
        ++count.queued;
        break;
      case Node::State::waiting:
        ++count.waiting;
        count.waiting_since = std::min(count.waiting_since, node.requested);
        break;
      case Node::State::booting:
        ++(node.noticed ? count.noticed : count.booting);
        break;
      case Node::State::ready:
        ++(node.noticed ? count.noticed : count.ready);
        break;
      case Node::State::gone:
        break;
    }
    count.members += node.member && !node.noticed ? 1 : 0;
  }
  return count;
}

void Fleet::remove(std::size_t index, Nanoseconds now, bool lost) {
  Node& node = nodes_[index];
  if (node.granted != kNever) node.gone = now;
  if (node.state == Node::State::queued || node.state == Node::State::booting) --on_the_way_;
  set_member(index, false);
  if (node.held()) --held_[node.pool];
  if (node.held() && !node.joined) --fresh_[node.pool];
  node.state = Node::State::gone;
  if (lost) ++lost_[node.pool];
  node.interrupted = lost && node.noticed;
  alive_.erase(std::find(alive_.begin(), alive_.end(), index));
}

}  // namespace ganymede::sim

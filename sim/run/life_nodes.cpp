// The nodes of a run: requested, granted, taken back, lost.

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/life.hpp"

namespace ganymede {

void Life::request(std::size_t pool, int nodes) {
  if (nodes <= 0) return;
  log("requested", scenario_.pools[pool].name, nodes);
  int wanted = nodes;
  for (const std::size_t index : fleet_.alive()) wanted += fleet_[index].pool == pool && !fleet_[index].noticed ? 1 : 0;
  capacity_[pool].want(wanted);
  for (int i = 0; i < nodes; ++i) {
    const std::size_t node = fleet_.add(pool, now_);
    const Nanoseconds queue = draw(scenario_.provisioning.queue, delays_);
    if (queue == 0)
      grant(node);
    else
      post(now_ + queue, Event::Kind::grant, node);
  }
}

bool Life::available(std::size_t pool) {
  if (now_ < empty_until_[pool]) return false;
  return !capacity_[pool].limited() || has_room(pool);
}

void Life::grant(std::size_t index) {
  const Node& node = fleet_[index];
  if (node.state != Node::State::queued && node.state != Node::State::waiting) return;  // given up meanwhile
  const ScenarioPool& pool = scenario_.pools[node.pool];
  if (!available(node.pool)) {
    if (node.state == Node::State::queued) log("waiting", pool.name, 1);
    fleet_.wait(index);
    return;
  }
  const bool own = !scenario_.boot_given;
  const Nanoseconds boot = draw(own ? pool.platform->boot(pool.instance()) : scenario_.provisioning.boot, delays_);
  fleet_.grant(index, now_, boot);
  // The provider learns now that it must take this node back; a decision may be under way, so that it is an event of
  // its own.
  if (capacity_[node.pool].limited() && known_capacity(node.pool).size() > 1)
    post(now_, Event::Kind::take_back, node.pool);
  post(now_ + boot + draw(scenario_.provisioning.image_pull, delays_), Event::Kind::ready, index);
  if (pool.lifetimes) {
    const Nanoseconds life = draw(*pool.lifetimes, lifetimes_[node.pool]);
    if (life != kNever) {
      const Nanoseconds notice = std::min(life, to_nanoseconds(pool.notice));
      post(now_ + life - notice, Event::Kind::notice, index);
    }
  }
  if (scenario_.faults.crash) {
    Lifetimes crashes;
    crashes.mean = *scenario_.faults.crash;
    const Nanoseconds life = draw(crashes, lifetimes_[node.pool]);
    if (life != kNever) post(now_ + life, Event::Kind::crash, index);
  }
}

void Life::grant_waiting(std::size_t pool) {
  const std::vector<std::size_t> alive = fleet_.alive();
  for (const std::size_t index : alive) {
    if (fleet_[index].pool != pool || fleet_[index].state != Node::State::waiting) continue;
    if (!available(pool)) return;  // nor is there one for the others
    grant(index);
  }
}

void Life::ready(std::size_t index) {
  const Node& node = fleet_[index];
  if (node.state != Node::State::booting) return;  // lost while it booted
  fleet_.make_ready(index, now_);
  if (started_) log("provisioned", scenario_.pools[node.pool].name, 1);
  // Nothing changes while others are on the way.
  if (fleet_.on_the_way() > 0) return;
  look();
  reconcile();
}

/// The provider takes a node back. True: it says so before, and the policy has not yet heard of it.
bool Life::warn(std::size_t index, Nanoseconds leaves) {
  const Node& node = fleet_[index];
  if (!node.held() || node.leaves <= leaves) return false;
  const bool news = leaves > now_ && !node.noticed;
  fleet_.notice(index, leaves, leaves > now_);
  if (news) log("notice", scenario_.pools[node.pool].name, 1);
  post(leaves, Event::Kind::taken, index);
  const Nanoseconds write = write_time() + 1;  // complete before, not as it goes
  if (scenario_.checkpoints.on_notice && scenario_.checkpoints.storage && leaves - write >= now_)
    post(leaves - write, Event::Kind::last_save, index);
  return news;
}

void Life::give_notice(std::size_t index) {
  if (warn(index, now_ + to_nanoseconds(scenario_.pools[fleet_[index].pool].notice))) look();
}

/// Before the noticed nodes go: where nobody stays to hold the weights, or the run cannot go on with fewer, a
/// checkpoint keeps them.
void Life::save_before_end() {
  if (state_ != State::training) return;
  bool some_stay = false;
  bool some_go = false;
  for (const std::size_t index : fleet_.alive())
    if (fleet_[index].member) (fleet_[index].noticed ? some_go : some_stay) = true;
  if (!some_go || (some_stay && decision_.elastic)) return;
  cut(false);
  pause(State::saving, write_time());
}

void Life::lose(std::size_t index, bool crash) {
  const Node& node = fleet_[index];
  if (!node.held()) return;  // released meanwhile
  const bool member = node.member;
  const bool warned = node.warned;
  const std::size_t pool = node.pool;
  bool others = false;
  for (const std::size_t other : fleet_.alive()) others = others || (other != index && fleet_[other].member);
  log(crash ? "crashed" : "lost", scenario_.pools[pool].name, 1);
  if (const auto& lifetimes = scenario_.pools[pool].lifetimes; !crash && lifetimes && lifetimes->back_after.si > 0) {
    const Nanoseconds back = now_ + to_nanoseconds(lifetimes->back_after * lifetimes_[pool].exponential());
    empty_until_[pool] = std::max(empty_until_[pool], back);
    post(back, Event::Kind::back, pool);
  }
  ++losses_;
  if (member) {
    // With notice the others hold the weights and go on; a crash, or the end of all, takes what is not durable along.
    const bool survives = others && warned && !crash && decision_.elastic;
    if (state_ == State::training) {
      cut(!survives);
    } else if (!survives) {
      ++generation_;
      training_.lose();
    }
    state_ = State::idle;
    loads_ = loads_ || !survives;
    lost_since_ = true;
    // All start anew.
    fleet_.remove(index, now_, true);
    for (const std::size_t other : fleet_.alive()) fleet_.set_member(other, false);
    if (survives && !crew().empty()) {
      start(loads_);
      grant_waiting(pool);
      look();
      return;
    }
    if (survives) {  // the policy wants none of those that hold the weights
      training_.lose();
      loads_ = true;
    }
  } else {
    fleet_.remove(index, now_, true);
  }
  // The room that it leaves is for those who wait already, before anybody else asks.
  grant_waiting(pool);
  look();
  reconcile();
}

void Life::inject(const InjectedEvent& event) {
  using Kind = InjectedEvent::Kind;
  if (event.kind != Kind::interruption && event.kind != Kind::crash) return slow(event);
  std::vector<std::size_t> held;
  for (const std::size_t index : fleet_.alive())
    if (fleet_[index].pool == event.pool && fleet_[index].held() && !fleet_[index].noticed) held.push_back(index);
  for (int i = 0; i < event.nodes && !held.empty(); ++i) {
    const std::size_t pick = picks_.below(held.size());
    const std::size_t index = held[pick];
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick));
    if (event.kind == Kind::crash)
      lose(index, true);
    else
      give_notice(index);
  }
}

}  // namespace ganymede

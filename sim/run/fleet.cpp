#include "sim/run/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/errors.hpp"
#include "sim/ledger/nanoseconds.hpp"

namespace ganymede {
namespace {

double in_hours(Nanoseconds time) { return to_seconds(time).si / 3600; }

/// The integral of a series over a time, in its unit times seconds.
double integral(const Series& series, Nanoseconds from, Nanoseconds to) {
  double sum = 0;
  Seconds at = to_seconds(from);
  const Seconds end = to_seconds(to);
  while (at < end) {
    const Seconds next = series.next_after(at);
    const Seconds until = next.si < 0 ? end : std::min(next, end);
    sum += series.at(at) * (until - at).si;
    at = until;
  }
  return sum;
}

}  // namespace

Fleet::Fleet(const Scenario& scenario)
    : scenario_(scenario),
      lost_(scenario.pools.size(), 0),
      fresh_(scenario.pools.size(), 0),
      members_(scenario.pools.size(), 0) {}

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

void Fleet::grant(std::size_t index, Nanoseconds now) {
  Node& node = nodes_[index];
  if (node.state == Node::State::waiting) ++on_the_way_;
  node.state = Node::State::booting;
  node.granted = now;
  ++fresh_[node.pool];
}

void Fleet::make_ready(std::size_t index) {
  nodes_[index].state = Node::State::ready;
  --on_the_way_;
}

void Fleet::notice(std::size_t index, bool warned) {
  nodes_[index].noticed = true;
  nodes_[index].warned = warned;
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
  if (node.granted != kNever) {
    node.gone = now;
    const ScenarioPool& pool = scenario_.pools[node.pool];
    spent_ += pool.prices ? integral(*pool.prices, node.granted, now) / 3600
                          : in_hours(now - node.granted) * price(node.pool, now);
  }
  if (node.state == Node::State::queued || node.state == Node::State::booting) --on_the_way_;
  set_member(index, false);
  if (node.held() && !node.joined) --fresh_[node.pool];
  node.state = Node::State::gone;
  if (lost) ++lost_[node.pool];
  alive_.erase(std::find(alive_.begin(), alive_.end(), index));
}

double Fleet::price(std::size_t pool, Nanoseconds now) const {
  const ScenarioPool& of = scenario_.pools[pool];
  if (of.prices) return of.prices->at(to_seconds(now));
  return static_cast<double>(of.price.per_hour.value) * 1e-6;
}

double Fleet::spent_usd(Nanoseconds now) const {
  double sum = spent_;
  for (const std::size_t index : alive_)
    if (nodes_[index].held()) {
      const Node& node = nodes_[index];
      const ScenarioPool& pool = scenario_.pools[node.pool];
      sum += pool.prices ? integral(*pool.prices, node.granted, now) / 3600
                         : in_hours(now - node.granted) * price(node.pool, now);
    }
  return sum;
}

Nanoseconds Fleet::held(std::size_t pool, Nanoseconds end) const {
  Nanoseconds sum = 0;
  for (const Node& node : nodes_)
    if (node.pool == pool && node.granted != kNever) sum += std::min(node.gone, end) - node.granted;
  return sum;
}

Bill Fleet::bill(Nanoseconds end, double shift) const {
  Bill bill;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const ScenarioPool& pool = scenario_.pools[p];
    const BillingRule rule{pool.platform->billing.granularity, pool.platform->billing.minimum};
    // Nodes that were rented equally long are one entry.
    std::map<std::pair<Nanoseconds, Nanoseconds>, std::int64_t> rented;  // by grant (if it matters) and time
    for (const Node& node : nodes_) {
      if (node.pool != p || node.granted == kNever) continue;
      Nanoseconds time = std::min(node.gone, end) - node.granted;
      if (node.gone >= end && shift != 0)
        time = std::max<Nanoseconds>(0, time + static_cast<Nanoseconds>(shift * kNanosecondsPerSecond));
      ++rented[{pool.prices ? node.granted : 0, time}];
    }
    if (rented.empty()) continue;
    BillItem item{.item = "instance-hours",
                  .pool = pool.name,
                  .quantity = 0,
                  .unit = "h",
                  .unit_price = {pool.price.per_hour.value},
                  .usd = {}};
    for (const auto& [entry, nodes] : rented) {
      const auto& [granted, time] = entry;
      if (!pool.prices) {
        const BillItem one = instance_hours(pool.name, nodes, pool.price.per_hour, to_seconds(time), rule);
        item.quantity += one.quantity;
        if (__builtin_add_overflow(item.usd.value, one.usd.value, &item.usd.value))
          throw Failure("the bill's total does not fit");
        continue;
      }
      const Seconds billed = billed_time(to_seconds(time), rule);
      const double usd = integral(*pool.prices, granted, granted + to_nanoseconds(billed)) / 3600;
      item.quantity += static_cast<double>(nodes) * billed.si / 3600;
      item.usd += MicroUsd{nodes * std::llround(usd * 1e6)};
    }
    if (pool.prices)
      item.unit_price = {item.quantity > 0 ? std::llround(static_cast<double>(item.usd.value) / item.quantity) : 0};
    bill.items.push_back(std::move(item));
  }
  return bill;
}

std::optional<double> Fleet::carbon(std::size_t pool, Nanoseconds end) const {
  const ScenarioPool& of = scenario_.pools[pool];
  if (!of.carbon) {
    const Region* region = of.platform->region(of.pool.region);
    return region && region->carbon ? std::optional<double>(region->carbon->si) : std::nullopt;
  }
  double grams = 0, seconds = 0;
  for (const Node& node : nodes_)
    if (node.pool == pool && node.granted != kNever) {
      grams += integral(*of.carbon, node.granted, std::min(node.gone, end));
      seconds += to_seconds(std::min(node.gone, end) - node.granted).si;
    }
  return seconds > 0 ? grams / seconds : of.carbon->at(Seconds{0});
}

}  // namespace ganymede

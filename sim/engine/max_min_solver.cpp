#include "sim/engine/max_min_solver.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ganymede::sim {
namespace {

/// Levels whose relative difference is at most this are the same.
constexpr double kSameLevel = 1e-13;

}  // namespace

MaxMinSolver::MaxMinSolver(std::vector<double> link_bandwidths) {
  links_.resize(link_bandwidths.size());
  for (std::size_t i = 0; i < links_.size(); ++i) links_[i].bandwidth = link_bandwidths[i];
}

void MaxMinSolver::enqueue(int index) {
  LinkState& link = links_[static_cast<std::size_t>(index)];
  if (link.queued) return;
  link.queued = true;
  queue_.push_back(index);
}

int MaxMinSolver::start(double now, double bytes, double limit, const std::vector<LinkUse>& uses) {
  assert(!uses.empty());
  if (free_.empty()) {
    free_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int index = free_.back();
  free_.pop_back();
  Flow& flow = flows_[static_cast<std::size_t>(index)];
  flow = {bytes, now, 0, limit, &uses, true};
  touched_.push_back(index);
  for (const LinkUse& use : uses) {
    links_[static_cast<std::size_t>(use.link)].flows.emplace_back(index, use.weight);
    enqueue(use.link);
  }
  return index;
}

void MaxMinSolver::finish(double now, int index) {
  Flow& flow = flows_[static_cast<std::size_t>(index)];
  flow.remaining = 0;
  flow.since = now;
  for (const LinkUse& use : *flow.uses) {
    enqueue(use.link);
    auto& on_link = links_[static_cast<std::size_t>(use.link)].flows;
    *std::find_if(on_link.begin(), on_link.end(), [&](const auto& one) { return one.first == index; }) = on_link.back();
    on_link.pop_back();
  }
  flow.uses = nullptr;
  free_.push_back(index);
}

double MaxMinSolver::rate(int index) const { return flows_[static_cast<std::size_t>(index)].rate; }

double MaxMinSolver::remaining_bytes(double now, int index) const {
  const Flow& flow = flows_[static_cast<std::size_t>(index)];
  return std::max(0.0, flow.remaining - (now - flow.since) * flow.rate);
}

double MaxMinSolver::end_time(int index) const {
  const Flow& flow = flows_[static_cast<std::size_t>(index)];
  return flow.since + flow.remaining / flow.rate;
}

double MaxMinSolver::rate_bound(const Flow& flow, int except, int and_except) const {
  double least = flow.limit;
  for (const LinkUse& use : *flow.uses)
    if (use.link != except && use.link != and_except)
      least = std::min(least, links_[static_cast<std::size_t>(use.link)].level);
  return least;
}

/// The level at which the sum of weight x min(level, bound) over the link's flows is its bandwidth; unbounded if the
/// bounds keep the sum below it.
double MaxMinSolver::fair_level(int index) {
  const LinkState& link = links_[static_cast<std::size_t>(index)];
  demands_.clear();
  double sum = 0, weights = 0;
  for (const auto& [number, weight] : link.flows) {
    demands_.emplace_back(rate_bound(flows_[static_cast<std::size_t>(number)], index, index), weight);
    sum += demands_.back().first * demands_.back().second;
    weights += demands_.back().second;
  }
  if (sum <= link.bandwidth) return kUnbounded;
  std::sort(demands_.begin(), demands_.end());
  double left = link.bandwidth, below = 0;
  std::size_t i = 0;
  for (; i + 1 < demands_.size() && demands_[i].first * weights <= left; ++i) {
    const auto& [demand, weight] = demands_[i];
    left -= demand * weight;
    weights = std::max(weights - weight, demands_[i + 1].second);
    below = demand;
  }
  // The level lies between two neighbouring demands. Where demands are equal, what rounding leaves of `left` and
  // `weights` may say otherwise, and then the levels of two links would follow each other for ever.
  return std::clamp(left / weights, below, demands_[i].first);
}

/// Enqueues the links for which a flow's bound has changed with the level of this link.
void MaxMinSolver::propagate(int index, double level_before) {
  const LinkState& link = links_[static_cast<std::size_t>(index)];
  for (const auto& [number, weight] : link.flows) {
    Flow& flow = flows_[static_cast<std::size_t>(number)];
    if (!flow.touched) {
      flow.touched = true;
      touched_.push_back(number);
    }
    for (const LinkUse& use : *flow.uses) {
      if (use.link == index) continue;
      const double others = rate_bound(flow, index, use.link);
      if (std::min(others, level_before) != std::min(others, link.level)) enqueue(use.link);
    }
  }
}

void MaxMinSolver::set_rate(double now, int index) {
  Flow& flow = flows_[static_cast<std::size_t>(index)];
  flow.touched = false;
  if (flow.uses == nullptr) return;  // finished since
  const double rate = rate_bound(flow, -1, -1);
  if (flow.rate == rate) return;  // then its end stays the same to the last bit
  flow.remaining = remaining_bytes(now, index);
  flow.since = now;
  flow.rate = rate;
  changed_.push_back(index);
}

void MaxMinSolver::update_rates(double now) {
  while (!queue_.empty()) {
    const int index = queue_.front();
    queue_.pop_front();
    LinkState& link = links_[static_cast<std::size_t>(index)];
    link.queued = false;
    const double before = link.level, level = fair_level(index);
    if (before == level || (std::isfinite(level) && std::abs(before - level) <= kSameLevel * level)) continue;
    link.level = level;
    propagate(index, before);
  }
  for (const int index : touched_) set_rate(now, index);
  touched_.clear();
}

}  // namespace ganymede::sim

// What the policy sees of a run, and what becomes of its decisions.

#include <algorithm>
#include <cmath>

#include "sim/run/life.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede {
namespace {

/// Units of the target a second, under a segment.
double rate_of(const Segment& segment) { return segment.per_step / segment.steps->mean.si; }

}  // namespace

PoolView Life::view_of(std::size_t p) const {
  const ScenarioPool& pool = scenario_.pools[p];
  const PoolCount count = fleet_.count(p);
  PoolView view;
  view.market = pool.pool.market;
  view.gpus_per_node = pool.pool.gpus_per_node;
  view.requested = pool.pool.nodes;
  view.most = pool.max_nodes;
  view.ready = count.ready;
  view.starting = count.booting;
  view.waiting = count.waiting + count.queued;
  view.noticed = count.noticed;
  view.lost = count.lost;
  if (count.waiting > 0) view.refused_for = to_seconds(now_ - count.waiting_since);
  view.usd_per_hour = fleet_.price(p, now_);
  view.speed = speed_[p];
  if (pool.carbon)
    view.g_per_kwh = pool.carbon->at(to_seconds(now_));
  else if (const Region* region = pool.platform->region(pool.pool.region); region && region->carbon)
    view.g_per_kwh = region->carbon->si;
  if (pool.gpu().peak) view.gpu_watts = pool.gpu().peak->si * pool.instance().gpus;
  view.usd_to_enter = usd_to_enter(p);
  return view;
}

Observation Life::observe() const {
  Observation seen;
  seen.now = to_seconds(now_);
  seen.deadline = scenario_.deadline;
  if (scenario_.budget) seen.budget_usd = static_cast<double>(scenario_.budget->value) * 1e-6;
  seen.spent_usd = fleet_.spent_usd(now_);
  seen.done = training_.done(now_);
  seen.left = std::max(0.0, target_ - seen.done);
  seen.training = training_.under_way();
  seen.since_durable = training_.at_risk(now_);
  seen.restart = scenario_.provisioning.framework_start.median + scenario_.provisioning.communicator_start.median +
                 to_seconds(read_time());
  seen.boot = scenario_.provisioning.queue.median + scenario_.provisioning.image_pull.median +
              (scenario_.boot_given ? scenario_.provisioning.boot.median
                                    : scenario_.pools[0].platform->boot(scenario_.pools[0].instance()).median);
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) seen.pools.push_back(view_of(p));
  if (!training_.under_way()) return seen;
  const Segment& segment = training_.segment();
  const StepDistribution& steps = *segment.steps;
  PoolStep sum;
  double vcpus = 0;
  for (std::size_t p = 0; p < steps.pools.size(); ++p) {
    sum.exposed += steps.pools[p].exposed;
    sum.straggler += steps.pools[p].straggler;
    sum.stall += steps.pools[p].stall;
    sum.device += steps.pools[p].device;
    vcpus += segment.configuration.nodes[p] * scenario_.pools[p].instance().vcpus;
  }
  const double all = steps.mean.si * steps.workers;
  seen.rate = rate_of(segment);
  seen.training_gpus = steps.workers;
  seen.step_s = steps.mean.si;
  seen.gpu_busy = std::min(1.0, sum.device.si / all);
  seen.exposed = sum.exposed.si / all;
  seen.straggler = sum.straggler.si / all;
  seen.input_stall = sum.stall.si / all;
  if (vcpus > 0) seen.cpu = std::min(1.0, steps.host.si / (steps.mean.si * vcpus));
  if (segment.configuration.cached) seen.host_memory = std::min(1.0, cache_share(scenario_));
  seen.memory = gpu_memory(scenario_.trace.batches[scenario_.stages[segment.configuration.stage]]).si /
                scenario_.pools[0].gpu().memory.si;
  return seen;
}

void Life::look() {
  if (done_) return;
  const Decision decision = controller_->decide(observe());
  apply(decision);
  reconcile();
}

/// Gives up so many nodes: those that nobody has granted, then those that boot, then the youngest.
void Life::release(std::size_t pool, int nodes) {
  const auto rank = [&](std::size_t index) {
    const Node& node = fleet_[index];
    return node.state == Node::State::waiting || node.state == Node::State::queued ? 0
           : node.state == Node::State::booting                                    ? 1
           : node.member                                                           ? 3
                                                                                   : 2;
  };
  std::vector<std::size_t> mine;
  for (const std::size_t index : fleet_.alive())
    if (fleet_[index].pool == pool && !fleet_[index].noticed) mine.push_back(index);
  std::stable_sort(mine.begin(), mine.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) != rank(b) ? rank(a) < rank(b) : a > b; });
  int held = 0;
  for (int i = 0; i < nodes; ++i) {
    const std::size_t index = mine[static_cast<std::size_t>(i)];
    held += fleet_[index].held() ? 1 : 0;
    fleet_.remove(index, now_, false);
  }
  if (held > 0) log("released", scenario_.pools[pool].name, held);
}

void Life::apply(const Decision& decision) {
  const bool other_share = decision.cpus != decision_.cpus || decision.memory != decision_.memory;
  decision_ = decision;
  if (state_ == State::saving) return;  // heard again when the checkpoint is written
  std::vector<int> surplus(scenario_.pools.size(), 0);
  int members_stay = 0, members_go = 0;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const PoolCount count = fleet_.count(p);
    const int have = count.queued + count.waiting + count.booting + count.ready;
    surplus[p] = std::max(0, have - decision.nodes[p]);
    request(p, decision.nodes[p] - have);
    // Members leave only when nobody else is left to leave.
    const int go = std::clamp(surplus[p] - (have - count.members), 0, count.members);
    members_go += go;
    members_stay += count.members - go;
  }
  const bool members_change = members_go > 0;
  if (members_change && state_ == State::training) {
    cut(false);
    // Where nobody stays to hold the weights a checkpoint keeps them, before anybody goes.
    if (members_stay == 0) {
      if (scenario_.checkpoints.storage && training_.done(now_) > training_.durable())
        return pause(State::saving, write_time());
    }
  }
  for (std::size_t p = 0; p < surplus.size(); ++p)
    if (surplus[p] > 0) release(p, surplus[p]);
  // Limits of processors and memory change while it runs.
  if (other_share && !members_change && state_ == State::training) change_pace();
  if (!members_change || done_) return;
  if (members_stay == 0) {
    if (training_.done(now_) > training_.durable()) training_.lose();
    ++generation_;
    state_ = State::idle;
    loads_ = true;
    return;
  }
  // The others start again among themselves.
  ++generation_;
  state_ = State::idle;
  start(loads_);
}

}  // namespace ganymede

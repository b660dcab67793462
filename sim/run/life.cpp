#include "sim/run/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "common/errors.hpp"
#include "sim/ledger/nanoseconds.hpp"
#include "sim/run/run_warnings.hpp"
#include "sim/run/worker_models.hpp"

namespace ganymede {
namespace {

constexpr Nanoseconds kLongest = 9'000'000'000 * static_cast<Nanoseconds>(1'000'000'000);  // 285 years
/// So many starts in a row that made nothing durable, and so many looks of a policy at a run that does nothing: more
/// would not help.
constexpr std::int64_t kTriesAtMost = 2000;
constexpr std::int64_t kIdleLooksAtMost = 10'000;
constexpr Nanoseconds kDay = static_cast<Nanoseconds>(86'400) * 1'000'000'000;
constexpr Nanoseconds kIdleAtMost = 30 * kDay;

}  // namespace

Life::Life(const Scenario& scenario, StepTimes& times, std::unique_ptr<Controller> controller)
    : scenario_(scenario),
      times_(times),
      controller_(controller ? std::move(controller) : make_controller(scenario)),
      fleet_(scenario),
      training_(scenario),
      delays_(scenario.seed, "run/delays"),
      picks_(scenario.seed, "run/picks"),
      slow_nodes_(scenario.seed, "run/slowdowns"),
      empty_until_(scenario.pools.size(), 0),
      away_(scenario.pools.size(), false) {
  for (const auto& pool : scenario.pools) {
    lifetimes_.emplace_back(scenario.seed, "run/lifetimes/" + pool.name);
    capacity_.emplace_back(scenario, pool);
    // Pools that the scenario asks for have their data; one that a policy may use besides has it where it was.
    away_[speed_.size()] = pool.pool.nodes == 0 && pool.pool.region != scenario.pools[0].pool.region;
    speed_.push_back(times.known(0, 0).mean_s / times.known(speed_.size(), 0).mean_s);
  }
  target_ = static_cast<double>(scenario.target == Target::steps ? scenario.steps : scenario.images);
  draw_stages();
}

void Life::draw_stages() {
  RandomStream random(scenario_.seed, "run/stages");
  double sum = 0;
  for (const double share : scenario_.stage_shares) {
    sum += share * (1 + scenario_.stage_variation * (2 * random.uniform() - 1));
    stage_ends_.push_back(sum);
  }
  for (double& end : stage_ends_) end *= target_ / sum;
  stage_ends_.back() = target_;
}

/// What rounding may leave of a target: a small part of a step.
double Life::slack() const {
  if (scenario_.target == Target::steps) return 1e-5;
  const std::vector<int> members = fleet_.members();
  double workers = 1;
  for (std::size_t p = 0; p < members.size(); ++p) workers += members[p] * scenario_.pools[p].pool.gpus_per_node;
  return 1e-5 * scenario_.batch().batch * workers;
}

std::size_t Life::stage_at(double done) const {
  std::size_t stage = 0;
  while (stage + 1 < stage_ends_.size() && done >= stage_ends_[stage] - slack()) ++stage;
  return stage;
}

void Life::post(Nanoseconds at, Event::Kind kind, std::size_t index, std::uint64_t generation) {
  if (at < kLongest) queue_.push({at, order_++, kind, index, generation});
}

void Life::log(std::string what, std::string pool, int nodes, std::string detail, std::int64_t times) {
  if (events_.size() == kMaxListedEvents) {
    events_truncated_ = true;
    events_.push_back({to_seconds(now_), "further events are not listed", "", 0, "", 1});
  }
  if (events_.size() > kMaxListedEvents) return;
  if (!events_.empty()) {
    RunEvent& last = events_.back();
    if (last.at == to_seconds(now_) && last.what == what && last.pool == pool && last.detail == detail) {
      last.nodes += nodes;
      return;
    }
  }
  events_.push_back({to_seconds(now_), std::move(what), std::move(pool), nodes, std::move(detail), times});
}

void Life::never(const std::string& why) const {
  throw Infeasible(fmt::format("{}: this run never finishes: {} ({:.1f} % are done after {})", scenario_.file, why,
                               100 * training_.done(now_) / target_, to_string(to_seconds(now_))));
}

void Life::run() {
  for (const auto kind : {Event::Kind::slow_node, Event::Kind::slow_network, Event::Kind::slow_storage}) schedule(kind);
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p)
    if (capacity_[p].limited()) capacity_changed(p);
  for (std::size_t i = 0; i < scenario_.faults.events.size(); ++i)
    post(to_nanoseconds(scenario_.faults.events[i].at), Event::Kind::injected, i);
  look();
  if (scenario_.policy.policy->periodic) post(to_nanoseconds(scenario_.policy.every), Event::Kind::look);
  while (!done_) {
    if (queue_.empty()) {
      std::string waits;
      for (std::size_t p = 0; p < scenario_.pools.size(); ++p)
        if (const PoolCount count = fleet_.count(p); count.waiting > 0)
          waits +=
              fmt::format("{}{} more of \"{}\"", waits.empty() ? "" : " and ", count.waiting, scenario_.pools[p].name);
      never(waits.empty() ? "its policy holds nothing that could train"
                          : "it waits for " + waits + ", which never come");
    }
    const Event event = queue_.top();
    queue_.pop();
    const bool stale = event.generation != 0 && event.generation != generation_;
    if (stale) continue;
    now_ = event.at;
    account_waiting();
    check_hope(event);
    handle(event);
  }
}

/// A run without progress is given up, so that it does not go on for ever: capacity that is drawn never ends.
void Life::check_hope(const Event& event) {
  if (state_ != State::idle) idle_since_ = now_;
  if (now_ - idle_since_ > kIdleAtMost)
    never(fmt::format("for {} days it never had the nodes that it needs all at once", kIdleAtMost / kDay));
  if (state_ == State::training) idle_looks_ = 0;
  if (event.kind == Event::Kind::look && state_ == State::idle && ++idle_looks_ > kIdleLooksAtMost)
    never("its policy lets it wait");
}

void Life::handle(const Event& event) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::grant:
      return grant(event.index);
    case Kind::ready:
      return ready(event.index);
    case Kind::notice:
      return give_notice(event.index);
    case Kind::last_save:
      return save_before_end();
    case Kind::taken:
      return lose(event.index, false);
    case Kind::crash:
      return lose(event.index, true);
    case Kind::capacity:
      return capacity_changed(event.index);
    case Kind::take_back:
      return take_back(event.index);
    case Kind::back:
      return grant_waiting(event.index);
    case Kind::resume:
      return resume();
    case Kind::reached:
      return reached();
    case Kind::slow_node:
    case Kind::slow_network:
    case Kind::slow_storage:
      return slowdown_came(event.kind);
    case Kind::recovered:
      std::erase_if(slow_, [&](const Slow& slow) { return slow.until <= now_; });
      log("recovered");
      if (state_ == State::training) change_pace();
      return;
    case Kind::injected:
      return inject(scenario_.faults.events[event.index]);
    case Kind::out_of_credits:
      credits_left_ = false;
      log("burst credits used up");
      if (state_ == State::training) change_pace();
      return;
    case Kind::look:
      post(now_ + to_nanoseconds(scenario_.policy.every), Kind::look);
      return look();
  }
}

/// What it costs to move dataset and checkpoint to a region where they are not yet.
double Life::usd_to_enter(std::size_t pool) const {
  const auto link = std::find_if(scenario_.links.begin(), scenario_.links.end(),
                                 [&](const PoolLink& of) { return of.a == pool || of.b == pool; });
  if (!away_[pool] || link == scenario_.links.end()) return 0;
  const double bytes =
      static_cast<double>(scenario_.dataset.images) * scenario_.dataset.bytes_per_image * scenario_.input.compressed +
      scenario_.checkpoints.bytes.si;
  return bytes / 1e9 * link->usd_per_gb;
}

/// Starts the training program on the nodes that are to train; there is at least one.
void Life::start(bool load) {
  Nanoseconds length = draw(scenario_.provisioning.framework_start, delays_);
  int nodes = 0;
  const std::vector<std::size_t> chosen = crew();
  for (const std::size_t index : fleet_.alive()) fleet_.set_member(index, false);
  for (const std::size_t index : chosen) {
    const Node& node = fleet_[index];
    fleet_.set_member(index, true);
    ++nodes;
    moved_usd_ += usd_to_enter(node.pool);
    away_[node.pool] = false;
  }
  if (nodes > 1 || scenario_.pools[0].pool.gpus_per_node > 1)
    length += draw(scenario_.provisioning.communicator_start, delays_);
  if (started_ && !load) log("resized", "", nodes);
  const Nanoseconds loading = load && training_.durable() > 0 ? read_time() : 0;
  pause(State::starting, length + loading);
  load_from_ = pause_end_ - loading;
  if (load) {
    if (tried_durable_ == training_.durable() && ++tries_ > kTriesAtMost)
      never(fmt::format("{} starts in a row were lost before anything of them was durable{}", kTriesAtMost,
                        scenario_.checkpoints.every == Checkpoints::Every::never
                            ? "; it writes no checkpoints"
                            : "; checkpoints are too far apart for how often nodes are lost"));
    if (tried_durable_ != training_.durable()) tries_ = 0;
    tried_durable_ = training_.durable();
  }
  if (length + loading == 0) resume();
}

/// Who would train now: of each pool as many ready nodes as the policy wants; and while these are too few, nodes under
/// notice, of whatever pool: the policy may have turned to another already.
std::vector<std::size_t> Life::crew() const {
  std::vector<std::size_t> chosen;
  std::vector<int> wanted = decision_.nodes;
  int missing = 0;
  for (const int nodes : wanted) missing += nodes;
  for (const bool noticed : {false, true})
    for (const std::size_t index : fleet_.alive()) {
      const Node& node = fleet_[index];
      if (node.state != Node::State::ready || node.noticed != noticed || missing == 0) continue;
      if (!noticed && wanted[node.pool]-- <= 0) continue;
      --missing;
      chosen.push_back(index);
    }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// Who is ready trains, if the policy has it so and nobody is on the way.
void Life::reconcile() {
  if (done_ || state_ == State::saving || state_ == State::starting) return;
  const bool on_the_way = fleet_.on_the_way() > 0;
  std::size_t wanted = 0;
  for (const int nodes : decision_.nodes) wanted += static_cast<std::size_t>(nodes);
  const std::vector<std::size_t> chosen = crew();
  if (state_ == State::training) {
    if (decision_.pause) return cut(false);
    const bool all_train =
        std::all_of(chosen.begin(), chosen.end(), [&](std::size_t index) { return fleet_[index].member; });
    if (all_train || on_the_way) return;
    cut(false);
    return start(false);
  }
  if (decision_.pause || chosen.empty()) return;
  if (decision_.elastic ? on_the_way : chosen.size() < wanted) return;
  start(loads_ || !started_);
}

/// Rented time between the last event and this one in which nothing trained; what training takes is accounted when its
/// segment ends, and what nobody accounts is idle.
void Life::account_waiting() {
  if (accounted_ == now_) return;
  const Nanoseconds loading =
      state_ == State::starting ? std::max<Nanoseconds>(0, now_ - std::max(accounted_, load_from_)) : 0;
  const Nanoseconds time = now_ - accounted_;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const ScenarioPool& pool = scenario_.pools[p];
    Ledger& ledger = training_.ledger(p);
    ledger.add(GpuUse::provisioning, GpuNanoseconds{time} * fleet_.fresh(p) * pool.instance().gpus);
    if (state_ == State::starting) {
      const GpuNanoseconds gpus = GpuNanoseconds{fleet_.training(p)} * pool.pool.gpus_per_node;
      ledger.add(GpuUse::provisioning, gpus * (time - loading));
      ledger.add(GpuUse::checkpoint, gpus * loading);
    }
    if (state_ == State::saving)
      ledger.add(GpuUse::checkpoint, GpuNanoseconds{time} * fleet_.training(p) * pool.pool.gpus_per_node);
  }
  accounted_ = now_;
}

void Life::slow(const InjectedEvent& event) {
  slow_.push_back({event.kind, event.factor, event.nodes, now_ + to_nanoseconds(event.lasts)});
  post(slow_.back().until, Event::Kind::recovered);
  const char* what = event.kind == InjectedEvent::Kind::straggler ? "straggler"
                     : event.kind == InjectedEvent::Kind::network ? "network slower"
                                                                  : "storage slower";
  log(what, "", event.kind == InjectedEvent::Kind::straggler ? event.nodes : 0,
      fmt::format("factor {:g}", event.factor));
  if (state_ == State::training) change_pace();
}

/// When the next slowdown of a kind comes; of all nodes that there may be, for stragglers.
void Life::schedule(Event::Kind kind) {
  const Faults& faults = scenario_.faults;
  const auto& slowdown = kind == Event::Kind::slow_node      ? faults.straggler
                         : kind == Event::Kind::slow_network ? faults.network
                                                             : faults.storage;
  if (!slowdown) return;
  int count = 0;
  for (const auto& pool : scenario_.pools) count += pool.most;
  const double wait = slowdown->every.si / (kind == Event::Kind::slow_node ? count : 1) * slow_nodes_.exponential();
  if (wait < 8e9) post(now_ + to_nanoseconds(Seconds{wait}), kind);
}

void Life::slowdown_came(Event::Kind kind) {
  using Kind = InjectedEvent::Kind;
  schedule(kind);
  const Faults& faults = scenario_.faults;
  if (kind == Event::Kind::slow_network)
    return slow({Kind::network, {}, 0, 1, faults.network->factor, faults.network->lasts});
  if (kind == Event::Kind::slow_storage)
    return slow({Kind::storage, {}, 0, 1, faults.storage->factor, faults.storage->lasts});
  std::uint64_t most = 0, training = 0;
  for (const auto& pool : scenario_.pools) most += static_cast<std::uint64_t>(pool.most);
  for (const int members : fleet_.members()) training += static_cast<std::uint64_t>(members);
  // What falls on a node that is not there hits nobody.
  if (slow_nodes_.below(most) < training)
    slow({Kind::straggler, {}, 0, 1, faults.straggler->factor, faults.straggler->lasts});
}

std::vector<const StepDistribution*> Life::used() const {
  std::vector<std::pair<double, const StepDistribution*>> by_steps;
  for (const auto& [steps, count] : used_) by_steps.emplace_back(-count, steps);
  std::sort(by_steps.begin(), by_steps.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->mean < b.second->mean;
  });
  std::vector<const StepDistribution*> used;
  for (const auto& [count, steps] : by_steps) used.push_back(steps);
  return used;
}

RunRecord Life::record() {
  RunRecord record;
  record.end = now_;
  for (std::size_t i = 0; i < fleet_.size(); ++i) record.nodes.push_back(fleet_[i]);
  record.trained = trained_;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    record.ledgers.push_back(training_.ledger(p));
    record.device_s.push_back(training_.device_s(p));
  }
  record.totals = training_.totals();
  record.error = training_.error();
  record.steps = training_.steps();
  record.images = training_.images();
  record.lost_training = training_.lost();
  record.losses = losses_;
  record.most_gpus = most_gpus_;
  record.moved_usd = moved_usd_;
  record.nodes_usd = fleet_.spent_usd(now_);
  record.distributions = used();
  record.events = events_;
  record.events_truncated = events_truncated_;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    record.workloads.emplace_back();
    if (held_time(record, p) > 0) record.workloads[p] = times_.known(p, scenario_.stages.size() - 1);
  }
  return record;
}

RunRecord simulate_run(const Scenario& scenario, StepTimes& times) {
  Life life(scenario, times);
  life.run();
  return life.record();
}

}  // namespace ganymede

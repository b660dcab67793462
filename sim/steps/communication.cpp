#include "sim/steps/communication.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/engine/folded_engine.hpp"

namespace ganymede {

namespace {

/// Some seconds a step.
constexpr double kFlowsOfAStep = 4e6;

Seconds time_of(const FabricGraph& fabric, const Schedule& schedule, const std::vector<int>& members) {
  const Job job{
      {Communicator{members, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const auto times = run_folded(fabric, {&job, 1}).times;
  return *std::max_element(times[0][0][0].done.begin(), times[0][0][0].done.end());
}

/// The even ranks of `all`, which become `members`, as ranks of their own. Switches that reduce and rings that use all
/// links of a node are left out: they are of all GPUs of a node.
Topology first_of_pairs(const Topology& all, std::vector<int>& members) {
  Topology firsts = flat(0);
  firsts.rails = all.rails;
  firsts.nccl = all.nccl;
  for (int rank = 0; rank + 1 < all.ranks; rank += 2) {
    if (members.empty() || all.node_of(rank) != all.node_of(members.back())) firsts.node_sizes.push_back(0);
    ++firsts.node_sizes.back();
    members.push_back(rank);
  }
  firsts.ranks = static_cast<int>(members.size());
  firsts.gpus_per_node = *std::max_element(firsts.node_sizes.begin(), firsts.node_sizes.end());
  const auto smaller = std::find_if(firsts.node_sizes.begin(), firsts.node_sizes.end(),
                                    [&](int size) { return size != firsts.gpus_per_node; });
  if (firsts.node_sizes.end() - smaller <= 1) firsts.node_sizes.clear();  // as Topology has it
  return firsts;
}

}  // namespace

FabricGraph fabric_of(const Site& site) {
  std::vector<NodeGroup> groups;
  for (const auto& group : site.groups) groups.push_back({group.instance, group.nodes, group.gpus_per_node});
  return {*site.platform, groups};
}

SiteCommunication::SiteCommunication(const Site& site, const Scheme& scheme, std::span<const std::int64_t> buckets,
                                     bool message, bool jitter, bool pairs)
    : fabric_(fabric_of(site)) {
  const Topology topology =
      pairs && fabric_.ranks() > 2 ? first_of_pairs(fabric_.topology(), members_) : fabric_.topology();
  for (const std::int64_t bytes : buckets)
    schedules_.push_back(scheme.plan({topology, bytes, Collective::all_reduce, ""}));
  measure_load();
  if (!members_.empty()) {
    for (const Schedule& schedule : schedules_) after_last_.push_back(time_of(fabric_, schedule, members_));
    return;
  }
  if (message) {
    engine_ = std::make_unique<CommunicationEngine>(fabric_);
    return;
  }
  const Seconds launch = site.platform->gpu_of(*site.groups.front().instance).launch;
  std::vector<Seconds> proved;
  for (const Schedule& schedule : schedules_) {
    if (schedule.rounds() == 0) {
      proved.push_back(launch);
    } else if (const auto time = time_after_last_arrival(fabric_, schedule)) {
      proved.push_back(*time);
    }
  }
  if (proved.size() == schedules_.size()) {
    after_last_ = std::move(proved);
  } else if (jitter && messages_ > kFlowsOfAStep) {
    late_ = true;
    for (const Schedule& schedule : schedules_) after_last_.push_back(time_of(fabric_, schedule, members_));
  }
}

Seconds SiteCommunication::time(std::size_t bucket) const {
  if (!after_last_.empty()) return after_last_[bucket];
  return schedules_[bucket].rounds() == 0 ? Seconds{0} : time_of(fabric_, schedules_[bucket], members_);
}

Seconds SiteCommunication::to_neighbour(Bytes bytes) const { return to_next(bytes, 1); }
Seconds SiteCommunication::across_pairs(Bytes bytes) const { return to_next(bytes, 2); }

/// From every `stride`-th rank to the one after it: the worst.
Seconds SiteCommunication::to_next(Bytes bytes, int stride) const {
  Seconds worst{0};
  std::vector<Path> paths;
  for (int rank = 0; rank + 1 < fabric_.ranks(); rank += stride) {
    fabric_.paths(rank, rank + 1, paths);
    for (const Path& path : paths) {
      BytesPerSecond rate = path.flow_limit;
      for (const int link : path.links)
        rate = std::min(rate, fabric_.links()[static_cast<std::size_t>(link)].bandwidth);
      worst = std::max(worst, path.latency + path.share * bytes / rate);
    }
  }
  return worst;
}

/// Calls run in issue order: one starts when the one before has ended and the last rank has arrived.
std::vector<std::vector<Seconds>> SiteCommunication::from_last_arrival(std::span<const Reduction> reductions) const {
  std::vector<std::vector<Seconds>> done;
  for (const auto& reduction : reductions) {
    Seconds start = *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end());
    if (!done.empty()) start = std::max(start, done.back().front());
    done.emplace_back(reduction.arrivals.size(), start + after_last_[reduction.bucket]);
  }
  return done;
}

std::vector<std::vector<Seconds>> SiteCommunication::reduce(std::span<const Reduction> reductions, bool remember) {
  if (!after_last_.empty()) return from_last_arrival(reductions);
  if (!remember) return simulate(reductions);
  const Seconds first = reductions.front().arrivals.front();
  std::vector<std::int64_t> pattern;  // picoseconds, below which the clock's rounding would tell steps apart
  for (const auto& reduction : reductions) {
    pattern.push_back(static_cast<std::int64_t>(reduction.bucket));
    for (const Seconds arrival : reduction.arrivals) pattern.push_back(std::llround((arrival - first).si * 1e12));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(pattern));
  if (is_new) {
    known->second = simulate(reductions);
    for (auto& times : known->second)
      for (auto& done : times) done -= first;
  }
  auto done = known->second;
  for (auto& times : done)
    for (auto& time : times) time += first;
  return done;
}

std::vector<std::vector<Seconds>> SiteCommunication::simulate(std::span<const Reduction> reductions) {
  Job job{{Communicator{}}};
  for (const auto& reduction : reductions)
    job.communicators[0].calls.push_back({&schedules_[reduction.bucket], reduction.arrivals});
  JobTimes times = engine_ ? engine_->run({&job, 1}) : run_folded(fabric_, {&job, 1}).times;
  std::vector<std::vector<Seconds>> done;
  for (auto& call : times[0][0]) done.push_back(std::move(call.done));
  return done;
}

/// Rounds of a stage load links alike, but for which of a ring's chunks they carry, all equal.
void SiteCommunication::measure_load() {
  std::vector<double> bytes(fabric_.links().size());
  std::vector<Transfer> transfers;
  std::vector<Path> paths;
  for (const auto& schedule : schedules_) {
    for (const Stage& stage : schedule.stages()) {
      transfers.clear();
      stage.expand(0, transfers);
      const auto rounds = static_cast<double>(stage.rounds);
      messages_ += rounds * static_cast<double>(transfers.size());
      for (const auto& transfer : transfers) {
        const auto place = [&](int of) { return members_.empty() ? of : members_[static_cast<std::size_t>(of)]; };
        fabric_.paths(place(transfer.source), place(transfer.destination), paths);
        for (const Path& path : paths)
          for (const int link : path.links)
            bytes[static_cast<std::size_t>(link)] +=
                rounds * path.share * static_cast<double>(transfer.length) * schedule.cost().wire;
      }
    }
  }
  for (std::size_t link = 0; link < bytes.size(); ++link)
    busiest_link_ = std::max(busiest_link_, Bytes{bytes[link]} / fabric_.links()[link].bandwidth);
}

Communication::Communication(std::vector<Site> sites, const Scheme& scheme, std::vector<std::int64_t> buckets,
                             bool message, bool jitter, bool pairs, const std::optional<Link>& between)
    : sites_(std::move(sites)), buckets_(std::move(buckets)), between_(between) {
  assert(!message || sites_.size() == 1);
  assert(sites_.size() == 1 || between);
  for (const Site& site : sites_)
    inside_.push_back(std::make_unique<SiteCommunication>(site, scheme, buckets_, message, jitter, pairs));
}

Seconds Communication::exchange(std::int64_t bytes) const {
  const auto count = static_cast<double>(sites_.size());
  if (count < 2) return Seconds{0};
  return 2 * (count - 1) * (Bytes{static_cast<double>(bytes) / count} / between_->bandwidth + between_->latency);
}

std::vector<std::vector<Seconds>> Communication::reduce(std::span<const Reduction> reductions, bool remember) {
  if (sites_.size() == 1) return inside_.front()->reduce(reductions, remember);
  std::vector<std::vector<Seconds>> done(reductions.size());
  std::vector<Seconds> last(reductions.size());
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    const auto first = static_cast<std::ptrdiff_t>(sites_[s].first_worker);
    const auto end = first + static_cast<std::ptrdiff_t>(sites_[s].workers);
    std::vector<Reduction> own;
    for (const auto& all : reductions)
      own.push_back({all.bucket, {all.arrivals.begin() + first, all.arrivals.begin() + end}});
    const auto ends = sites_[s].workers > 1 ? inside_[s]->reduce(own, remember) : std::vector<std::vector<Seconds>>{};
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto& times = ends.empty() ? own[i].arrivals : ends[i];
      last[i] = std::max(last[i], *std::max_element(times.begin(), times.end()));
    }
  }
  Seconds free{0};
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    free = std::max(free, last[i]) + exchange(buckets_[reductions[i].bucket]);
    done[i].assign(reductions[i].arrivals.size(), free);
  }
  return done;
}

Seconds Communication::time(std::size_t bucket) const {
  Seconds longest{0};
  for (std::size_t s = 0; s < sites_.size(); ++s)
    if (sites_[s].workers > 1) longest = std::max(longest, inside_[s]->time(bucket));
  return longest + exchange(buckets_[bucket]);
}

Seconds Communication::to_neighbour(Bytes bytes) const {
  Seconds longest{0};
  for (const auto& site : inside_) longest = std::max(longest, site->to_neighbour(bytes));
  if (between_) longest = std::max(longest, bytes / between_->bandwidth + between_->latency);
  return longest;
}

Seconds Communication::across_pairs(Bytes bytes) const {
  Seconds longest{0};
  for (const auto& site : inside_) longest = std::max(longest, site->across_pairs(bytes));
  const bool apart = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) { return site.workers % 2 != 0; });
  if (between_ && apart) longest = std::max(longest, bytes / between_->bandwidth + between_->latency);
  return longest;
}

bool Communication::starts_late() const {
  return std::any_of(inside_.begin(), inside_.end(), [](const auto& site) { return site->starts_late(); });
}

double Communication::messages_a_step() const {
  double sum = 0;
  for (const auto& site : inside_) sum += site->messages_a_step();
  return sum;
}

double Communication::simulated_a_step() const {
  double sum = 0;
  for (const auto& site : inside_) sum += site->simulated_a_step();
  return sum;
}

Seconds Communication::busiest_link() const {
  Seconds busiest{0};
  for (const auto& site : inside_) busiest = std::max(busiest, site->busiest_link());
  if (between_)
    for (const std::int64_t bytes : buckets_) {
      const auto count = static_cast<double>(sites_.size());
      busiest += Bytes{2 * (count - 1) / count * static_cast<double>(bytes)} / between_->bandwidth;
    }
  return busiest;
}

Bytes Communication::between_sites() const {
  if (sites_.size() < 2) return Bytes{0};
  double sum = 0;
  for (const std::int64_t bytes : buckets_)
    sum += 2.0 * static_cast<double>(sites_.size() - 1) * static_cast<double>(bytes);
  return Bytes{sum};
}

}  // namespace ganymede

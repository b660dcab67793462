#include "sim/steps/site_communication.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/units.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/folded_engine.hpp"
#include "sim/steps/interference.hpp"

namespace ganymede::sim {
namespace {

/// Steps with more messages are not simulated message by message; this many take some seconds.
constexpr double kMaxMessagesPerStep = 4e6;

FabricGraph fabric_of(const Site& site) {
  std::vector<NodeGroup> groups;
  for (const auto& group : site.groups) groups.push_back({group.instance, group.nodes, group.gpus_per_node});
  return {*site.platform, groups};
}

/// The even ranks of `all` as a topology of their own; `members` becomes their ranks in `all`. Switches that reduce and
/// rings that use all links of a node are left out: they need all GPUs of a node.
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
  // A topology lists its nodes' sizes only if more nodes than the last one are smaller.
  if (firsts.node_sizes.end() - smaller <= 1) firsts.node_sizes.clear();
  return firsts;
}

}  // namespace

SiteCommunication::SiteCommunication(const Site& site, const Scheme& scheme, std::span<const std::int64_t> buckets,
                                     bool message, bool jitter, bool pairs)
    : fabric_(fabric_of(site)), scheme_(scheme.row) {
  const bool halved = pairs && fabric_.ranks() > 2;
  const Topology firsts = halved ? first_of_pairs(fabric_.topology(), members_) : Topology();
  for (const std::int64_t bytes : buckets)
    schedules_.push_back(halved ? scheme.plan({firsts, bytes, Collective::all_reduce, ""})
                                : plan_on(fabric_, scheme, bytes, Collective::all_reduce));
  if (scheme_->name == std::string_view("nccl") && !buckets.empty())
    nccl_version_ = nccl_version_effect(fabric_.topology(), *std::max_element(buckets.begin(), buckets.end()),
                                        scheme.variant, /*least=*/0.05);
  measure_load();
  if (!members_.empty()) {
    for (const Schedule& schedule : schedules_) after_last_.push_back(time_alone(fabric_, schedule, members_));
    return;
  }
  if (message) {
    engine_ = open_communication_engine(fabric_);
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
  } else if (jitter && messages_ > kMaxMessagesPerStep) {
    late_ = true;
    for (const Schedule& schedule : schedules_) after_last_.push_back(time_alone(fabric_, schedule, members_));
  }
}

void SiteCommunication::share_engine(std::shared_ptr<CommunicationEngine> engine, int first_endpoint) {
  engine_ = std::move(engine);
  in_engine_.resize(fabric_.endpoints().size());
  std::iota(in_engine_.begin(), in_engine_.end(), first_endpoint);
}

double SiteCommunication::compute_share_lost(const platforms::Gpu& gpu) const {
  return sim::compute_share_lost(*scheme_, fabric_.topology(), gpu);
}

Seconds SiteCommunication::time(std::size_t bucket) const {
  if (!after_last_.empty()) return after_last_[bucket];
  return schedules_[bucket].rounds() == 0 ? Seconds{0} : time_alone(fabric_, schedules_[bucket], members_);
}

Seconds SiteCommunication::to_neighbour(Bytes bytes) const { return to_next(bytes, 1); }
Seconds SiteCommunication::across_pairs(Bytes bytes) const { return to_next(bytes, 2); }

/// The longest time from every `stride`-th rank to the one after it.
Seconds SiteCommunication::to_next(Bytes bytes, int stride) const {
  Seconds worst{0};
  std::vector<Path> paths;
  for (int rank = 0; rank + 1 < fabric_.ranks(); rank += stride) {
    fabric_.paths(rank, rank + 1, paths);
    for (const Path& path : paths) {
      BytesPerSecond rate = path.limit();
      for (const int link : path.links)
        rate = std::min(rate, fabric_.links()[static_cast<std::size_t>(link)].bandwidth);
      worst = std::max(worst, path.latency + path.share * bytes / rate);
    }
  }
  return worst;
}

/// Reductions run in the order of issue: each starts when the previous one has ended and the last worker has arrived.
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
  if (!remember) return simulate_now(reductions);  // such arrivals do not come again
  Seconds first = reductions.front().arrivals.front();
  for (const auto& reduction : reductions) first = std::min(first, std::ranges::min(reduction.arrivals));
  // In picoseconds: with finer arrivals the rounding of the clock would make equal steps differ.
  std::vector<std::int64_t> pattern;
  for (const auto& reduction : reductions) {
    pattern.push_back(static_cast<std::int64_t>(reduction.bucket));
    for (const Seconds arrival : reduction.arrivals) pattern.push_back(std::llround((arrival - first).si * 1e12));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(pattern));
  if (is_new) {
    // From 0 on, so that what is known does not depend on the step that came first.
    std::vector<Reduction> alike(reductions.begin(), reductions.end());
    for (Reduction& reduction : alike)
      for (Seconds& arrival : reduction.arrivals) arrival = Seconds{1e-12 * std::round((arrival - first).si * 1e12)};
    known->second = simulate(alike);
  }
  auto done = known->second;
  for (auto& times : done)
    for (auto& time : times) time += first;
  return done;
}

std::vector<std::vector<Seconds>> SiteCommunication::simulate(std::span<const Reduction> reductions) {
  if (!shared_) return simulate_now(reductions);
  std::vector<double> exact;
  for (const auto& reduction : reductions) {
    exact.push_back(static_cast<double>(reduction.bucket));
    for (const Seconds arrival : reduction.arrivals) exact.push_back(arrival.si);
  }
  const auto [known, is_new] = shared_->try_emplace(std::move(exact));
  if (is_new) known->second = simulate_now(reductions);
  return known->second;
}

std::vector<std::vector<Seconds>> SiteCommunication::simulate_now(std::span<const Reduction> reductions) {
  Job job{{Communicator{in_engine_, {}}}};
  for (const auto& reduction : reductions)
    job.communicators[0].calls.push_back({&schedules_[reduction.bucket], reduction.arrivals});
  JobTimes times = engine_ ? engine_->run({&job, 1}) : run_folded(fabric_, {&job, 1}).times;
  std::vector<std::vector<Seconds>> done;
  for (auto& call : times[0][0]) done.push_back(std::move(call.done));
  return done;
}

/// Sums the bytes that the schedules put on each link. One round stands for all rounds of its stage: each puts the same
/// number of bytes on each link, only of other chunks.
void SiteCommunication::measure_load() {
  std::vector<double> bytes(fabric_.links().size());
  std::vector<Transfer> transfers;
  std::vector<Path> paths;
  for (const auto& schedule : schedules_) {
    schedule.check_list();
    work_ += schedule.work();
    for (const Stage& stage : schedule.stages()) {
      transfers.clear();
      stage.expand(0, transfers);
      const auto rounds = static_cast<double>(stage.rounds);
      messages_ += rounds * static_cast<double>(transfers.size());
      for (const auto& transfer : transfers) {
        const auto place = [&](int rank) { return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)]; };
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

void SiteCommunication::add_transfer(int from, int to, Bytes bytes, std::size_t first_link,
                                     ServerTraffic::Transfer& transfer) const {
  std::vector<Path> paths;
  fabric_.paths(from, to, paths);
  for (const Path& path : paths) {
    const Bytes part = path.share * bytes;
    for (const int link : path.links) {
      const auto index = static_cast<std::size_t>(link);
      transfer.uses.push_back({first_link + index, part / fabric_.links()[index].bandwidth});
    }
    transfer.alone = std::max(transfer.alone, part / path.limit());
    transfer.latency = std::max(transfer.latency, path.latency);
  }
}

}  // namespace ganymede::sim

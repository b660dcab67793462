// Compares both engines with a third, which is written here as simply as possible: it visits all flows at every event
// and finds rates by progressive filling. Random fabrics with unequal latencies and limits, random schedules, random
// arrivals.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <map>

#include "common/units.hpp"
#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "support/when.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A flow that waits for its latency, then moves bytes.
struct PlainFlow {
  std::size_t transfer = 0;
  std::int64_t round = 0;
  double starts = 0, left = 0, limit = kNever, rate = 0, latency = 0;
  std::vector<int> links;
};

/// Max-min shares by raising all rates together (the definition).
void share(std::vector<PlainFlow>& flows, const std::vector<DirectedLink>& links, double now) {
  std::vector<PlainFlow*> open;
  for (auto& flow : flows) {
    flow.rate = 0;
    if (flow.starts <= now) open.push_back(&flow);
  }
  std::vector<double> left;
  for (const auto& link : links) left.push_back(link.bandwidth.si);
  while (!open.empty()) {
    std::map<int, int> users;
    for (const auto* flow : open)
      for (const int link : flow->links) ++users[link];
    double raise = kNever;
    for (const auto& [link, count] : users) raise = std::min(raise, left[static_cast<std::size_t>(link)] / count);
    for (const auto* flow : open) raise = std::min(raise, flow->limit - flow->rate);
    for (auto* flow : open) flow->rate += raise;
    for (const auto& [link, count] : users) left[static_cast<std::size_t>(link)] -= raise * count;
    std::erase_if(open, [&](const PlainFlow* flow) {
      bool full = flow->rate >= flow->limit * (1 - 1e-12);
      for (const int link : flow->links)
        full =
            full || left[static_cast<std::size_t>(link)] <= 1e-9 * links[static_cast<std::size_t>(link)].bandwidth.si;
      return full;
    });
  }
}

/// Simulates one call of one communicator, and tells when each rank is done.
class Plain {
 public:
  Plain(const FabricGraph& fabric, const Schedule& schedule, const std::vector<Seconds>& arrivals)
      : fabric_(fabric), schedule_(schedule), ranks_(static_cast<std::size_t>(schedule.ranks() * schedule.lanes())) {
    for (std::int64_t r = 0; r < schedule.rounds(); ++r) schedule.round(r, rounds_.emplace_back());
    for (std::size_t r = 0; r < rounds_.size(); ++r) entered_.emplace_back(rounds_[r].size(), 0);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      ranks_[i].wakes = arrivals[i % arrivals.size()].si + fabric.endpoints()[i % arrivals.size()].launch.si;
  }

  std::vector<double> run() {
    std::vector<double> done(ranks_.size(), kNever);
    while (true) {
      double next = kNever;
      for (const auto& rank : ranks_) next = std::min(next, rank.wakes);
      share(flows_, fabric_.links(), now_);
      for (const auto& flow : flows_)
        next = std::min(next, flow.starts > now_ ? flow.starts : now_ + flow.left / flow.rate);
      for (const auto& [time, rank] : added_) next = std::min(next, time);
      if (next == kNever) return of_ranks(done);
      for (auto& flow : flows_) flow.left -= flow.rate * (next - now_);
      now_ = next;
      settle(done);
    }
  }

 private:
  /// The index of a rank in a lane.
  std::size_t member(const Transfer& t, int rank) const {
    const int index = t.lane * schedule_.ranks() + rank;
    return static_cast<std::size_t>(index);
  }

  std::vector<double> of_ranks(const std::vector<double>& members) const {
    std::vector<double> done(static_cast<std::size_t>(schedule_.ranks()));
    for (std::size_t i = 0; i < members.size(); ++i)
      done[i % done.size()] = std::max(done[i % done.size()], members[i]);
    return done;
  }

  struct Rank {
    double wakes = kNever;
    std::int64_t round = -1;
    int pending = 0;
    double adds_until = 0;
  };

  void settle(std::vector<double>& done) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].wakes > now_) continue;
      ranks_[i].wakes = kNever;
      enter(i, 0, done);
    }
    for (std::size_t i = 0; i < flows_.size();) {
      if (flows_[i].starts > now_ || flows_[i].left > 1e-6) {
        ++i;
        continue;
      }
      const PlainFlow flow = flows_[i];
      flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(i));
      const Transfer& t = rounds_[static_cast<std::size_t>(flow.round)][flow.transfer];
      if (flow.latency == kNever) {  // stands for the wait of eager bytes that are under way
        if (++entered_[static_cast<std::size_t>(flow.round)][flow.transfer] == 2) receive(t);
        continue;
      }
      const double latency = flow.latency;
      finish(member(t, t.source), done);
      if (!schedule_.cost().eager)
        receive(t);
      else
        flows_.push_back({flow.transfer, flow.round, now_ + latency, 0, 1, 0, kNever, {}});
    }
    while (!added_.empty() && added_.begin()->first <= now_) {
      const std::size_t rank = added_.begin()->second;
      added_.erase(added_.begin());
      finish(rank, done);
    }
  }

  void receive(const Transfer& t) {
    auto& rank = ranks_[member(t, t.destination)];
    rank.adds_until = std::max(rank.adds_until, now_);
    if (t.reduce)
      rank.adds_until += 3 * static_cast<double>(t.length) /
                         fabric_.endpoints()[static_cast<std::size_t>(t.destination)].memory_bandwidth.si;
    added_.emplace(t.reduce ? rank.adds_until : now_, member(t, t.destination));
  }

  void finish(std::size_t index, std::vector<double>& done) {
    if (--ranks_[index].pending == 0) enter(index, ranks_[index].round + 1, done);
  }

  void enter(std::size_t index, std::int64_t round, std::vector<double>& done) {
    Rank& me = ranks_[index];
    for (; round < schedule_.rounds(); ++round) {
      me.round = round;
      me.pending = 0;
      const auto& here = rounds_[static_cast<std::size_t>(round)];
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (member(here[i], here[i].source) != index && member(here[i], here[i].destination) != index) continue;
        ++me.pending;
        const bool source = member(here[i], here[i].source) == index;
        if (schedule_.cost().eager && source) {
          send(round, i);
        } else if (++entered_[static_cast<std::size_t>(round)][i] == 2) {
          schedule_.cost().eager ? receive(here[i]) : send(round, i);
        }
      }
      if (me.pending > 0) return;
    }
    done[index] = now_;
  }

  void send(std::int64_t round, std::size_t index) {
    const Transfer& t = rounds_[static_cast<std::size_t>(round)][index];
    std::vector<Path> paths;
    fabric_.paths(t.source, t.destination, paths);
    const double latency = paths[0].latency.si, starts = schedule_.cost().eager ? now_ : now_ + latency;
    flows_.push_back(
        {index, round, starts, static_cast<double>(t.length), paths[0].flow_limit.si, 0, latency, paths[0].links});
  }

  const FabricGraph& fabric_;
  const Schedule& schedule_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Transfer>> rounds_;
  std::vector<std::vector<int>> entered_;
  std::vector<PlainFlow> flows_;
  std::multimap<double, std::size_t> added_;
  double now_ = 0;
};

/// A fat tree of one or two levels, perhaps with zones, of any numbers of nodes, or an oversubscribed switch; one GPU a
/// node or up to eight, with or without a path through the host.
platforms::Platform random_platform() {
  const auto number = [](int low, int high) { return *rc::gen::inRange(low, high); };
  const int gpus = number(0, 6) == 0 ? 8 : number(1, 4);
  std::string node = fmt::format(R"("gpus": {}, "host_link": {{"bandwidth": "{}GB/s", "latency": "{}us"}},
      "nic": {{"bandwidth": "{}GB/s", "latency": "{}us", "count": {}, "gpu_direct": {} {}}})",
                                 gpus, number(1, 20), number(0, 30), number(1, 20), number(0, 1000), number(1, 3),
                                 number(0, 2) == 0, number(0, 2) == 0 ? "" : R"(, "per_flow": "700MB/s")");
  if (number(0, 2) == 0)
    node += fmt::format(R"(, "gpu_links": {{"kind": "nvlink", "bandwidth": "{}GB/s", "latency": "{}us"}})",
                        number(1, 100), number(0, 5));
  std::string fabric =
      fmt::format(R"({{"kind": "switch", "latency": "{}us", "oversubscription": {}}})", number(0, 9), number(1, 5));
  if (number(0, 2) == 0) {
    const int rack = number(1, 5);
    const auto level = [&](int nodes) {
      return fmt::format(R"({{"nodes": {}, "oversubscription": {}, "latency": "{}us"}})", nodes, number(1, 4),
                         number(0, 9));
    };
    fabric = R"({"kind": "fat-tree", "levels": [)" + level(rack);
    if (number(0, 2) == 0) fabric += ", " + level(rack * number(1, 3));
    fabric += "]";
    if (number(0, 2) == 0)
      fabric += fmt::format(R"(, "zones": {{"nodes": {}, "bandwidth": "1GB/s", "latency": "{}us"}})", number(1, 5),
                            number(0, 900));
    fabric += "}";
  }
  return platform_of(node, fabric);
}

/// Rounds of random transfers, some reducing; what they carry does not matter for the time.
Schedule random_schedule(int ranks) {
  const int rounds = *rc::gen::inRange(1, 5);
  // Lanes take reduction to be free, but a GPU adds for one lane at a time. So nothing is added where there are
  // several.
  const int lanes = *rc::gen::inRange(1, 4);
  std::vector<Stage> stages;
  for (int r = 0; r < rounds; ++r) {
    std::vector<Transfer> transfers;
    const int count = *rc::gen::inRange(0, 2 * ranks);
    for (int i = 0; i < count; ++i) {
      const int source = *rc::gen::inRange(0, ranks), step = *rc::gen::inRange(1, ranks);
      transfers.push_back({source, (source + step) % ranks, 0, *rc::gen::inRange(1000, 5'000'000),
                           lanes == 1 && *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0, lanes)});
    }
    stages.push_back({*rc::gen::inRange(1, 4), [=](std::int64_t, std::vector<Transfer>& out) {
                        out.insert(out.end(), transfers.begin(), transfers.end());
                      }});
  }
  ProtocolCost cost;
  cost.eager = *rc::gen::arbitrary<bool>();
  Schedule schedule(ranks, ranks, 5'000'000, std::move(stages), cost);
  schedule.set_lanes(lanes);
  return schedule;
}

std::vector<Seconds> random_arrivals(int ranks) {
  std::vector<Seconds> arrivals(static_cast<std::size_t>(ranks));
  if (*rc::gen::arbitrary<bool>())
    for (auto& arrival : arrivals) arrival = Seconds{*rc::gen::inRange(0, 2000) * 1e-6};
  return arrivals;
}

/// The largest relative difference of two engines' times.
double difference(const std::vector<double>& times, const std::vector<double>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < times.size(); ++i)
    worst = std::max(worst, (std::abs(times[i] - expected[i]) - 1e-12) / expected[i]);
  return worst;
}

/// True if a delay of some ranks by 10 ps changes the times by much more. Different messages that share a link can be
/// chaotic: picoseconds decide which comes first, and hundreds of rounds turn them into microseconds. Two programs
/// cannot agree in such a case.
bool is_chaotic(const FabricGraph& fabric, const Schedule& schedule, const std::vector<Seconds>& arrivals) {
  const auto times = done_times(Engine::folded, fabric, job_of(schedule, arrivals));
  for (const std::size_t every : {2U, 3U, 5U}) {
    auto later = arrivals;
    for (std::size_t i = 0; i < later.size(); i += every) later[i] = later[i] + Seconds{1e-11};
    if (difference(done_times(Engine::folded, fabric, job_of(schedule, later)), times) > 1e-7) return true;
  }
  return false;
}

void expect_equal(const std::vector<double>& times, const std::vector<double>& expected, const char* engine) {
  RC_ASSERT(times.size() == expected.size());
  for (std::size_t i = 0; i < times.size(); ++i)
    if (std::abs(times[i] - expected[i]) > 1e-6 * expected[i] + 1e-12)
      RC_FAIL(fmt::format("{}: rank {} done at {:.12g}, expected {:.12g}", engine, i, times[i], expected[i]));
}

TEST(Differential, RandomSchedulesOnRandomFabrics) {
  EXPECT_TRUE(rc::check("all three agree", [] {
    const platforms::Platform platform = random_platform();
    const platforms::Instance& node = platform.instance("node");
    const int nodes = *rc::gen::inRange(2, 7);
    const FabricGraph fabric(platform, node, nodes, node.gpus);
    const Schedule schedule = random_schedule(fabric.ranks());
    const auto arrivals = random_arrivals(fabric.ranks());
    const auto expected = Plain(fabric, schedule, arrivals).run();
    expect_equal(done_times(Engine::folded, fabric, job_of(schedule, arrivals)), expected, "folded");
    expect_equal(done_times(Engine::message, fabric, job_of(schedule, arrivals)), expected, "message");
  }));
}

TEST(Differential, EverySchemeOnRandomFabrics) {
  NOT_SANITIZED("its schemes run one by one in other tests");
  for (const auto& scheme : allreduce_schemes()) {
    EXPECT_TRUE(rc::check(std::string(scheme.name), [&scheme] {
      const platforms::Platform platform = random_platform();
      const platforms::Instance& node = platform.instance("node");
      const int nodes = *rc::gen::inRange(2, 6);
      const FabricGraph fabric(platform, node, nodes, node.gpus);
      // With a server on every rank every rank exchanges bytes with every other one.
      const std::string variant = scheme.has_servers && *rc::gen::arbitrary<bool>() ? "all" : "";
      const PlanRequest request{fabric.topology(), *rc::gen::inRange(100'000, 50'000'000), Collective::all_reduce,
                                variant};
      if (scheme.why_not(request)) return;
      const Schedule schedule = scheme.plan(request);
      const auto arrivals = random_arrivals(fabric.ranks());
      const auto folded = done_times(Engine::folded, fabric, job_of(schedule, arrivals));
      const auto message = done_times(Engine::message, fabric, job_of(schedule, arrivals));
      if (difference(folded, message) > 1e-6 && is_chaotic(fabric, schedule, arrivals)) return;
      expect_equal(folded, message, "folded");
    }));
  }
}

}  // namespace
}  // namespace ganymede::sim

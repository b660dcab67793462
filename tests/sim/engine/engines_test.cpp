// Expected times of both engines, derived by hand or from closed forms.

#include "engines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ostream>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/closed_form.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "support/when.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;

Schedule plan(const std::string& scheme, const FabricGraph& fabric, std::int64_t bytes) {
  return parse_scheme(scheme).plan({fabric.topology(), bytes, Collective::all_reduce, ""});
}

/// A schedule of one round.
Schedule round_of(int ranks, std::int64_t bytes, const std::vector<Transfer>& transfers) {
  return Schedule(ranks, bytes, {Stage{1, [=](std::int64_t, std::vector<Transfer>& out) {
                                         out.insert(out.end(), transfers.begin(), transfers.end());
                                       }}});
}

class Engines : public testing::TestWithParam<Engine> {
 protected:
  double time(const FabricGraph& fabric, const Schedule& schedule, std::vector<Seconds> arrivals = {}) {
    return finish(GetParam(), fabric, schedule, std::move(arrivals));
  }
};
INSTANTIATE_TEST_SUITE_P(All, Engines, testing::Values(Engine::message, Engine::folded),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Engines, TakeTheClosedFormOfEveryScheme) {
  for (const char* nic : {"0us", "5us", "1ms"}) {
    for (const int ranks : {2, 3, 7, 16}) {
      const platforms::Platform platform = star_platform("12.5GB/s", nic, "1us");
      const FabricGraph fabric(platform, platform.instance("one"), ranks, 1);
      const Star star{12.5_GB_per_s, 2 * parse_quantity<Seconds>(nic) + 1_us, 900_GB_per_s};
      for (const auto& scheme : allreduce_schemes()) {
        const PlanRequest request{fabric.topology(), std::int64_t{ranks} << 20, Collective::all_reduce, ""};
        if (scheme.on_star == nullptr || scheme.why_not(request)) continue;
        EXPECT_NEAR(time(fabric, scheme.plan(request)) / scheme.on_star(request, star).si, 1, 1e-6)
            << scheme.name << ", " << ranks << " ranks, NIC " << nic;
      }
    }
  }
}

// SimGrid shares a link in inverse proportion to the routes' latencies. Here two senders with unlike latencies feed one
// receiver: whatever the latency, equal flows must get equal shares of its 12.5 GB/s.
TEST_P(Engines, ShareEquallyAtAnyLatency) {
  for (const char* latency : {"0us", "5us", "1ms"}) {
    const platforms::Platform platform = star_platform("12.5GB/s", latency, "0us", "", kFreeAdding);
    const FabricGraph fabric(platform, platform.instance("one"), 3, 1);
    const std::int64_t bytes = 125'000'000;
    const Schedule both = round_of(3, bytes, {{0, 2, 0, bytes, true}, {1, 2, 0, bytes, true}});
    const auto done = done_times(GetParam(), fabric, job_of(both));
    EXPECT_DOUBLE_EQ(done[0], done[1]) << latency;
    EXPECT_NEAR(done[2], (2 * 125e6 / 12.5e9) + 2 * parse_quantity<Seconds>(latency).si, 1e-7) << latency;
  }
}

TEST_P(Engines, AFlowThatStartsLaterSharesFairlyWithOneUnderWay) {
  const platforms::Platform platform = star_platform("1GB/s", "1ms", "0us", "", kFreeAdding);
  const FabricGraph fabric(platform, platform.instance("one"), 3, 1);
  const std::int64_t bytes = 1'000'000'000;
  const Schedule both = round_of(3, bytes, {{0, 2, 0, bytes, false}, {1, 2, 0, bytes, true}});
  // Rank 1 arrives 0.5 s late. Alone until then, rank 0 has sent 0.5 GB; its other 0.5 GB take 1 s at half rate; the
  // rest of rank 1's gigabyte (0.5 GB) then takes 0.5 s: ends at 1.5 s and 2.0 s, plus 2 ms of latency.
  const auto done = done_times(GetParam(), fabric, job_of(both, {0_s, 0.5_s, 0_s}));
  EXPECT_NEAR(done[0], 1.502, 1e-7);
  EXPECT_NEAR(done[1], 2.002, 1e-7);
}

TEST_P(Engines, PayReductionAtMemoryBandwidthAndOneAtATime) {
  const platforms::Platform platform = star_platform("12.5GB/s", "0us", "0us", "", R"("memory_bandwidth": "1GB/s")");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const double wire = 2 * 3 * 30e6 / 12.5e9;
  const double adding = 3 * 3 * 30e6 / 1e9;  // three buffers, three bytes of traffic a byte
  EXPECT_NEAR(time(fabric, plan("reduce-to-one", fabric, 30'000'000)), wire + adding, 1e-9);
}

TEST_P(Engines, DelayEachCollectiveByItsLaunchOnce) {
  const std::string launch = R"("memory_bandwidth": "900GB/s", "launch": "20us")";
  const platforms::Platform plain = star_platform("12.5GB/s", "5us", "1us"),
                            slow = star_platform("12.5GB/s", "5us", "1us", "", launch);
  const FabricGraph without(plain, plain.instance("one"), 4, 1), with(slow, slow.instance("one"), 4, 1);
  const Schedule ring = plan("ring", without, 4 << 20);
  EXPECT_NEAR(time(with, ring), time(without, ring) + 20e-6, 1e-12);
}

TEST_P(Engines, RunCollectivesOfOneCommunicatorInOrder) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan("ring", fabric, 4 << 20);
  const std::vector<Seconds> zero(4);
  const Job twice{{Communicator{{}, {{&ring, zero}, {&ring, zero}}}}};
  const auto done = done_times(GetParam(), fabric, twice);
  EXPECT_NEAR(done[7], 2 * time(fabric, ring), 1e-12);
}

TEST_P(Engines, ALateRankDelaysARingByItsLateness) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan("ring", fabric, 4 << 20);
  EXPECT_NEAR(time(fabric, ring, {0_s, 0_s, 2_s, 0_s}), 2 + time(fabric, ring), 1e-9);
  ASSERT_TRUE(time_after_last_arrival(fabric, ring));
  EXPECT_NEAR(time_after_last_arrival(fabric, ring)->si, time(fabric, ring), 1e-12);
}

// Derived by hand: 1 MB takes 80 us. When the late rank sends, the other two messages have arrived, so it has the
// downlink for itself; three copies share the uplink on the way back.
TEST_P(Engines, ALateRankOfReduceToOneWaitsForItsOwnMessageOnly) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "0us", "", kFreeAdding);
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule schedule = plan("reduce-to-one", fabric, 1'000'000);
  EXPECT_NEAR(time(fabric, schedule, {0_s, 0_s, 0_s, 1_ms}), 1e-3 + (10e-6 + 80e-6) + (10e-6 + 240e-6), 1e-7);
  EXPECT_FALSE(time_after_last_arrival(fabric, schedule));
}

TEST_P(Engines, LimitAFlowToWhatOneConnectionReaches) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 1, "nic": {"bandwidth": "10GB/s", "latency": "0us", "per_flow": "1GB/s"})");
  const FabricGraph fabric(platform, platform.instance("node"), 3, 1);
  const Schedule one = round_of(3, 1'000'000'000, {{0, 2, 0, 1'000'000'000, false}});
  EXPECT_NEAR(time(fabric, one), 1, 1e-9);
}

// TCP limits a connection, and a protocol may split a message over several; other transports have no connections.
TEST_P(Engines, SplitAMessageOverTheConnectionsOfItsProtocol) {
  const auto seconds = [&](const char* transport, int connections) {
    const platforms::Platform platform =
        platform_of(fmt::format(R"("gpus": 1, "nic": {{"bandwidth": "10GB/s", "latency": "0us", "transport": "{}",
            "tcp": {{"per_flow": "1GB/s"}}}})",
                                transport));
    const FabricGraph fabric(platform, platform.instance("node"), 3, 1);
    Schedule one = round_of(3, 1'000'000'000, {{0, 2, 0, 1'000'000'000, false}});
    ProtocolCost cost = one.cost();
    cost.connections = connections;
    one.set_cost(cost);
    return time(fabric, one);
  };
  EXPECT_NEAR(seconds("tcp", 1), 1, 1e-9);
  EXPECT_NEAR(seconds("tcp", 4), 1.0 / 4, 1e-9);
  EXPECT_NEAR(seconds("tcp", 16), 1.0 / 10, 1e-9);  // the NIC
  EXPECT_NEAR(seconds("rdma", 1), 1.0 / 10, 1e-9);
}

TEST_P(Engines, SplitAMessageOverUnlikeLinks) {
  const platforms::Platform platform = platform_of(
      R"("gpus": 2, "host_link": {"bandwidth": "10GB/s", "latency": "0us"},
         "gpu_links": {"kind": "nvlink", "bandwidth": "30GB/s", "latency": "0us", "with_host_link": true})");
  const FabricGraph fabric(platform, platform.instance("node"), 1, 2);
  const Schedule one = round_of(2, 4'000'000'000, {{0, 1, 0, 4'000'000'000, false}});
  EXPECT_NEAR(time(fabric, one), 0.1, 1e-9);  // 4 GB at 30 + 10 GB/s
}

// In a ring over two nodes of two GPUs, hops of 1 us inside nodes alternate with hops of 101 us between them. Only
// latency matters here. Six rounds take six long hops if every round waits for its slowest message; with an eager
// protocol the bytes of each chunk cross three hops of each kind.
TEST_P(Engines, AnEagerRingPaysLatencyAlongItsBytesWayOnly) {
  const platforms::Platform platform = star_platform("1000000GB/s", "50us", "1us");
  const FabricGraph fabric(platform, platform.instance("four"), 2, 2);
  const Schedule ring = plan("ring", fabric, 8);
  ProtocolCost cost;
  cost.reduction_is_free = true;
  const auto with = [&](bool eager) {
    cost.eager = eager;
    return time(fabric, Schedule(4, 4, ring.bytes(), ring.stages(), cost));
  };
  EXPECT_NEAR(with(false), 6 * 101e-6, 1e-9);
  EXPECT_NEAR(with(true), 3 * 101e-6 + 3 * 1e-6, 1e-9);
}

// Three messages, which alone would take 1 ms (rank 0 to 1), 0.5 ms (rank 2 to 0) and 0.25 ms (rank 0 to 3). The third
// is of the second round. In one lane it waits for the first message. If the second and the third have a lane of their
// own, the third waits for the second alone, and shares rank 0's uplink with the rest of the first.
TEST_P(Engines, LanesDoNotWaitForOneAnother) {
  const platforms::Platform platform = star_platform("12.5GB/s", "0us", "0us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const auto done_of_3 = [&](int lane) {
    const auto stage = [](const std::vector<Transfer>& transfers) {
      return Stage{1, [transfers](std::int64_t, std::vector<Transfer>& out) {
                     out.insert(out.end(), transfers.begin(), transfers.end());
                   }};
    };
    Schedule schedule(4, 12'500'000,
                      {stage({{0, 1, 0, 12'500'000, false, 0}, {2, 0, 0, 6'250'000, false, lane}}),
                       stage({{0, 3, 0, 3'125'000, false, lane}})});
    schedule.set_lanes(lane + 1);
    return done_times(GetParam(), fabric, job_of(schedule))[3];
  };
  EXPECT_NEAR(done_of_3(0), 1.25e-3, 1e-8);
  EXPECT_NEAR(done_of_3(1), 1.0e-3, 1e-8);  // at half the rate from 0.5 ms on
}

// The costs of a protocol: 2 bytes on the wire for each byte, a start, a latency and a limit.
TEST_P(Engines, PayWhatTheProtocolAdds) {
  const platforms::Platform platform = star_platform("10GB/s", "0us", "0us", "", kFreeAdding);
  const FabricGraph fabric(platform, platform.instance("one"), 2, 1);
  ProtocolCost cost;
  cost.wire = 2;
  cost.start = 1_ms;
  cost.between = 10_ms;
  cost.flow_between = 1_GB_per_s;
  const Schedule one(2, 2, 100'000'000,
                     {Stage{1,
                            [](std::int64_t, std::vector<Transfer>& out) {
                              out.push_back({0, 1, 0, 100'000'000, true});
                            }}},
                     cost);
  EXPECT_NEAR(time(fabric, one), 1e-3 + 10e-3 + 0.2, 1e-7);
}

// Two rings of one GPU a node each cross the same NICs: each gets half of the bandwidth.
TEST_P(Engines, CommunicatorsShareLinks) {
  const platforms::Platform platform = star_platform("12.5GB/s", "0us", "0us", "", kFreeAdding);
  const FabricGraph fabric(platform, platform.instance("four"), 2, 4);
  const Schedule ring = parse_scheme("ring").plan({flat(2), 1 << 30, Collective::all_reduce, ""});
  const std::vector<Seconds> zero(2);
  const Job two{{Communicator{{0, 4}, {{&ring, zero}}}, Communicator{{1, 5}, {{&ring, zero}}}}};
  const double expected = 2 * (2.0 * (1 << 29) / 12.5e9);
  for (const double done : done_times(GetParam(), fabric, two)) EXPECT_NEAR(done / expected, 1, 1e-6);
}

TEST(CommunicationEngine, AnswersDoNotDependOnWhatRanBefore) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan("ring", fabric, 4 << 20);
  const Schedule pause = round_of(4, 1, {});
  const double alone = finish(Engine::message, fabric, ring);
  const double later = in_child([&] {
    const auto engine = open_communication_engine(fabric);
    // A day on the simulated clock: rank 1 arrives that late at a collective without transfers.
    const Job wait = job_of(pause, {0_s, 86400_s, 0_s, 0_s}), job = job_of(ring);
    engine->run({&wait, 1});
    return std::vector{engine->run({&job, 1})[0][0][0].done[0].si};
  })[0];
  EXPECT_NEAR(later / alone, 1, 1e-6);
}

TEST(CommunicationEngine, CountsAndRecordsMessages) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 5, 1);
  const Schedule ring = plan("ring", fabric, 5 << 20);
  const auto counts = in_child([&] {
    double records = 0, last = 0;
    const Job job = job_of(ring);
    const auto times = open_communication_engine(fabric)->run({&job, 1}, [&](const TransferRecord& record) {
      ++records;
      last = std::max(last, record.end.si);
    });
    return std::vector{static_cast<double>(times[0][0][0].messages), records, last};
  });
  EXPECT_EQ(counts[0], 2 * (5 - 1) * 5);
  EXPECT_EQ(counts[1], counts[0]);
  EXPECT_GT(counts[2], 0);
}

TEST(Folded, FoldsARingToOneRankAndAFewRounds) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 1000, 1);
  const Schedule ring = plan("ring", fabric, 1'000'003);
  const Job job = job_of(ring);
  const FoldedTimes folded = run_folded(fabric, {&job, 1});
  EXPECT_EQ(folded.classes, 1);
  EXPECT_EQ(folded.members, 1000);
  EXPECT_EQ(folded.times[0][0][0].messages, 2 * 999 * 1000);
  EXPECT_LT(folded.flows, 20);
  EXPECT_GT(folded.rounds_skipped, 1900);
}

// 138 nodes below switches of 33: the last switch has fewer, which tells all ranks of a ring apart.
TEST(Folded, MergesNearlyLikeRanksUntilTheDifferenceIsSmall) {
  NOT_SANITIZED("it simulates half a million flows");
  const platforms::Platform platform = platform_of(
      R"("gpus": 8, "gpu_links": {"kind": "nvswitch", "bandwidth": "300GB/s", "latency": "1us"},
         "nic": {"bandwidth": "12.5GB/s", "latency": "2us"})",
      R"({"kind": "fat-tree", "latency": "1us", "levels": [{"nodes": 33, "oversubscription": 2, "latency": "1us"}]})");
  const FabricGraph fabric(platform, platform.instance("node"), 138, 8);
  const Schedule ring = plan("ring", fabric, 100'000'000);
  const Job job = job_of(ring);
  const auto end = [](const FoldedTimes& folded) {
    const auto& done = folded.times[0][0][0].done;
    return std::max_element(done.begin(), done.end())->si;
  };
  const FoldedTimes exact = run_folded(fabric, {&job, 1}, false, 0), merged = run_folded(fabric, {&job, 1});
  EXPECT_EQ(exact.difference, 0);
  EXPECT_GT(merged.difference, 0);
  EXPECT_LE(merged.difference, kFoldingTolerance);
  EXPECT_NEAR(end(merged) / end(exact), 1, kFoldingTolerance);
  EXPECT_LT(merged.classes, exact.classes);
}

// 4.3e9 messages a way: what one rank sends stands for all of them.
TEST(Folded, EveryRankMayServeEveryOther) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 65536, 1);
  const PlanRequest request{fabric.topology(), 65536 * 1000, Collective::all_reduce, "all"};
  const AllReduceScheme& scheme = find_scheme("parameter-server");
  const Schedule schedule = scheme.plan(request);
  EXPECT_EQ(schedule.messages(), std::int64_t{2} * 65536 * 65535);
  const Star star{BytesPerSecond{12.5e9}, Seconds{11e-6}, BytesPerSecond{900e9}};
  EXPECT_NEAR(finish(Engine::folded, fabric, schedule) / scheme.on_star(request, star).si, 1, 1e-6);
}

// The last rack has fewer nodes. With its members written out a communicator has all of its messages listed.
TEST(Folded, OneRankStandsForThoseInTheSamePlaces) {
  NOT_SANITIZED("it lists two million messages");
  const platforms::Platform platform = platform_of(
      R"("gpus": 8, "gpu_links": {"kind": "nvswitch", "bandwidth": "300GB/s", "latency": "1us"},
         "nic": {"bandwidth": "12.5GB/s", "latency": "2us"})",
      R"({"kind": "fat-tree", "latency": "1us", "levels": [{"nodes": 5, "oversubscription": 2, "latency": "1us"},
          {"nodes": 15, "oversubscription": 3, "latency": "2us"}]})");
  const FabricGraph fabric(platform, platform.instance("node"), 128, 8);
  const Schedule schedule = plan("parameter-server:all", fabric, 100'000'000);
  Job folded = job_of(schedule), listed = folded;
  for (int rank = 0; rank < fabric.ranks(); ++rank) listed.communicators[0].members.push_back(rank);
  const auto times = done_times(Engine::folded, fabric, folded), expected = done_times(Engine::folded, fabric, listed);
  for (std::size_t rank = 0; rank < times.size(); ++rank) ASSERT_NEAR(times[rank] / expected[rank], 1, 1e-6) << rank;
}

// On a torus ranks differ, so that all messages would have to be listed: 2 x 4096 x 4095 of 73 bytes.
TEST(Folded, AListThatWouldFillTheMemoryIsRefused) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 1)", R"({"kind": "torus", "dimensions": [64, 64], "bandwidth": "10GB/s"})");
  const FabricGraph fabric(platform, platform.instance("node"), 4096, 1);
  const Schedule schedule = plan("parameter-server:all", fabric, 4096);
  const Job job = job_of(schedule);
  try {
    run_folded(fabric, {&job, 1});
    FAIL();
  } catch (const Infeasible& refused) {
    EXPECT_THAT(refused.what(), testing::HasSubstr("2.45 GB"));
  }
}

// A table of all pairs of 20,000 hosts would take 3.2 GB. The message waits 2 x 5 + 1 us and moves 12.5 kB at 12.5
// GB/s.
TEST(Message, MemoryGrowsWithTheNodesAndNotWithTheirSquare) {
  NOT_SANITIZED("the sanitizer's own memory is beyond any limit");
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 20000, 1);
  const Schedule schedule = round_of(20000, 12500, {{0, 19999, 0, 12500, false}});
  const Job job = job_of(schedule);
  const auto done = in_child([&] {
    const rlimit limit{2'000'000'000, 2'000'000'000};
    setrlimit(RLIMIT_AS, &limit);
    return std::vector{open_communication_engine(fabric)->run({&job, 1})[0][0][0].done.back().si};
  });
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NEAR(done[0], 12e-6, 1e-12);
}

TEST(Bottlenecks, NameWhatATimeIsMadeOf) {
  const auto limit = [](const platforms::Platform& platform, std::int64_t bytes) {
    const FabricGraph fabric(platform, platform.instance("one"), 8, 1);
    const Schedule ring = plan("ring", fabric, bytes);
    const Job job = job_of(ring);
    return run_folded(fabric, {&job, 1}, true).bottleneck.what;
  };
  EXPECT_EQ(limit(star_platform("12.5GB/s", "5us", "1us"), 8), "latency");
  EXPECT_EQ(limit(star_platform("12.5GB/s", "5us", "1us"), 1 << 30), "nic.up");
  EXPECT_EQ(limit(star_platform("12.5GB/s", "5us", "1us", "", R"("memory_bandwidth": "1GB/s")"), 1 << 30), "reduction");
}

// In a ring each NIC carries one flow, which is limited to 1 of the 10 GB/s: only a faster connection helps. In
// reduce-to-one seven flows share the root's NIC. Each gets 10/7 GB/s, although 9 GB/s are allowed: only a wider NIC
// helps.
TEST(Bottlenecks, TellAFlowsOwnLimitFromItsLinks) {
  const auto limit = [](const char* scheme, const char* per_flow) {
    const platforms::Platform platform =
        platform_of(fmt::format(R"("gpus": 1, "nic": {{"bandwidth": "10GB/s", "latency": "5us"{}}})", per_flow));
    const FabricGraph fabric(platform, platform.instance("node"), 8, 1);
    const Schedule schedule = plan(scheme, fabric, 1 << 30);
    const Job job = job_of(schedule);
    return run_folded(fabric, {&job, 1}, true).bottleneck;
  };
  EXPECT_EQ(limit("ring", "").what, "nic.up");
  const Bottleneck slow_flows = limit("ring", R"(, "per_flow": "1GB/s")");
  EXPECT_EQ(slow_flows.what, "per_flow");
  EXPECT_GT(slow_flows.share, 0.9);
  EXPECT_EQ(limit("ring", R"(, "per_flow": "9.9GB/s")").what, "per_flow");
  EXPECT_EQ(limit("ring", R"(, "per_flow": "11GB/s")").what, "nic.up");
  EXPECT_EQ(limit("reduce-to-one", R"(, "per_flow": "9GB/s")").what, limit("reduce-to-one", "").what);
}

}  // namespace
}  // namespace ganymede::sim

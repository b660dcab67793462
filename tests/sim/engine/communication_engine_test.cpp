#include "sim/engine/communication_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <ostream>
#include <sstream>

#include "common/process.hpp"
#include "sim/collectives/allreduce.hpp"
#include "test_platform.hpp"

namespace ganymede {
namespace {

using namespace literals;

constexpr ReductionCost kFree{BytesPerSecond{std::numeric_limits<double>::infinity()}, Seconds{0}};

/// SimGrid allows one engine a process: each simulation of a test is a child, which answers with numbers. Expectations
/// stand in the parent; a child's would be lost.
std::vector<double> in_child(const std::function<std::vector<Seconds>()>& work) {
  std::istringstream text(run_child([&] {
    std::string line;
    for (const Seconds value : work()) line += fmt::format("{} ", value.si);
    return line;
  }));
  return {std::istream_iterator<double>(text), {}};
}

Seconds last(const CollectiveTimes& times) { return *std::max_element(times.done.begin(), times.done.end()); }

/// All ranks start at 0; when does the last one finish?
double finish(const FabricGraph& fabric, const Schedule& schedule, const ReductionCost& cost = kFree) {
  return in_child([&] {
    CommunicationEngine engine(fabric, cost);
    const CollectiveCall call{&schedule, std::vector<Seconds>(static_cast<std::size_t>(fabric.ranks()))};
    return std::vector{last(engine.run({&call, 1}).front())};
  })[0];
}

struct StarCase {
  int ranks;
  const char* nic_latency;
  friend void PrintTo(const StarCase& star, std::ostream* out) {
    *out << star.ranks << " ranks, NIC " << star.nic_latency;
  }
};

class OnAStar : public testing::TestWithParam<StarCase> {};

// Ring over n one-GPU nodes: 2(n-1) (S/(nB) + 2 L_nic + L_fabric); the other schemes' forms stand in
// sim/collectives/closed_form.
TEST_P(OnAStar, EverySchemeTakesItsClosedForm) {
  const auto [ranks, nic_latency] = GetParam();
  const Platform platform = star_platform("12.5GB/s", nic_latency, "1us");
  const FabricGraph fabric(platform, platform.instance("one"), ranks, 1);
  const std::int64_t bytes = std::int64_t{ranks} << 20;
  const Star star{12.5_GB_per_s, 2 * parse_quantity<Seconds>(nic_latency) + 1_us, 900_GB_per_s};
  for (const auto& scheme : allreduce_schemes()) {
    const double expected = scheme.on_star(fabric.topology(), bytes, star).si;
    EXPECT_NEAR(finish(fabric, scheme.plan(fabric.topology(), bytes), {900_GB_per_s, 0_s}) / expected, 1, 1e-6)
        << scheme.name;
  }
}

TEST_P(OnAStar, RingTakesItsClosedFormWithFreeReduction) {
  const auto [ranks, nic_latency] = GetParam();
  const Platform platform = star_platform("12.5GB/s", nic_latency, "0us");
  const FabricGraph fabric(platform, platform.instance("one"), ranks, 1);
  const std::int64_t bytes = std::int64_t{ranks} << 20;
  const Seconds round =
      Bytes{static_cast<double>(bytes)} / ranks / 12.5_GB_per_s + 2 * parse_quantity<Seconds>(nic_latency);
  EXPECT_NEAR(finish(fabric, plan_ring(fabric.topology(), bytes)) / (2 * (ranks - 1) * round).si, 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Sizes, OnAStar,
                         testing::Values(StarCase{2, "5us"}, StarCase{3, "0us"}, StarCase{4, "1ms"}, StarCase{7, "5us"},
                                         StarCase{16, "5us"}),
                         [](const auto& test) {
                           return fmt::format("{}_ranks_{}", test.param.ranks, test.param.nic_latency);
                         });

// SimGrid shares a link in inverse proportion to the routes' latencies. Here two senders with unlike latencies feed one
// receiver: whatever the latency, equal flows must get equal shares of its 12.5 GB/s.
TEST(CommunicationEngine, SharesEquallyAtAnyLatency) {
  for (const char* latency : {"0us", "5us", "1ms"}) {
    const Platform platform = star_platform("12.5GB/s", latency, "0us");
    const FabricGraph fabric(platform, platform.instance("one"), 3, 1);
    const std::int64_t bytes = 125'000'000;
    const Schedule both(3, bytes, 1, [=](std::int64_t, std::vector<Transfer>& out) {
      out.push_back({0, 2, 0, bytes, true});
      out.push_back({1, 2, 0, bytes, true});
    });
    const auto done = in_child([&] {
      CommunicationEngine engine(fabric, kFree);
      const CollectiveCall call{&both, std::vector<Seconds>(3)};
      return engine.run({&call, 1}).front().done;
    });
    EXPECT_DOUBLE_EQ(done[0], done[1]) << latency;
    EXPECT_NEAR(done[2], (2 * 125e6 / 12.5e9) + 2 * parse_quantity<Seconds>(latency).si, 1e-9) << latency;
  }
}

TEST(CommunicationEngine, AFlowThatStartsLaterSharesFairlyWithOneUnderWay) {
  const Platform platform = star_platform("1GB/s", "1ms", "0us");
  const FabricGraph fabric(platform, platform.instance("one"), 3, 1);
  const std::int64_t bytes = 1'000'000'000;
  const Schedule both(3, bytes, 1, [=](std::int64_t, std::vector<Transfer>& out) {
    out.push_back({0, 2, 0, bytes, false});
    out.push_back({1, 2, 0, bytes, true});
  });
  // Rank 1 arrives 0.5 s late. Alone until then, rank 0 has sent 0.5 GB; its other 0.5 GB take 1 s at half rate; the
  // rest of rank 1's gigabyte (0.5 GB) then takes 0.5 s: ends at 1.5 s and 2.0 s, plus 2 ms of latency.
  const auto done = in_child([&] {
    CommunicationEngine engine(fabric, kFree);
    const CollectiveCall call{&both, {0_s, 0.5_s, 0_s}};
    return engine.run({&call, 1}).front().done;
  });
  EXPECT_NEAR(done[0], 1.502, 1e-9);
  EXPECT_NEAR(done[1], 2.002, 1e-9);
}

TEST(CommunicationEngine, ReductionIsPaidAtMemoryBandwidthAndOneAtATime) {
  const Platform platform = star_platform("12.5GB/s", "0us", "0us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const std::int64_t bytes = 30'000'000;
  const ReductionCost slow{1_GB_per_s, 0_s};
  const double wire = 2 * 3 * 30e6 / 12.5e9;
  const double adding = 3 * 3 * 30e6 / 1e9;  // three buffers, three bytes of traffic a byte
  EXPECT_NEAR(finish(fabric, plan_reduce_to_one(fabric.topology(), bytes), slow), wire + adding, 1e-9);
}

TEST(CommunicationEngine, LaunchDelaysEachCollectiveOnce) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan_ring(fabric.topology(), 4 << 20);
  const double without = finish(fabric, ring);
  EXPECT_NEAR(finish(fabric, ring, {kFree.memory_bandwidth, 20_us}), without + 20e-6, 1e-12);
}

TEST(CommunicationEngine, CollectivesOfOneCommunicatorRunInOrder) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan_ring(fabric.topology(), 4 << 20);
  const double alone = finish(fabric, ring);
  const double second = in_child([&] {
    CommunicationEngine engine(fabric, kFree);
    const std::vector<Seconds> zero(4);
    const CollectiveCall calls[] = {{&ring, zero}, {&ring, zero}};
    return std::vector{last(engine.run(calls)[1])};
  })[0];
  EXPECT_NEAR(second, 2 * alone, 1e-12);
}

TEST(CommunicationEngine, ALateRankDelaysARingByItsLateness) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan_ring(fabric.topology(), 4 << 20);
  const double alone = finish(fabric, ring);
  const double late = in_child([&] {
    CommunicationEngine engine(fabric, kFree);
    const CollectiveCall call{&ring, {0_s, 0_s, 2_s, 0_s}};
    return std::vector{last(engine.run({&call, 1}).front())};
  })[0];
  EXPECT_NEAR(late, 2 + alone, 1e-9);
}

TEST(CommunicationEngine, AnswersDoNotDependOnWhatRanBefore) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule ring = plan_ring(fabric.topology(), 4 << 20);
  const Schedule pause(4, 1, 0, [](std::int64_t, std::vector<Transfer>&) {});
  const double alone = finish(fabric, ring);
  const double later = in_child([&] {
    CommunicationEngine engine(fabric, kFree);
    // A day on the simulated clock: rank 1 arrives that late at a collective without transfers.
    const CollectiveCall wait{&pause, {0_s, 86400_s, 0_s, 0_s}};
    engine.run({&wait, 1});
    const CollectiveCall call{&ring, std::vector<Seconds>(4)};
    return std::vector{last(engine.run({&call, 1}).front())};
  })[0];
  EXPECT_NEAR(later / alone, 1, 1e-6);
}

TEST(CommunicationEngine, CountsMessages) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 5, 1);
  const Schedule ring = plan_ring(fabric.topology(), 5 << 20);
  const std::string messages = run_child([&] {
    CommunicationEngine engine(fabric, kFree);
    const CollectiveCall call{&ring, std::vector<Seconds>(5)};
    return std::to_string(engine.run({&call, 1}).front().messages);
  });
  EXPECT_EQ(messages, std::to_string(2 * (5 - 1) * 5));
}

}  // namespace
}  // namespace ganymede

// The closed forms against an execution of the schedules, written here once more without SimGrid: on a star whose
// messages of a round share each rank's links equally, a round lasts as long as its busiest link, and then its busiest
// adder.

#include "sim/collectives/closed_form.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cases.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede {
namespace {

using namespace ganymede::literals;

const Star kStar{.bandwidth = 12.5_GB_per_s, .latency = 10_us, .memory_bandwidth = 900_GB_per_s};

// Valid for schemes in whose rounds all ranks with something to do start together, as in the three here.
Seconds executed(const Schedule& schedule, const Star& star) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  Seconds total{0};
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    std::vector<double> up(ranks), down(ranks), added(ranks);
    for (const Transfer& t : transfers) {
      up[static_cast<std::size_t>(t.source)] += static_cast<double>(t.length);
      down[static_cast<std::size_t>(t.destination)] += static_cast<double>(t.length);
      if (t.reduce) added[static_cast<std::size_t>(t.destination)] += static_cast<double>(t.length);
    }
    const double busiest =
        std::max(*std::max_element(up.begin(), up.end()), *std::max_element(down.begin(), down.end()));
    const double adder = *std::max_element(added.begin(), added.end());
    if (!transfers.empty()) total += star.latency;
    total += Bytes{busiest} / star.bandwidth + 3 * Bytes{adder} / star.memory_bandwidth;
  }
  return total;
}

TEST(ClosedForm, EqualsTheExecutionOfEverySchedule) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    for (const auto& [topology, bytes] : all_cases()) {
      const std::int64_t whole = bytes / topology.ranks * topology.ranks;  // where ring's formula is exact
      const Seconds expected = executed(scheme.plan(topology, whole), kStar);
      EXPECT_NEAR(scheme.on_star(topology, whole, kStar).si, expected.si, 1e-12 * expected.si)
          << scheme.name << ", " << topology.ranks << " ranks, " << topology.gpus_per_node << " a node, " << whole;
    }
  }
}

// Two ranks, S = 1.25 MB: S/B = 100 us. Everything else is L = 10 us and 3 S/M of the reduction.
TEST(ClosedForm, OfTwoRanksByHand) {
  const Star star{.bandwidth = 12.5_GB_per_s, .latency = 10_us, .memory_bandwidth = 37.5_GB_per_s};
  constexpr std::int64_t kBytes = 1'250'000;
  // Two rounds of half a buffer, and half a buffer added: 2 (50 us + 10 us) + 50 us.
  EXPECT_NEAR(ring_on_star(flat(2), kBytes, star).si, 170e-6, 1e-15);
  // There and back, and a whole buffer added: 2 (100 us + 10 us) + 100 us.
  EXPECT_NEAR(reduce_to_one_on_star(flat(2), kBytes, star).si, 320e-6, 1e-15);
  EXPECT_EQ(hierarchical_copy_on_star(flat(2), kBytes, star), reduce_to_one_on_star(flat(2), kBytes, star));
}

TEST(ClosedForm, ReductionIsFreeWithoutAMemoryBandwidth) {
  const Star free{.bandwidth = 12.5_GB_per_s, .latency = 10_us};
  EXPECT_NEAR(ring_on_star(flat(4), 50'000'000, free).si, 6 * (1e-3 + 10e-6), 1e-15);
}

TEST(ClosedForm, MoreBandwidthIsNeverSlowerAndMoreLatencyNeverFaster) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    for (const auto& [topology, bytes] : all_cases()) {
      const Seconds time = scheme.on_star(topology, bytes, kStar);
      Star wider = kStar, farther = kStar, faster = kStar;
      wider.bandwidth *= 2;
      farther.latency *= 2;
      faster.memory_bandwidth *= 2;
      EXPECT_LE(scheme.on_star(topology, bytes, wider), time) << scheme.name;
      EXPECT_GE(scheme.on_star(topology, bytes, farther), time) << scheme.name;
      EXPECT_LE(scheme.on_star(topology, bytes, faster), time) << scheme.name;
    }
  }
}

}  // namespace
}  // namespace ganymede

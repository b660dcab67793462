// Compares the closed forms with an execution of the schedules that is written here without SimGrid. On a star, the
// messages of a round share each rank's links equally, so a round lasts as long as its busiest link, followed by its
// busiest adder.

#include "sim/collectives/closed_form.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cases.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;

const Star kStar{.bandwidth = 12.5_GB_per_s, .latency = 10_us, .memory_bandwidth = 900_GB_per_s};

// Valid for schemes in whose rounds all ranks with something to do start together.
Seconds executed(const Schedule& schedule, const Star& star) {
  const auto ranks = static_cast<std::size_t>(schedule.endpoints());
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
  int forms = 0;
  for (const Case& item : all_cases()) {
    if (item.scheme->on_star == nullptr || !item.request.topology.node_sizes.empty()) continue;
    const Seconds expected = executed(item.schedule(), kStar);
    EXPECT_NEAR(item.scheme->on_star(item.request, kStar).si, expected.si, 1e-12 * expected.si) << item.name();
    ++forms;
  }
  EXPECT_GT(forms, 1000);
}

Seconds form(const char* scheme, int ranks, std::int64_t bytes, const Star& star) {
  const Scheme parsed = parse_scheme(scheme);
  return parsed.row->on_star({flat(ranks), bytes, Collective::all_reduce, parsed.variant}, star);
}

// Two ranks, S = 1.25 MB: S/B = 100 us. Everything else is L = 10 us and 3 S/M of the reduction.
TEST(ClosedForm, OfTwoRanksByHand) {
  const Star star{.bandwidth = 12.5_GB_per_s, .latency = 10_us, .memory_bandwidth = 37.5_GB_per_s};
  constexpr std::int64_t kBytes = 1'250'000;
  // Two rounds of half a buffer, and half a buffer added: 2 (50 us + 10 us) + 50 us.
  EXPECT_NEAR(form("ring", 2, kBytes, star).si, 170e-6, 1e-15);
  EXPECT_NEAR(form("halving-doubling", 2, kBytes, star).si, 170e-6, 1e-15);
  // One exchange of whole buffers, and one addition of a whole buffer.
  EXPECT_NEAR(form("recursive-doubling", 2, kBytes, star).si, 210e-6, 1e-15);
  // A whole buffer is sent, added and sent back: 2 (100 us + 10 us) + 100 us.
  EXPECT_NEAR(form("reduce-to-one", 2, kBytes, star).si, 320e-6, 1e-15);
  EXPECT_EQ(form("hierarchical-copy", 2, kBytes, star), form("reduce-to-one", 2, kBytes, star));
  EXPECT_EQ(form("parameter-server:whole", 2, kBytes, star), form("reduce-to-one", 2, kBytes, star));
}

// The forms that the literature gives, with free reduction, S = 64 MiB, n = 16.
TEST(ClosedForm, IsTheTextbooksWhereReductionIsFree) {
  const Star free{.bandwidth = 12.5_GB_per_s, .latency = 10_us};
  const double s = 64 << 20, b = 12.5e9, l = 10e-6;
  EXPECT_NEAR(form("ring", 16, 64 << 20, free).si, 30 * (s / 16 / b + l), 1e-12);
  EXPECT_NEAR(form("halving-doubling", 16, 64 << 20, free).si, 2 * s * 15 / 16 / b + 8 * l, 1e-12);
  EXPECT_NEAR(form("recursive-doubling", 16, 64 << 20, free).si, 4 * (s / b + l), 1e-12);
  EXPECT_NEAR(form("torus:4x4", 16, 64 << 20, free).si, 6 * (s / 4 / b + l) + 6 * (s / 16 / b + l), 1e-12);
}

TEST(ClosedForm, MoreBandwidthIsNeverSlowerAndMoreLatencyNeverFaster) {
  for (const Case& item : all_cases()) {
    if (item.scheme->on_star == nullptr) continue;
    const Seconds time = item.scheme->on_star(item.request, kStar);
    Star wider = kStar, farther = kStar, faster = kStar;
    wider.bandwidth *= 2;
    farther.latency *= 2;
    faster.memory_bandwidth *= 2;
    EXPECT_LE(item.scheme->on_star(item.request, wider), time) << item.name();
    EXPECT_GE(item.scheme->on_star(item.request, farther), time) << item.name();
    EXPECT_LE(item.scheme->on_star(item.request, faster), time) << item.name();
  }
}

}  // namespace
}  // namespace ganymede::sim

// Tests how a folded simulation skips rounds: it compares its states and counts messages.

#include <gtest/gtest.h>

#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/transfer_progress.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

/// A state with one remaining time of 1 us and 1000 bytes on a link of 1 GB/s.
StateSnapshot snapshot(double time, std::int64_t round) {
  return {time, round, round, round, {0, 2}, {1e-6, 1000}, {1, 1e9}};
}

TEST(SteadyState, RepeatsWhereOnlyTimeAndRoundDiffer) {
  EXPECT_TRUE(repeats(snapshot(1, 5), snapshot(2, 6)));
  EXPECT_FALSE(repeats(snapshot(2, 6), snapshot(2, 6))) << "no time has passed";
  StateSnapshot other = snapshot(2, 6);
  other.exact[1] = 1;
  EXPECT_FALSE(repeats(snapshot(1, 5), other));
}

// One second lies between the snapshots, so times may differ by 1e-10 s, and bytes by what the link carries in that
// time: 1e9 x 1e-10 = 0.1.
TEST(SteadyState, TheToleranceIsAShareOfTheTimeBetween) {
  StateSnapshot later = snapshot(2, 6);
  later.approximate = {1e-6 + 0.9e-10, 1000.09};
  EXPECT_TRUE(repeats(snapshot(1, 5), later));
  later.approximate = {1e-6 + 1.1e-10, 1000};
  EXPECT_FALSE(repeats(snapshot(1, 5), later));
  later.approximate = {1e-6, 1000.11};
  EXPECT_FALSE(repeats(snapshot(1, 5), later));
}

// Two GPUs with links of two kinds: each message takes two paths. The source may be ahead of the destination.
TEST(TransferProgress, CountsMessagesAndTheirParts) {
  const platforms::Platform platform = platform_of(
      R"("gpus": 2, "host_link": {"bandwidth": "10GB/s", "latency": "0us"},
         "gpu_links": {"kind": "nvlink", "bandwidth": "30GB/s", "latency": "0us", "with_host_link": true})");
  const FabricGraph fabric(platform, platform.instance("node"), 1, 2);
  const Schedule schedule = parse_scheme("ring").plan({fabric.topology(), 8, Collective::all_reduce, ""});
  const Job job = job_of(schedule);
  const Quotient quotient = Symmetry(fabric, {&job, 1}).quotient();
  ASSERT_EQ(quotient.transfers[0].flows.size(), 2U);
  TransferProgress progress(quotient);
  EXPECT_FALSE(progress.offer(0));
  EXPECT_FALSE(progress.offer(0));
  EXPECT_EQ(progress.waiting(0), 2);
  EXPECT_TRUE(progress.accept(0));
  EXPECT_TRUE(progress.accept(0));
  EXPECT_FALSE(progress.accept(0));
  EXPECT_EQ(progress.waiting(0), -1);
  EXPECT_TRUE(progress.offer(0));
  progress.start(0);
  EXPECT_FALSE(progress.leave(0));
  EXPECT_TRUE(progress.leave(0));
  // The faster path may deliver its part of the next message before the slower one delivers that of the first.
  EXPECT_FALSE(progress.arrive(0, 0));
  EXPECT_FALSE(progress.arrive(0, 0));
  EXPECT_EQ(progress.ahead(0, 0), 2);
  EXPECT_TRUE(progress.arrive(0, 1));
  EXPECT_TRUE(progress.arrive(0, 1));
  EXPECT_EQ(progress.ahead(0, 0), 0);
  EXPECT_EQ(progress.waiting(1), 0) << "transfers are counted apart";
}

}  // namespace
}  // namespace ganymede::sim

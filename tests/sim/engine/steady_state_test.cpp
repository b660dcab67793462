// Tests how a folded simulation skips rounds: it compares its states and tracks which rounds are open.

#include "sim/engine/steady_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/open_rounds.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

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

// In reduce-to-one the root and the others are two classes; a round is open until both have left it.
TEST(OpenRounds, AreOpenFromTheFirstEntryToTheLastLeave) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule schedule = parse_scheme("reduce-to-one").plan({fabric.topology(), 8, Collective::all_reduce, ""});
  const Job job = job_of(schedule);
  const Quotient quotient = quotient_of(fabric, {&job, 1});
  OpenRounds rounds(quotient);
  OpenRound& first = rounds.enter(0, 0, 0);
  EXPECT_THAT(first.ready, ElementsAre(0));  // one class of messages, of one path each
  EXPECT_THAT(first.arriving, ElementsAre(1));
  EXPECT_THAT(first.leaving, ElementsAre(1));
  first.ready[0] = 1;
  EXPECT_EQ(&rounds.enter(0, 0, 0), &first);
  EXPECT_EQ(first.ready[0], 1) << "the second class to enter must not reset the round";
  rounds.leave(0, 0, 0);
  rounds.enter(0, 0, 1);
  EXPECT_THAT(rounds.of_call(0, 0), testing::UnorderedElementsAre(Key(0), Key(1)));
  rounds.leave(0, 0, 0);
  EXPECT_THAT(rounds.of_call(0, 0), ElementsAre(Key(1)));
  rounds.advance(0, 0, 10);
  EXPECT_THAT(rounds.of_call(0, 0), ElementsAre(Key(11)));
  rounds.leave(0, 0, 11);
  rounds.leave(0, 0, 11);
  EXPECT_THAT(rounds.of_call(0, 0), IsEmpty());
}

}  // namespace
}  // namespace ganymede::sim

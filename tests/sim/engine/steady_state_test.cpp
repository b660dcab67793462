// Tests how a folded simulation skips rounds: it compares its states and tracks which messages are open.

#include "sim/engine/steady_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/open_messages.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

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

// In reduce-to-one the root and the others are two classes, and each of the two rounds has one class of messages.
TEST(OpenMessages, KeepTheProgressOfAMessageUntilItIsClosed) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph fabric(platform, platform.instance("one"), 4, 1);
  const Schedule schedule = parse_scheme("reduce-to-one").plan({fabric.topology(), 8, Collective::all_reduce, ""});
  const Job job = job_of(schedule);
  const Quotient quotient = quotient_of(fabric, {&job, 1});
  OpenMessages messages(quotient);
  const auto open = [&] {
    std::vector<std::pair<int, std::int64_t>> keys;
    messages.each(
        [&](int transfer, std::int64_t round, const OpenMessage& /*message*/) { keys.emplace_back(transfer, round); });
    return keys;
  };
  OpenMessage& first = messages.open(0, 0);
  EXPECT_EQ(first.ready, 0);
  EXPECT_EQ(first.arriving, 1);  // of one path
  EXPECT_EQ(first.leaving, 1);
  first.ready = 1;
  EXPECT_EQ(messages.open(0, 0).ready, 1) << "the second end to enter must not reset the message";
  messages.open(1, 1);
  EXPECT_THAT(open(), UnorderedElementsAre(Pair(0, 0), Pair(1, 1)));
  messages.advance(10);
  EXPECT_THAT(open(), UnorderedElementsAre(Pair(0, 10), Pair(1, 11)));
  EXPECT_EQ(messages.open(0, 10).ready, 1);
  messages.close(0, 10);
  messages.close(1, 11);
  EXPECT_THAT(open(), IsEmpty());
}

}  // namespace
}  // namespace ganymede::sim

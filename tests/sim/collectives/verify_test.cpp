// Tests the verifier: it must find and name each kind of mistake.

#include "verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {
namespace {

using ::testing::HasSubstr;

using Rounds = std::vector<std::vector<Transfer>>;

Schedule scripted(int ranks, std::int64_t bytes, const Rounds& rounds) {
  std::vector<Stage> stages;
  for (const auto& round : rounds)
    stages.push_back({1, [round](std::int64_t /*round*/, std::vector<Transfer>& transfers) {
                        transfers.insert(transfers.end(), round.begin(), round.end());
                      }});
  return Schedule(ranks, bytes, std::move(stages));
}

Rounds expanded(const Schedule& schedule) {
  Rounds rounds(static_cast<std::size_t>(schedule.rounds()));
  for (std::int64_t i = 0; i < schedule.rounds(); ++i) schedule.round(i, rounds[static_cast<std::size_t>(i)]);
  return rounds;
}

std::string violation(int ranks, std::int64_t bytes, const Rounds& rounds) {
  const Completeness verdict = is_complete(scripted(ranks, bytes, rounds));
  EXPECT_EQ(static_cast<bool>(verdict), verdict.violation.empty());
  return verdict.violation;
}

TEST(IsComplete, AcceptsAnExchangeOfTwo) { EXPECT_EQ(violation(2, 8, {{{0, 1, 0, 8, true}, {1, 0, 0, 8, true}}}), ""); }

TEST(IsComplete, AcceptsNothingToDo) {
  EXPECT_EQ(violation(1, 8, {}), "");
  EXPECT_EQ(violation(4, 0, {}), "");
  EXPECT_EQ(violation(4, 0, {{}, {}}), "");
}

TEST(IsComplete, FindsWhatNobodySent) {
  EXPECT_EQ(violation(2, 8, {}),
            "after the last round rank 0 holds rank 1's contribution to bytes [0, 8) 0 times, expected once");
  // The second half of the bytes is sent in one direction only.
  EXPECT_EQ(violation(2, 8, {{{0, 1, 0, 8, true}, {1, 0, 0, 4, true}}}),
            "after the last round rank 0 holds rank 1's contribution to bytes [4, 8) 0 times, expected once");
}

TEST(IsComplete, FindsWhatWasAddedTwice) {
  EXPECT_THAT(violation(2, 8, {{{0, 1, 0, 8, true}, {1, 0, 0, 8, true}}, {{0, 1, 2, 3, true}}}),
              HasSubstr("rank 1 holds rank 0's contribution to bytes [2, 5) 2 times"));
}

// A ring is wrong if any of its transfers is missing, sent twice, or not added.
TEST(IsComplete, FindsEveryBrokenTransferOfARing) {
  const Rounds ring = expanded(parse_scheme("ring").plan({flat(5), 25, Collective::all_reduce, ""}));
  ASSERT_EQ(violation(5, 25, ring), "");
  for (std::size_t round = 0; round < ring.size(); ++round) {
    for (std::size_t i = 0; i < ring[round].size(); ++i) {
      Rounds without = ring, flipped = ring, shifted = ring;
      without[round].erase(without[round].begin() + static_cast<std::ptrdiff_t>(i));
      flipped[round][i].reduce = !flipped[round][i].reduce;
      shifted[round][i].length -= 1;
      EXPECT_NE(violation(5, 25, without), "") << round << ", " << i;
      EXPECT_NE(violation(5, 25, flipped), "") << round << ", " << i;
      EXPECT_NE(violation(5, 25, shifted), "") << round << ", " << i;
    }
  }
}

// A transfer carries what its source held before the round, so rank 1 does not pass on what it receives in the same
// round.
TEST(IsComplete, TransfersOfARoundDoNotSeeEachOther) {
  EXPECT_THAT(violation(3, 1, {{{0, 1, 0, 1, true}, {1, 2, 0, 1, true}}}),
              HasSubstr("rank 0 holds rank 1's contribution to bytes [0, 1) 0 times"));
  const Rounds chain = {{{0, 1, 0, 1, true}, {1, 2, 0, 1, true}}, {{2, 0, 0, 1, false}}, {{2, 1, 0, 1, false}}};
  EXPECT_THAT(violation(3, 1, chain), HasSubstr("rank 0 holds rank 0's contribution to bytes [0, 1) 0 times"));
}

TEST(IsComplete, FindsRaces) {
  EXPECT_EQ(violation(3, 8, {{{0, 2, 0, 8, true}, {1, 2, 4, 4, false}}}),
            "round 0: 1 -> 2, bytes [4, 8): races with round 0: 0 -> 2, bytes [0, 8), reduced");
}

TEST(IsComplete, FindsTransfersThatMakeNoSense) {
  EXPECT_THAT(violation(2, 8, {{{0, 2, 0, 8, true}}}), HasSubstr("has an end outside the 2 endpoints"));
  EXPECT_THAT(violation(2, 8, {{{-1, 1, 0, 8, true}}}), HasSubstr("has an end outside the 2 endpoints"));
  EXPECT_THAT(violation(2, 8, {{{1, 1, 0, 8, true}}}), HasSubstr("sends to itself"));
  EXPECT_THAT(violation(2, 8, {{{0, 1, 0, 0, true}}}), HasSubstr("carries nothing"));
  EXPECT_THAT(violation(2, 8, {{{0, 1, 1, 8, true}}}), HasSubstr("leaves the buffer of 8 bytes"));
  EXPECT_THAT(violation(2, 8, {{{0, 1, -1, 8, true}}}), HasSubstr("leaves the buffer of 8 bytes"));
}

}  // namespace
}  // namespace ganymede::sim

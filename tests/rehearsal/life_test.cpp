// The parts of a rehearsed life that its processes share; whole lives are in tests/cli/rehearse_life_test.cpp.

#include <gtest/gtest.h>

#include <csignal>

#include "common/errors.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/life_workers.hpp"

namespace ganymede::rehearsal {
namespace {

TEST(LifeBoard, StopsAllRanksAfterTheStepThatOneHasBegun) {
  LifeBoard board(2, 0, 10);
  EXPECT_TRUE(board.set_last(10));
  EXPECT_TRUE(board.begin(1));
  board.stop();
  EXPECT_TRUE(board.begin(1));   // the second rank joins the step of the first
  EXPECT_FALSE(board.begin(2));  // and neither begins the next
  EXPECT_FALSE(board.begin(2));
}

TEST(LifeBoard, EndsAfterTheLastStepUnlessItIsMoved) {
  LifeBoard board(1, 0, 10);
  EXPECT_TRUE(board.set_last(1));
  EXPECT_TRUE(board.begin(1));
  EXPECT_TRUE(board.set_last(2));
  EXPECT_TRUE(board.begin(2));
  EXPECT_FALSE(board.begin(3));
  EXPECT_FALSE(board.set_last(4));  // too late: the rank ends
  EXPECT_FALSE(board.begin(3));
}

TEST(LifeBoard, AsksAllRanksForTheSameCheckpoint) {
  LifeBoard board(2, 0, 10);
  EXPECT_TRUE(board.set_last(10));
  board.orders().due = 1;
  board.orders().every = 3;
  EXPECT_FALSE(board.begin(1)->checkpoint_first);
  EXPECT_TRUE(board.begin(2)->checkpoint_first);
  board.begin_saving(5);
  EXPECT_EQ(board.saved().since, 5);
  board.end_saving(1, 7);
  EXPECT_TRUE(board.begin(2)->checkpoint_first);  // of the second rank, which comes late
  EXPECT_EQ(board.saved().count, 1);
  EXPECT_EQ(board.saved().after_step, 1);
  EXPECT_EQ(board.saved().seconds, 2);
  EXPECT_EQ(board.saved().since, 0);
  EXPECT_FALSE(board.begin(3)->checkpoint_first);
  EXPECT_EQ(board.orders().due.load(), 4);
}

TEST(LifeBoard, KeepsWhatEachRankPlayed) {
  LifeBoard board(2, 1, 10);
  const auto step = [](double begin) {
    return PlayedStep{.begin = begin,
                      .end = begin + 3,
                      .input_stall = 0.5,
                      .issued = {begin + 1},
                      .wait_begin = {begin + 1},
                      .wait_end = {begin + 2}};
  };
  board.finish(0, step(10));
  EXPECT_EQ(board.finished(), 0);
  board.finish(1, step(20));
  EXPECT_EQ(board.finished(), 1);
  const auto played = board.played(0, 1);
  ASSERT_EQ(played.size(), 1U);
  EXPECT_EQ(played[0][0].begin, 10);
  EXPECT_EQ(played[0][1].end, 23);
  EXPECT_EQ(played[0][1].wait_end, std::vector<double>{22});
}

// A step from 0 to 10 s. Rank 0 issues its bucket at 4 s, rank 1 at 6 s, and both have it at 9 s.
TEST(PlayedSteps, SplitWaitingBetweenStragglersAndTheNetwork) {
  PlayedStep early{.begin = 0, .end = 10, .issued = {4}, .wait_begin = {4}, .wait_end = {9}}, late = early;
  late.issued = late.wait_begin = {6};
  const StepParts parts = PlayedSteps({{early, late}}, {0}).parts();
  EXPECT_DOUBLE_EQ(parts.step, 10);
  EXPECT_DOUBLE_EQ(parts.straggler, (2 + 0) / 2.0);
  EXPECT_DOUBLE_EQ(parts.exposed, (3 + 3) / 2.0);
  EXPECT_DOUBLE_EQ(parts.compute, 10 - 1 - 3);
}

TEST(LifeCheckpoint, SurvivesAProcessThatIsKilledWhileItWrites) {
  LifeCheckpoint checkpoint(1e6);
  EXPECT_THROW(checkpoint.read(0), Failure);
  checkpoint.write(0);
  EXPECT_EQ(checkpoint.complete(), 1);
  const pid_t writer = start_process(0, [&] { checkpoint.write(machine_time() + 60); });
  kill_and_bury(writer, true);
  EXPECT_EQ(checkpoint.complete(), 1);
  EXPECT_NO_THROW(checkpoint.read(0));
}

TEST(LifeProcesses, NodesBootHearOfNoticesAndDie) {
  const WakePipe pipe;
  const pid_t node = start_node(pipe, 7, 0);
  const auto heard = [&](Wake::Kind kind) {
    for (int i = 0; i < 1000; ++i) {
      if (const auto wake = pipe.take()) return wake->kind == kind && wake->number == 7;
      pipe.wait(0.01);
    }
    return false;
  };
  EXPECT_TRUE(heard(Wake::Kind::node_ready));
  ::kill(node, SIGTERM);
  EXPECT_TRUE(heard(Wake::Kind::notice_heard));
  EXPECT_FALSE(how_it_ended(node));
  ::kill(node, SIGKILL);
  for (int i = 0; i < 1000 && !how_it_ended(node); ++i) pipe.wait(0.01);
  EXPECT_EQ(how_it_ended(node), "signal 9 (Killed)");
  EXPECT_EQ(how_it_ended(node), "signal 9 (Killed)");  // asked again: it is not yet buried
  kill_and_bury(node, true);
  EXPECT_NE(::kill(node, 0), 0);
}

}  // namespace
}  // namespace ganymede::rehearsal

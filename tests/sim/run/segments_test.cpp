// Segments and progress of training with steps of 10 ms and a checkpoint of one second after each 100 steps.

#include <gtest/gtest.h>

#include <cmath>

#include "common/units.hpp"
#include "run_literals.hpp"

namespace ganymede::sim {
namespace {

constexpr Nanoseconds kStepNs = 10'000'000;

Segment with_checkpoints(const StepDistribution& steps) {
  Segment segment;
  segment.steps = &steps;
  segment.configuration.nodes = {2};
  segment.step_ns = kStepNs;
  segment.checkpoint_every = 100;
  segment.checkpoint_ns = kSecond;
  return segment;
}

class Segments : public testing::Test {
 protected:
  StepDistribution steps_ = literal_steps({2});
  Segment segment_ = with_checkpoints(steps_);
};

TEST_F(Segments, WithoutCheckpointsAreProportionalToTime) {
  segment_.checkpoint_every = 0;
  segment_.start = 5 * kSecond;
  EXPECT_EQ(segment_.at(5 * kSecond).steps, 0);
  EXPECT_EQ(segment_.at(5 * kSecond + 7 * kStepNs / 2).steps, 3.5);
  EXPECT_EQ(segment_.time_of(3.5), 5 * kSecond + 7 * kStepNs / 2);
}

// 100 steps take one second, and the checkpoint another.
TEST_F(Segments, StandStillWhileACheckpointIsWritten) {
  const SegmentProgress before = segment_.at(kSecond - kStepNs);
  EXPECT_DOUBLE_EQ(before.steps, 99);
  EXPECT_EQ(before.checkpoints, 0);
  const SegmentProgress during = segment_.at(kSecond + kSecond / 4);
  EXPECT_DOUBLE_EQ(during.steps, 100);
  EXPECT_EQ(during.checkpoints, 0);
  EXPECT_DOUBLE_EQ(during.writing_ns, kSecond / 4.0);
  const SegmentProgress after = segment_.at(2 * kSecond + 5 * kStepNs);
  EXPECT_DOUBLE_EQ(after.steps, 105);
  EXPECT_EQ(after.checkpoints, 1);
  EXPECT_EQ(segment_.at(4 * kSecond).checkpoints, 2);
}

TEST_F(Segments, CountStepsSinceTheLastCheckpoint) {
  segment_.since_checkpoint = 40;
  EXPECT_EQ(segment_.at(60 * kStepNs + kSecond).checkpoints, 1);
  EXPECT_EQ(segment_.at(60 * kStepNs + kSecond - 1).checkpoints, 0);
  EXPECT_DOUBLE_EQ(segment_.durable_steps(1), 60);
  EXPECT_DOUBLE_EQ(segment_.durable_steps(3), 260);
}

TEST_F(Segments, FinishACheckpointThatIsPartlyWritten) {
  segment_.since_checkpoint = 100;
  segment_.checkpoint_written = 0.25;
  EXPECT_EQ(segment_.at(3 * kSecond / 4 - 1).checkpoints, 0);
  EXPECT_EQ(segment_.at(3 * kSecond / 4).checkpoints, 1);
  EXPECT_EQ(segment_.time_of(1), 3 * kSecond / 4 + kStepNs);
}

// The last step before a checkpoint is done when the writing begins; the next one waits for it.
TEST_F(Segments, KnowWhenAStepIsDone) {
  EXPECT_EQ(segment_.time_of(100), kSecond);
  EXPECT_EQ(segment_.time_of(101), 2 * kSecond + kStepNs);
  for (const double steps : {1.0, 57.5, 101.0, 250.0, 399.0})
    EXPECT_NEAR(segment_.at(segment_.time_of(steps)).steps, steps, 1e-6);
}

class Progress : public Segments {
 protected:
  GpuSeconds account(Nanoseconds held) {
    Ledger ledger = progress_.ledger(0);
    ledger.hold(2, held);
    return ledger.close();
  }
  TrainingProgress progress_{{{.gpus = 1, .vcpus = 8, .memory_bytes = 0}}};
};

// After 2.5 s: 150 steps, of which the first 100 are durable.
TEST_F(Progress, KeepsWhatACheckpointHolds) {
  progress_.begin_segment(segment_, false);
  EXPECT_DOUBLE_EQ(progress_.done(5 * kSecond / 2), 150);
  EXPECT_DOUBLE_EQ(progress_.at_risk(5 * kSecond / 2).si, 0.5);
  EXPECT_EQ(progress_.end_segment(5 * kSecond / 2, true, 0), 1);
  EXPECT_DOUBLE_EQ(progress_.done(0), 100);
  EXPECT_DOUBLE_EQ(progress_.durable(), 100);
  EXPECT_DOUBLE_EQ(progress_.images(), 100 * 128);
  EXPECT_DOUBLE_EQ(progress_.lost().si, 0.5);
  EXPECT_DOUBLE_EQ(progress_.account().totals.steps, 150);
  // Two workers: a second of steps, of which a fifth is communication; a second of writing; half a second lost.
  const GpuSeconds account = this->account(5 * kSecond / 2);
  EXPECT_DOUBLE_EQ(account.seconds(GpuUse::compute), 1.6);
  EXPECT_DOUBLE_EQ(account.seconds(GpuUse::exposed_communication), 0.4);
  EXPECT_DOUBLE_EQ(account.seconds(GpuUse::checkpoint), 2);
  EXPECT_DOUBLE_EQ(account.seconds(GpuUse::lost), 1);
  EXPECT_DOUBLE_EQ(account.seconds(GpuUse::idle), 0);
}

TEST_F(Progress, WithoutALossGoesOnWhereItEnded) {
  progress_.begin_segment(segment_, false);
  progress_.end_segment(30 * kStepNs + kStepNs / 2, false, 0);
  EXPECT_DOUBLE_EQ(progress_.done(0), 30.5);
  EXPECT_DOUBLE_EQ(progress_.since_durable(), 30.5);
  segment_.start = kSecond;
  progress_.begin_segment(segment_, true);
  EXPECT_DOUBLE_EQ(progress_.segment().since_checkpoint, 30.5);
}

TEST_F(Progress, FinishesACheckpointWithTheSameWorkersOnly) {
  for (const bool same_workers : {true, false}) {
    TrainingProgress progress({{.gpus = 1, .vcpus = 8, .memory_bytes = 0}});
    progress.begin_segment(segment_, false);
    progress.end_segment(kSecond + kSecond / 4, false, 0);
    progress.begin_segment(segment_, same_workers);
    EXPECT_DOUBLE_EQ(progress.segment().checkpoint_written, same_workers ? 0.25 : 0);
  }
}

// Half of an interval of 100 steps is over. If steps take twice as long, an interval has 50 steps, of which 25 are
// left.
TEST_F(Progress, KeepsTheShareOfACheckpointIntervalThatIsOver) {
  progress_.begin_segment(segment_, false);
  progress_.end_segment(50 * kStepNs, false, 0);
  segment_.checkpoint_every = 50;
  segment_.step_ns = 2 * kStepNs;
  progress_.begin_segment(segment_, true);
  EXPECT_DOUBLE_EQ(progress_.segment().checkpoint_every - progress_.segment().since_checkpoint, 25);
}

TEST_F(Progress, IsDurableAfterASave) {
  progress_.begin_segment(segment_, false);
  progress_.end_segment(50 * kStepNs, false, 0);
  progress_.save();
  EXPECT_DOUBLE_EQ(progress_.durable(), 50);
  progress_.lose();
  EXPECT_DOUBLE_EQ(progress_.done(0), 50);
  EXPECT_DOUBLE_EQ(progress_.lost().si, 0);
  EXPECT_EQ(progress_.account().totals.checkpoints, 1);
}

// Several workers may be off by a factor of 1.5, a third less or half more: what is below the
// relative error of 40 % does not count.
TEST_F(Progress, TheErrorOfSeveralWorkersIsAFactor) {
  steps_.error = std::log(1.5);
  progress_.begin_segment(segment_, false);
  progress_.end_segment(50 * kStepNs, false, 0.4);
  EXPECT_DOUBLE_EQ(progress_.account().error.shorter_s, 0.4 * 0.5);
  EXPECT_DOUBLE_EQ(progress_.account().error.longer_s, 0.5 * 0.5);
}

// A relative error of 10 % on half a second, and steps whose own variance is 4 ms² each.
TEST_F(Progress, AddsUpItsError) {
  steps_.own_variance = 4e-6;
  steps_.low = Seconds{9e-3};
  steps_.high = Seconds{12e-3};
  progress_.begin_segment(segment_, false);
  progress_.end_segment(50 * kStepNs, false, 0.1);
  EXPECT_DOUBLE_EQ(progress_.account().error.shorter_s, 0.05);
  EXPECT_DOUBLE_EQ(progress_.account().error.longer_s, 0.05);
  EXPECT_DOUBLE_EQ(progress_.account().error.own_s2, 50 * 4e-6);
  EXPECT_NEAR(progress_.account().error.low_s, 50 * 1e-3, 1e-12);
  EXPECT_NEAR(progress_.account().error.high_s, 50 * 2e-3, 1e-12);
}

}  // namespace
}  // namespace ganymede::sim

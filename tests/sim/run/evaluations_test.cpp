// Pauses in which the model is evaluated. Two nodes begin to train 1,000 steps of 10 ms at 0 s; the time is 5 s.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "run_literals.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;

class EvaluatingRun : public RunInTheMiddle {
 public:
  explicit EvaluatingRun(Scenario literal) : RunInTheMiddle(std::move(literal)) {
    for (int i = 0; i < 2; ++i) state.fleet.set_member(add_ready(), true);
    state.has_trained = true;
    begin_segment(context, state, start);
    advance_clock(context, state, 5 * kSecond);
  }
  Actions start;  ///< the actions that began the current segment
};

/// Evaluations of 3 s and of another 8 s that the GPUs share, each `count` of a unit.
Scenario evaluating_scenario(Evaluation::Every every, double count) {
  Scenario scenario = literal_scenario(2);
  scenario.evaluation = Evaluation{.every = every, .count = count, .fixed = Seconds{3}, .parallel = Seconds{8}};
  return scenario;
}

TEST(Evaluations, PauseTrainingOnAllGpus) {
  EvaluatingRun run(evaluating_scenario(Evaluation::Every::steps, 600));
  // 600 steps of 10 ms.
  EXPECT_EQ(scheduled<SegmentCompleted>(run.start).at, 6 * kSecond);
  advance_clock(run.context, run.state, 6 * kSecond);
  const Actions actions = transition(run.context, run.state, SegmentCompleted{});
  EXPECT_EQ(run.state.phase, RunPhase::evaluating);
  EXPECT_EQ(scheduled<PauseEnded>(actions).at, (6 + 3 + 8 / 2) * kSecond);
  advance_clock(run.context, run.state, 13 * kSecond);
  const Actions after = transition(run.context, run.state, PauseEnded{});
  EXPECT_THAT(logged(after), ElementsAre("evaluated"));
  EXPECT_EQ(run.state.phase, RunPhase::training);
  EXPECT_EQ(scheduled<SegmentCompleted>(after).at, (13 + 4) * kSecond) << "the other 400 steps";
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 600);
  Ledger ledger = run.state.training.ledger(0);
  ledger.hold(2, 13 * kSecond);
  EXPECT_DOUBLE_EQ(ledger.close().seconds(GpuUse::evaluation), 2 * 7);
}

// The clock counts whole nanoseconds, so a segment may end a nanosecond before its last step: the third of three here.
TEST(Evaluations, AreNotRepeatedBecauseOfRounding) {
  EvaluatingRun run(evaluating_scenario(Evaluation::Every::steps, 3));
  advance_clock(run.context, run.state, 30'000'000 - 1);
  transition(run.context, run.state, SegmentCompleted{});
  const Actions after = transition(run.context, run.state, PauseEnded{});
  EXPECT_NEAR(static_cast<double>(scheduled<SegmentCompleted>(after).at - run.state.now), 30e6, 10);
}

TEST(Evaluations, AtTheTargetComeBeforeTheEnd) {
  EvaluatingRun run(evaluating_scenario(Evaluation::Every::steps, 1000));
  advance_clock(run.context, run.state, 10 * kSecond);
  transition(run.context, run.state, SegmentCompleted{});
  EXPECT_FALSE(run.state.finished);
  advance_clock(run.context, run.state, 17 * kSecond);
  EXPECT_THAT(logged(transition(run.context, run.state, PauseEnded{})), ElementsAre("evaluated", "finished"));
  EXPECT_TRUE(run.state.finished);
}

// A step trains 2 x 64 images, so that 1,000 images are reached with the 8th step and 2,000 with the 16th.
TEST(Evaluations, ComeAfterTheStepThatReachesTheirImages) {
  EvaluatingRun run(evaluating_scenario(Evaluation::Every::images, 1000));
  EXPECT_EQ(scheduled<SegmentCompleted>(run.start).at, 80'000'000);
  advance_clock(run.context, run.state, 80'000'000);
  transition(run.context, run.state, SegmentCompleted{});
  const Actions after = transition(run.context, run.state, PauseEnded{});
  EXPECT_EQ(scheduled<SegmentCompleted>(after).at - run.state.now, 80'000'000);
}

TEST(Evaluations, CountTrainingTimeInWholeSteps) {
  EvaluatingRun run([] {
    Scenario scenario = evaluating_scenario(Evaluation::Every::interval, 0);
    scenario.evaluation->interval = Seconds{2.004};
    return scenario;
  }());
  EXPECT_EQ(scheduled<SegmentCompleted>(run.start).at, 2 * kSecond);
}

TEST(Evaluations, EndWhenAMemberIsLost) {
  EvaluatingRun run(evaluating_scenario(Evaluation::Every::steps, 500));
  transition(run.context, run.state, SegmentCompleted{});
  const std::uint64_t pause = run.state.phase_number;
  transition(run.context, run.state, NodeCrashed{1});
  EXPECT_EQ(run.state.phase, RunPhase::idle);
  EXPECT_NE(run.state.phase_number, pause) << "the end of the pause is stale";
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 0);
}

TEST(Evaluations, AreTooMany) {
  Scenario scenario = evaluating_scenario(Evaluation::Every::steps, 1);
  scenario.steps = 10'000'000;
  EXPECT_THROW(EvaluatingRun run(scenario), ConfigError);
}

// 16,666 evaluations. A segment that begins one step before an evaluation was once taken for one of ten million.
TEST(Evaluations, AreNotTooManyBecauseTheNextIsNear) {
  Scenario scenario = evaluating_scenario(Evaluation::Every::steps, 600);
  scenario.steps = 10'000'000;
  EvaluatingRun run(scenario);
  advance_clock(run.context, run.state, 5'990'000'000);
  Actions again;
  change_pace(run.context, run.state, again);
  EXPECT_EQ(scheduled<SegmentCompleted>(again).at, 6 * kSecond);
}

// Ten million steps of 10 ms take 1e5 s: a network that is slow every 4 ms begins and ends to be so 5e7 times.
TEST(Evaluations, EventsOfWhatIsLeftAreCountedBefore) {
  Scenario scenario = literal_scenario(2);
  scenario.steps = 10'000'000;
  scenario.faults.network = Slowdown{.every = Seconds{4.1e-3}, .factor = 0.5, .lasts = Seconds{1}};
  EXPECT_NO_THROW(EvaluatingRun run(scenario));
  scenario.faults.network->every = Seconds{3.9e-3};
  EXPECT_THAT(message_of<BudgetExceeded>([&] { EvaluatingRun run(scenario); }),
              testing::HasSubstr("/faults/network/every: more than 50,000,000 events would be simulated, 51,282,051"));
}

}  // namespace
}  // namespace ganymede::sim

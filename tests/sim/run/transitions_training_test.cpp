// Transitions of training, faults and the policy: each test applies an event to a state and checks the new state and
// the actions. At the beginning, two nodes have trained for 5 s, 500 of 1,000 steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "run_literals.hpp"
#include "sim/run/decisions.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Scenario saving_scenario() {
  Scenario scenario = literal_scenario(2);
  add_checkpoints(scenario);
  return scenario;
}

/// A run that has trained from 0 s on; the time is 5 s.
class TrainingRun : public RunInTheMiddle {
 public:
  explicit TrainingRun(Scenario literal = literal_scenario(2)) : RunInTheMiddle(std::move(literal)) {
    for (int i = 0; i < 2; ++i) state.fleet.set_member(add_ready(), true);
    state.has_trained = true;
    begin_segment(context, state, start);
    advance_clock(context, state, 5 * kSecond);
  }
  Actions start;  ///< the actions that began the current segment
};

TEST(FinalCheckpoints, AreWrittenWhereAllMembersGo) {
  TrainingRun run(saving_scenario());
  for (const std::size_t node : {0U, 1U}) run.state.fleet.notice(node, 10 * kSecond, true);
  const Actions actions = transition(run.context, run.state, FinalCheckpointDue{});
  EXPECT_EQ(run.state.phase, RunPhase::saving);
  EXPECT_EQ(scheduled<PauseEnded>(actions).at, 6 * kSecond);
  EXPECT_EQ(scheduled<PauseEnded>(actions).phase, run.state.phase_number);
}

TEST(FinalCheckpoints, AreNotNeededWhereSomebodyStays) {
  TrainingRun run(saving_scenario());
  run.state.fleet.notice(0, 10 * kSecond, true);
  EXPECT_THAT(transition(run.context, run.state, FinalCheckpointDue{}).schedule, IsEmpty());
  EXPECT_EQ(run.state.phase, RunPhase::training);
  // A run that needs all its nodes cannot go on with one.
  run.state.decision.elastic = false;
  transition(run.context, run.state, FinalCheckpointDue{});
  EXPECT_EQ(run.state.phase, RunPhase::saving);
}

TEST(Losses, AfterNoticeLeaveTheWeightsToTheOthers) {
  TrainingRun run;
  run.state.fleet.notice(1, 5 * kSecond, true);
  const Actions actions = transition(run.context, run.state, NodeReclaimed{1});
  EXPECT_EQ(run.node(1).state, Node::State::gone);
  EXPECT_TRUE(run.node(1).interrupted);
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 500);
  EXPECT_THAT(run.state.fleet.members(), ElementsAre(1));
  EXPECT_THAT(logged(actions), ElementsAre("lost", "resized", "restored"));
  EXPECT_EQ(run.state.phase, RunPhase::training);
  // One worker trains as many steps as two, at 10 ms each.
  EXPECT_EQ(run.state.training.segment().time_of(500), 10 * kSecond);
  EXPECT_TRUE(actions.consult_policy);
  EXPECT_EQ(run.state.facts.losses, 1);
}

TEST(Losses, ByACrashTakeAlongWhatIsNotDurable) {
  TrainingRun run;
  const Actions actions = transition(run.context, run.state, NodeCrashed{1});
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 0);
  EXPECT_DOUBLE_EQ(run.state.training.lost().si, 5);
  EXPECT_EQ(run.state.phase, RunPhase::idle);
  EXPECT_TRUE(run.state.must_load);
  EXPECT_FALSE(run.node(1).interrupted);
  EXPECT_THAT(run.state.fleet.members(), ElementsAre(0));
  EXPECT_THAT(logged(actions), ElementsAre("crashed"));
  EXPECT_TRUE(actions.consult_policy);
  // 5 s of a node at 0.001 USD a second.
  EXPECT_DOUBLE_EQ(run.state.facts.gone_nodes_usd, 0.005);
}

TEST(Losses, OfANodeThatDoesNotTrainChangeNothingElse) {
  TrainingRun run;
  const std::size_t spare = run.add_ready();
  transition(run.context, run.state, NodeCrashed{spare});
  EXPECT_EQ(run.state.phase, RunPhase::training);
  EXPECT_EQ(run.node(spare).state, Node::State::gone);
  EXPECT_THAT(transition(run.context, run.state, NodeCrashed{spare}).log, IsEmpty()) << "it is gone already";
}

TEST(Losses, MayLeaveThePoolEmptyForAWhile) {
  Scenario scenario = literal_scenario(2);
  scenario.pools[0].lifetimes = exponential_lifetimes(Seconds{1e4});
  scenario.pools[0].lifetimes->back_after = Seconds{600};
  TrainingRun run(scenario);
  RandomStream same = run.state.pools[0].lifetimes;
  const Actions actions = transition(run.context, run.state, NodeReclaimed{0});
  const Nanoseconds back = run.state.now + to_nanoseconds(Seconds{600} * same.exponential());
  EXPECT_EQ(scheduled<WaitingRetried>(actions).at, back);
  EXPECT_EQ(run.state.pools[0].empty_until, back);
}

TEST(Pauses, OfAStartEndWithTraining) {
  RunInTheMiddle run(literal_scenario(1));
  run.state.fleet.set_member(run.add_ready(), true);
  run.state.phase = RunPhase::starting;
  const Actions actions = transition(run.context, run.state, PauseEnded{});
  EXPECT_EQ(run.state.phase, RunPhase::training);
  EXPECT_THAT(logged(actions), ElementsAre("ready"));
  EXPECT_EQ(scheduled<SegmentCompleted>(actions).at, 10 * kSecond);
  EXPECT_EQ(scheduled<SegmentCompleted>(actions).phase, run.state.phase_number);
}

TEST(Pauses, OfACheckpointMakeTheWorkDurableAndTrainingGoesOn) {
  TrainingRun run(saving_scenario());
  Actions before;
  end_segment(run.context, run.state, before, false);
  begin_pause(run.state, before, RunPhase::saving, kSecond);
  const double done = run.state.training.done(run.state.now);
  const Actions actions = transition(run.context, run.state, PauseEnded{});
  EXPECT_EQ(run.state.training.durable(), done);
  EXPECT_THAT(logged(actions), ElementsAre("checkpoint", "resized"));
  EXPECT_EQ(run.state.phase, RunPhase::training);
}

TEST(CompletedSegments, EndTheRunAtTheTarget) {
  TrainingRun run;
  advance_clock(run.context, run.state, scheduled<SegmentCompleted>(run.start).at);
  const Actions actions = transition(run.context, run.state, SegmentCompleted{});
  EXPECT_TRUE(run.state.finished);
  EXPECT_THAT(logged(actions), ElementsAre("finished"));
  EXPECT_EQ(run.state.now, 10 * kSecond);
}

TEST(CompletedSegments, AreFollowedByALastCheckpoint) {
  TrainingRun run(saving_scenario());
  // Steps for ten seconds, with a checkpoint after each second except the last.
  advance_clock(run.context, run.state, scheduled<SegmentCompleted>(run.start).at);
  EXPECT_EQ(run.state.now, 19 * kSecond);
  transition(run.context, run.state, SegmentCompleted{});
  EXPECT_EQ(run.state.phase, RunPhase::saving);
  const Actions actions = transition(run.context, run.state, PauseEnded{});
  EXPECT_TRUE(run.state.finished);
  EXPECT_THAT(logged(actions), ElementsAre("checkpoint", "finished"));
  EXPECT_EQ(run.state.training.account().totals.checkpoints, 10);
}

TEST(CompletedSegments, OfAStageAreFollowedByTheNext) {
  Scenario scenario = literal_scenario(2);
  traces::StepTrace growing = *scenario.trace;
  growing.batches.push_back(growing.batches.front());
  growing.batches.back().stage = "8x8";
  scenario.trace = std::make_shared<const traces::StepTrace>(growing);
  scenario.stages = {0, 1};
  scenario.stage_shares = {0.6, 0.4};
  RunInTheMiddle run(scenario);
  run.context.stage_ends = {600, 1000};
  for (int i = 0; i < 2; ++i) run.state.fleet.set_member(run.add_ready(), true);
  run.state.has_trained = true;
  Actions start;
  begin_segment(run.context, run.state, start);
  EXPECT_EQ(scheduled<SegmentCompleted>(start).at, 6 * kSecond);
  advance_clock(run.context, run.state, 6 * kSecond);
  const Actions actions = transition(run.context, run.state, SegmentCompleted{});
  EXPECT_THAT(logged(actions), ElementsAre("stage"));
  EXPECT_EQ(actions.log[0].detail, "8x8");
  EXPECT_EQ(run.state.training.segment().configuration.stage, 1U);
  EXPECT_EQ(scheduled<SegmentCompleted>(actions).at, 10 * kSecond);
}

TEST(BurstCredits, ThatAreUsedUpBeginAnotherSegment) {
  TrainingRun run;
  const std::uint64_t segment = run.state.phase_number;
  const Actions actions = transition(run.context, run.state, BurstCreditsUsedUp{});
  EXPECT_FALSE(run.state.burst_credits_left);
  EXPECT_THAT(logged(actions), ElementsAre("burst credits used up"));
  EXPECT_GT(run.state.phase_number, segment);
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 500);
}

TEST(Slowdowns, HoldForAWhileAndChangeTheConfiguration) {
  Scenario scenario = literal_scenario(2);
  scenario.faults.network = Slowdown{.every = Seconds{1000}, .factor = 0.5, .lasts = Seconds{60}};
  TrainingRun run(scenario);
  const Actions begun = transition(run.context, run.state, SlowdownStarted{InjectedEvent::Kind::network});
  EXPECT_EQ(run.state.training.segment().configuration.network, 0.5);
  EXPECT_THAT(logged(begun), ElementsAre("network slower"));
  EXPECT_EQ(begun.log[0].detail, "factor 0.5");
  EXPECT_EQ(scheduled<SlowdownEnded>(begun).at, 65 * kSecond);
  EXPECT_GT(scheduled<SlowdownStarted>(begun).at, 5 * kSecond) << "the next one";
  advance_clock(run.context, run.state, 65 * kSecond);
  const Actions ended = transition(run.context, run.state, SlowdownEnded{});
  EXPECT_EQ(run.state.training.segment().configuration.network, 1);
  EXPECT_THAT(run.state.slowdowns, IsEmpty());
  EXPECT_THAT(logged(ended), ElementsAre("recovered"));
}

TEST(InjectedFaults, AreEventsOfTheirNodes) {
  Scenario scenario = literal_scenario(2);
  scenario.faults.events = {{.kind = InjectedEvent::Kind::crash, .nodes = 3},
                            {.kind = InjectedEvent::Kind::interruption, .nodes = 1},
                            {.kind = InjectedEvent::Kind::straggler, .nodes = 1, .factor = 2, .lasts = Seconds{10}}};
  TrainingRun run(scenario);
  const Actions crashes = transition(run.context, run.state, FaultInjected{0});
  ASSERT_EQ(crashes.next.size(), 2U) << "no more than there are";
  EXPECT_NE(std::get<NodeCrashed>(crashes.next[0]).node, std::get<NodeCrashed>(crashes.next[1]).node);
  const Actions interruption = transition(run.context, run.state, FaultInjected{1});
  ASSERT_EQ(interruption.next.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<NoticeGiven>(interruption.next[0]));
  transition(run.context, run.state, FaultInjected{2});
  EXPECT_EQ(run.state.training.segment().configuration.slow, 1);
  EXPECT_EQ(run.state.training.segment().configuration.slow_factor, 2);
}

TEST(Starts, ScheduleFaultsAndChangesOfCapacity) {
  Scenario scenario = literal_scenario(2);
  scenario.pools[0].capacity = Series{{{Seconds{0}, 2}, {Seconds{100}, 1}}};
  scenario.faults.storage = Slowdown{.every = Seconds{1000}, .factor = 0.5, .lasts = Seconds{60}};
  scenario.faults.events = {{.kind = InjectedEvent::Kind::crash, .at = Seconds{70}}};
  RunInTheMiddle run(scenario);
  const Actions actions = start_of_run(run.context, run.state);
  EXPECT_EQ(scheduled<CapacityChanged>(actions).at, 100 * kSecond);
  EXPECT_EQ(scheduled<FaultInjected>(actions).at, 70 * kSecond);
  EXPECT_TRUE(is_scheduled<SlowdownStarted>(actions));
}

TEST(PolicyReviews, ComeAtRegularTimes) {
  TrainingRun run;
  run.scenario.policy.every = Seconds{600};
  const Actions actions = transition(run.context, run.state, PolicyReviewDue{});
  EXPECT_EQ(scheduled<PolicyReviewDue>(actions).at, 605 * kSecond);
  EXPECT_TRUE(actions.consult_policy);
}

TEST(Decisions, RequestWhatIsMissing) {
  RunInTheMiddle run(literal_scenario(2));
  const Actions actions = apply_decision(run.context, run.state, {.nodes = {2}});
  EXPECT_EQ(run.state.fleet.count(0).booting, 2);
  EXPECT_THAT(logged(actions), ElementsAre("requested"));
  EXPECT_EQ(actions.log[0].nodes, 2);
  EXPECT_EQ(run.state.phase, RunPhase::idle);
}

TEST(Decisions, GiveUpRequestsAndYoungNodesFirst) {
  TrainingRun run;
  const std::size_t waiting = run.add_waiting(), booting = run.add_booting();
  apply_decision(run.context, run.state, {.nodes = {3}});
  EXPECT_EQ(run.node(waiting).state, Node::State::gone);
  EXPECT_EQ(run.node(booting).state, Node::State::booting);
  const Actions actions = apply_decision(run.context, run.state, {.nodes = {2}});
  EXPECT_EQ(run.node(booting).state, Node::State::gone);
  EXPECT_THAT(logged(actions), ElementsAre("released"));
  EXPECT_EQ(run.state.phase, RunPhase::training);
}

TEST(Decisions, LetTheMembersThatStayGoOn) {
  TrainingRun run;
  const Actions actions = apply_decision(run.context, run.state, {.nodes = {1}});
  EXPECT_THAT(run.state.fleet.members(), ElementsAre(1));
  EXPECT_EQ(run.node(0).state, Node::State::ready) << "the younger one goes";
  EXPECT_DOUBLE_EQ(run.state.training.done(run.state.now), 500);
  EXPECT_THAT(logged(actions), ElementsAre("released", "resized"));
}

TEST(Decisions, ToReleaseAllAreFollowedByACheckpointFirst) {
  TrainingRun run(saving_scenario());
  apply_decision(run.context, run.state, {.nodes = {0}});
  EXPECT_EQ(run.state.phase, RunPhase::saving);
  EXPECT_EQ(run.state.fleet.count(0).ready, 2);
  const Actions actions = transition(run.context, run.state, PauseEnded{});
  EXPECT_EQ(run.state.fleet.count(0).ready, 0);
  EXPECT_EQ(run.state.phase, RunPhase::idle);
  EXPECT_TRUE(run.state.must_load);
  EXPECT_GT(run.state.training.done(run.state.now), 0);
  EXPECT_THAT(logged(actions), ElementsAre("checkpoint", "released"));
}

TEST(Decisions, MayPauseTraining) {
  TrainingRun run;
  apply_decision(run.context, run.state, {.nodes = {2}, .pause = true});
  EXPECT_EQ(run.state.phase, RunPhase::idle);
  EXPECT_EQ(run.state.fleet.count(0).ready, 2);
  apply_decision(run.context, run.state, {.nodes = {2}});
  EXPECT_EQ(run.state.phase, RunPhase::training);
}

TEST(Decisions, ThatAreNotElasticWaitForAllNodes) {
  RunInTheMiddle run(literal_scenario(2));
  run.add_ready();
  run.add_waiting();
  apply_decision(run.context, run.state, {.nodes = {2}, .elastic = false});
  EXPECT_EQ(run.state.phase, RunPhase::idle);
  apply_decision(run.context, run.state, {.nodes = {2}, .elastic = true});
  EXPECT_EQ(run.state.phase, RunPhase::training);
}

// 30 s of boot, then 10 s of a start whose last 4 s read a checkpoint.
TEST(Clocks, AccountRentedTimeWithoutTraining) {
  RunInTheMiddle run(literal_scenario(1));
  const std::size_t node = run.add_booting();
  advance_clock(run.context, run.state, 30 * kSecond);
  run.state.fleet.make_ready(node, run.state.now);
  run.state.fleet.set_member(node, true);
  run.state.phase = RunPhase::starting;
  run.state.loading_from = 36 * kSecond;
  advance_clock(run.context, run.state, 40 * kSecond);
  run.state.phase = RunPhase::idle;
  advance_clock(run.context, run.state, 45 * kSecond);
  Ledger ledger = run.state.training.ledger(0);
  ledger.hold(1, 45 * kSecond);
  const GpuSeconds account = ledger.close();
  EXPECT_EQ(account.seconds(GpuUse::provisioning), 36);
  EXPECT_EQ(account.seconds(GpuUse::checkpoint), 4);
  EXPECT_EQ(account.seconds(GpuUse::idle), 5);
}

TEST(Stagnation, EndsARunThatOnlyWaits) {
  RunInTheMiddle run(literal_scenario(1));
  constexpr Nanoseconds kDay = 86'400 * kSecond;
  advance_clock(run.context, run.state, 30 * kDay);
  EXPECT_NO_THROW(give_up_if_stagnant(run.context, run.state, false));
  advance_clock(run.context, run.state, 31 * kDay);
  EXPECT_THROW(give_up_if_stagnant(run.context, run.state, false), Infeasible);
}

TEST(Observations, ShowTheRunToThePolicy) {
  TrainingRun run;
  run.add_waiting();
  const policies::Observation seen = observe(run.context, run.state);
  EXPECT_EQ(seen.now.si, 5);
  EXPECT_DOUBLE_EQ(seen.done, 500);
  EXPECT_DOUBLE_EQ(seen.left, 500);
  EXPECT_DOUBLE_EQ(seen.rate, 100);
  EXPECT_EQ(seen.training_gpus, 2);
  EXPECT_DOUBLE_EQ(seen.exposed, 0.2);
  EXPECT_DOUBLE_EQ(seen.since_durable.si, 5);
  EXPECT_DOUBLE_EQ(seen.spent_usd, 0.01);
  ASSERT_EQ(seen.pools.size(), 1U);
  EXPECT_EQ(seen.pools[0].ready, 2);
  EXPECT_EQ(seen.pools[0].waiting, 1);
  EXPECT_DOUBLE_EQ(seen.pools[0].usd_per_hour, 3.6);
  EXPECT_EQ(seen.pools[0].g_per_kwh, 400);
  EXPECT_EQ(seen.boot.si, 90);
}

/// A scenario whose program starts in 15 s, meets others in 5 s, and takes 2 s for each further GPU of a node.
Scenario with_starts(int nodes) {
  Scenario scenario = literal_scenario(nodes);
  scenario.provisioning.framework_start.median = Seconds{15};
  scenario.provisioning.communicator_start.median = Seconds{5};
  scenario.provisioning.replica_start.median = Seconds{2};
  return scenario;
}

// The nodes that train decide, of whichever pool they are: one GPU alone meets nobody, and four of a node meet.
TEST(Starts, CountTheRendezvousOfThoseThatTrain) {
  const auto start_s = [](int gpus_of_first, int gpus_of_other) {
    Scenario scenario = with_starts(0);
    scenario.pools[0].pool.gpus_per_node = gpus_of_first;
    scenario.pools.push_back(literal_pool("other", 1, 1));
    scenario.pools[1].pool.gpus_per_node = gpus_of_other;
    RunInTheMiddle run(std::move(scenario));
    run.add_ready(1);
    Actions actions;
    start_training(run.context, run.state, actions, false);
    return static_cast<double>(run.state.phase_end - run.state.now) / kSecond;
  };
  EXPECT_DOUBLE_EQ(start_s(4, 1), 15);
  EXPECT_DOUBLE_EQ(start_s(1, 4), 15 + 5 + 3 * 2);
}

// As start_training() counts it: the rendezvous of several workers, and the GPUs of a node one after the other.
TEST(Observations, CountTheStartOfAsManyGpusAsThereMayBe) {
  const auto restart_s = [](int most, int gpus_of_other) {
    Scenario scenario = with_starts(1);
    scenario.pools[0].max_nodes = most;
    scenario.pools.push_back(literal_pool("other", 0, 1));
    scenario.pools[1].pool.gpus_per_node = gpus_of_other;
    const RunInTheMiddle run(std::move(scenario));
    return observe(run.context, run.state).restart.si;
  };
  EXPECT_DOUBLE_EQ(restart_s(1, 1), 15) << "one GPU, of this pool or that";
  EXPECT_DOUBLE_EQ(restart_s(2, 1), 20) << "a second node may come";
  EXPECT_DOUBLE_EQ(restart_s(1, 4), 26);
}

}  // namespace
}  // namespace ganymede::sim

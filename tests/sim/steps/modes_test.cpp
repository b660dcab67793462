// Modes of synchronisation that do not reduce every gradient, calculated by hand for a step of 10 ms.

#include <gtest/gtest.h>

#include <cmath>

#include "common/units.hpp"
#include "sim/steps/asynchronous_steps.hpp"
#include "sim/steps/component_split.hpp"
#include "sim/steps/step_sampling.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;

/// Discriminator 4 ms, generator 5 ms, and 1 ms to the end; sample i takes scale[i] times as long.
calibration::StepModel ten_ms(const std::vector<double>& scale = {1}) {
  calibration::StepModel model;
  model.samples = scale.size();
  for (const auto& [name, network, ms] :
       {std::tuple{"discriminator.backward", "discriminator", 3.0},
        std::tuple{"discriminator.update", "discriminator", 1.0}, std::tuple{"generator.backward", "generator", 4.0},
        std::tuple{"generator.update", "generator", 1.0}}) {
    calibration::StepPhase phase;
    phase.name = name;
    phase.network = network;
    for (const double factor : scale) {
      phase.gap_s.push_back(0);
      phase.device_s.push_back(ms * 1e-3 * factor);
      phase.host_s.push_back(0);
    }
    model.phases.push_back(phase);
  }
  for (const double factor : scale) model.tail_s.push_back(1e-3 * factor);
  model.buckets = {{"discriminator", 1'000'000, 0}, {"generator", 1'000'000, 2}};
  return model;
}

Seconds after(StepProcess& process, int steps, std::vector<std::size_t> rows, WorkerStep* first = nullptr) {
  Seconds sum;
  for (int i = 0; i < steps; ++i) {
    const StepOutcome step = process.next(rows);
    sum += step.duration;
    if (first) {
      first->exposed_communication += step.workers[0].exposed_communication;
      first->straggler += step.workers[0].straggler;
      first->compute += step.workers[0].compute;
      first->lost += step.workers[0].lost;
    }
  }
  return sum;
}

TEST(LocalSteps, AverageOnceARound) {
  const calibration::StepModel model = ten_ms({1, 1.5});
  LocalSteps process({&model, &model}, 2, 4, 8_ms);
  EXPECT_EQ(process.cycle(), 4);
  WorkerStep fast;
  // The slow worker takes 15 ms a step; the other one waits for it at the end of the round.
  EXPECT_NEAR(after(process, 8, {0, 1}, &fast).si, 2 * (4 * 15e-3 + 8e-3), 1e-12);
  EXPECT_NEAR(fast.compute.si, 80e-3, 1e-12);
  EXPECT_NEAR(fast.straggler.si, 40e-3, 1e-12);
  EXPECT_NEAR(fast.exposed_communication.si, 16e-3, 1e-12);
}

TEST(GossipSteps, WaitForANeighbourOnly) {
  const calibration::StepModel model = ten_ms();
  GossipSteps even({&model, &model, &model, &model}, 2, 2_ms);
  EXPECT_NEAR(after(even, 10, {0, 0, 0, 0}).si, 10 * 12e-3, 1e-12);
  // With three workers, one has no partner in each step.
  GossipSteps odd({&model, &model, &model}, 2, 2_ms);
  WorkerStep first;
  after(odd, 10, {0, 0, 0}, &first);
  EXPECT_NEAR(first.exposed_communication.si, 5 * 2e-3, 1e-12);
}

/// One server on a machine of its own, whose link takes a millisecond each way: link 0 in, link 1 out.
ServerTraffic one_server(std::size_t workers) {
  ServerTraffic traffic{2, {}, {}};
  traffic.push.assign(workers, {{{0, 1_ms}}, {}, {}});
  traffic.fetch.assign(workers, {{{1, 1_ms}}, {}, {}});
  return traffic;
}

/// A server on each of eight workers' nodes holds an eighth of the weights, which takes 1 ms on a link. Link 2w leaves
/// node w, and link 2w + 1 enters it.
ServerTraffic eight_shards() {
  ServerTraffic traffic{16, {}, {}};
  for (std::size_t worker = 0; worker < 8; ++worker) {
    ServerTraffic::Transfer push{{{2 * worker, 7_ms}}, {}, {}}, fetch{{{2 * worker + 1, 7_ms}}, {}, {}};
    for (std::size_t server = 0; server < 8; ++server) {
      if (server == worker) continue;
      push.uses.push_back({2 * server + 1, 1_ms});
      fetch.uses.push_back({2 * server, 1_ms});
    }
    traffic.push.push_back(push);
    traffic.fetch.push_back(fetch);
  }
  return traffic;
}

// Seven eighths of the weights leave each node in 7 ms, while as many bytes enter for its server; the same holds on the
// way back.
TEST(AsyncServer, OfShardsOnTheWorkersTakesNoLongerThanEachNodesShare) {
  const calibration::StepModel model = ten_ms();
  AsyncServerSteps process(std::vector<const calibration::StepModel*>(8, &model), 2, eight_shards());
  EXPECT_NEAR(after(process, 10, std::vector<std::size_t>(8, 0)).si, 10 * (10e-3 + 7e-3 + 7e-3), 1e-9);
  EXPECT_NEAR(process.staleness(), 7, 1);
}

TEST(AsyncServer, BesideItsOnlyWorkerCostsNothing) {
  const calibration::StepModel model = ten_ms();
  AsyncServerSteps process({&model}, 2, {0, {{}}, {{}}});
  EXPECT_NEAR(after(process, 10, {0}).si, 10 * 10e-3, 1e-12);
}

TEST(AsyncServer, WaitsForItsOwnTransfersWhileTheServerIsFree) {
  const calibration::StepModel model = ten_ms();
  AsyncServerSteps process({&model, &model}, 2, one_server(2));
  after(process, 50, {0, 0});
  EXPECT_NEAR(after(process, 100, {0, 0}).si / 100, 12e-3, 1e-4);
  EXPECT_NEAR(process.staleness(), 1, 0.05);
}

TEST(AsyncServer, IsBoundByTheServersLink) {
  const calibration::StepModel model = ten_ms();
  AsyncServerSteps process(std::vector<const calibration::StepModel*>(30, &model), 2, one_server(30));
  const std::vector<std::size_t> rows(30, 0);
  after(process, 20, rows);
  EXPECT_NEAR(after(process, 20, rows).si / 20, 30e-3, 1e-4);  // thirty pushes of a millisecond
  EXPECT_GT(process.staleness(), 20);
}

TEST(BackupWorkers, AreNotWaitedFor) {
  const calibration::StepModel model = ten_ms({1, 3});
  const auto reduce = [](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> ends;
    for (const auto& reduction : reductions)
      ends.emplace_back(reduction.arrivals.size(),
                        *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end()) + 1_ms);
    return ends;
  };
  SynchronousStep all(model, flat(3), {}, reduce);
  SynchronousStep two_of_three(model, flat(3), {.backup_workers = 1}, reduce);
  EXPECT_NEAR(after(all, 5, {1, 0, 0}).si, 5 * 32e-3, 1e-9);
  WorkerStep slow;
  EXPECT_NEAR(after(two_of_three, 5, {1, 0, 0}, &slow).si, 5 * 12e-3, 1e-9);
  EXPECT_NEAR(slow.lost.si, 5 * 12e-3, 1e-9);
}

// All workers are equally fast, so any of them may be dropped; but the requested number must be dropped.
TEST(BackupWorkers, AreDroppedAlsoWhereAllEndTogether) {
  const calibration::StepModel model = ten_ms();
  const auto at_once = [](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> ends;
    for (const auto& reduction : reductions) ends.push_back(reduction.arrivals);
    return ends;
  };
  SynchronousStep two_of_four(model, flat(4), {.backup_workers = 2}, at_once);
  const std::vector<std::size_t> rows(4, 0);
  const StepOutcome step = two_of_four.next(rows);
  double compute = 0, lost = 0;
  for (const WorkerStep& worker : step.workers) compute += worker.compute.si, lost += worker.lost.si;
  EXPECT_NEAR(compute, 2 * 10e-3, 1e-12);
  EXPECT_NEAR(lost, 2 * 10e-3, 1e-12);
}

TEST(ComponentSplit, PaysForCrossingsAndReductions) {
  const calibration::StepModel model = ten_ms();
  ComponentSplit pair({&model, &model}, 2, 2_ms, {Seconds{0}, Seconds{0}});
  WorkerStep discriminator;
  // The discriminator's 4 ms, a crossing, the generator's 5 ms, and a millisecond to the end.
  EXPECT_NEAR(after(pair, 10, {0, 0}, &discriminator).si, 10 * 12e-3, 1e-12);
  EXPECT_NEAR(discriminator.compute.si, 10 * 5e-3, 1e-12);
  ComponentSplit two({&model, &model, &model, &model}, 2, 2_ms, {3_ms, 1_ms});
  EXPECT_NEAR(after(two, 10, {0, 0, 0, 0}).si, 10 * 16e-3, 1e-12);
}

TEST(ComponentSplit, LeavesAWorkerWithoutPartnerWaiting) {
  const calibration::StepModel model = ten_ms();
  ComponentSplit three({&model, &model, &model}, 2, 2_ms, {Seconds{0}, Seconds{0}});
  const std::vector<std::size_t> rows(3, 0);
  const StepOutcome step = three.next(rows);
  EXPECT_NEAR(step.duration.si, 12e-3, 1e-12);
  EXPECT_NEAR(step.workers[2].straggler.si, 12e-3, 1e-12);
}

// 10 ms as recorded or 20 ms: a pair repeats a recorded step, and does not mix the halves of two.
TEST(ComponentSplit, RepeatsOneRecordedStep) {
  const calibration::StepModel model = ten_ms({1, 2});
  ComponentSplit pair({&model, &model}, 2, 2_ms, {Seconds{0}, Seconds{0}});
  EXPECT_NEAR(after(pair, 10, {1, 0}).si, 10 * 22e-3, 1e-12);
}

TEST(RareStalls, AreTakenOutAndTheRestKept) {
  std::vector<double> scale(200, 1);
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] += 0.01 * static_cast<double>(i % 5);
  const double calm = ten_ms(scale).mean_s();
  scale[50] = 8, scale[120] = 4;
  calibration::StepModel model = ten_ms(scale);
  const RareStalls stalls = take_rare_stalls(model);
  ASSERT_EQ(stalls.extra_s.size(), 2U);
  EXPECT_NEAR(stalls.extra_s[0], 30e-3, 1e-3);
  EXPECT_NEAR(stalls.extra_s[1], 70e-3, 1e-3);
  EXPECT_NEAR(model.mean_s() / calm, 1, 1e-3);
  // If one step in ten is long, long steps are not outliers.
  for (std::size_t i = 0; i < scale.size(); i += 10) scale[i] = 4;
  calibration::StepModel busy = ten_ms(scale);
  EXPECT_TRUE(take_rare_stalls(busy).extra_s.empty());
}

TEST(RareStalls, TheLongestOfManyIsAsDrawn) {
  RareStalls stalls;
  stalls.extra_s = {1, 2, 5};
  stalls.steps = 100;
  RandomStream random(1, "test/stalls");
  double mean = 0, square = 0;
  constexpr int kTrials = 20'000, kWorkers = 30;
  for (int i = 0; i < kTrials; ++i) {
    double longest = 0;
    for (int worker = 0; worker < kWorkers; ++worker) longest = std::max(longest, stalls.draw(random));
    mean += longest / kTrials;
    square += longest * longest / kTrials;
  }
  const auto moments = stalls.longest(kWorkers);
  EXPECT_NEAR(moments.mean, mean, 0.05);
  EXPECT_NEAR(moments.square, square, 0.3);
}

TEST(JitterTail, GoesOnWhereTheTraceEnds) {
  // An exponential distribution with mean 1 ms above 10 ms: of 1,024 draws the longest is ln 1024 ms above on average.
  RandomStream random(2, "test/tail");
  std::vector<double> scale;
  for (int i = 0; i < 2000; ++i) scale.push_back(1 + 0.1 * random.exponential());
  const JitterTail tail = fit_tail(ten_ms(scale));
  EXPECT_NEAR(tail.threshold_s, 10e-3 + 1e-3 * std::log(10.0), 0.2e-3);
  EXPECT_NEAR(tail.shape, 0, 0.15);
  double longest = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    double most = 0;
    for (int i = 0; i < 102; ++i) most = std::max(most, tail.beyond(random));  // a tenth of 1,024
    longest += (tail.threshold_s + most) / kTrials;
  }
  EXPECT_NEAR(longest, 10e-3 + 1e-3 * (std::log(1024.0) + 0.577), 1e-3);
}

}  // namespace
}  // namespace ganymede::sim

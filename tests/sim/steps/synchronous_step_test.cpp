#include "sim/steps/synchronous_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;

calibration::StepPhase phase(std::string name, std::string network, double seconds,
                             calibration::Stream stream = calibration::Stream::compute) {
  return {std::move(name), std::move(network), stream, {0}, {seconds}, {0}, 0};
}

/// The discriminator's backward pass takes 4 s (its bucket is ready half way) and its update 1 s; the generator's
/// backward pass takes 6 s (its bucket is ready at the end) and its update 2 s.
calibration::StepModel gan() {
  calibration::StepModel model;
  model.phases = {phase("d.backward", "d", 4), phase("d.update", "d", 1), phase("g.backward", "g", 6),
                  phase("g.update", "g", 2)};
  model.buckets = {{"d", 100, 0, 0.5}, {"g", 200, 2, 1.0}};
  model.tail_s = {0};
  model.samples = 1;
  return model;
}

/// Reductions run one after the other; each takes `time` from its last arrival.
Reduce takes(Seconds time, std::vector<Reduction>* seen = nullptr) {
  return [=](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    Seconds free;
    for (const auto& reduction : reductions) {
      if (seen) seen->push_back(reduction);
      free = std::max(free, *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end())) + time;
      done.emplace_back(reduction.arrivals.size(), free);
    }
    return done;
  };
}

const std::vector<std::size_t> kFirstRow(8, 0);
std::span<const std::size_t> rows(int workers) { return std::span(kFirstRow).first(static_cast<std::size_t>(workers)); }

TEST(SynchronousStep, OneWorkerTakesTheSumOfItsPhases) {
  const calibration::StepModel model = gan();
  SynchronousStep step(model, flat(1), {}, {});
  const StepOutcome outcome = step.next(rows(1));
  EXPECT_DOUBLE_EQ(outcome.duration.si, 4 + 1 + 6 + 2);
  EXPECT_DOUBLE_EQ(outcome.workers[0].compute.si, 13);
  EXPECT_DOUBLE_EQ(model.mean_s(), 13);
}

TEST(SynchronousStep, ABucketReducesWhileTheBackwardPassGoesOn) {
  const calibration::StepModel model = gan();
  std::vector<Reduction> seen;
  SynchronousStep step(model, flat(2), {}, takes(3_s, &seen));
  const StepOutcome outcome = step.next(rows(2));
  // d is ready at 2, reduced at 5: 1 s is exposed after the backward pass. g is ready at 12, and all of its reduction
  // is exposed.
  EXPECT_DOUBLE_EQ(seen[0].arrivals[1].si, 2);
  EXPECT_DOUBLE_EQ(seen[1].arrivals[0].si, 4 + 1 + 1 + 6);
  EXPECT_DOUBLE_EQ(outcome.duration.si, 13 + 1 + 3);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, 4);
  EXPECT_DOUBLE_EQ(outcome.workers[0].straggler.si, 0);
}

TEST(SynchronousStep, WithoutOverlapAllCommunicationIsExposed) {
  const calibration::StepModel model = gan();
  SynchronousStep step(model, flat(2), {.overlap = false}, takes(3_s));
  const StepOutcome outcome = step.next(rows(2));
  EXPECT_DOUBLE_EQ(outcome.duration.si, 13 + 3 + 3);
  EXPECT_DOUBLE_EQ(outcome.workers[1].exposed_communication.si, 6);
}

// Both backward passes come first: the generator's long reduction hides under the discriminator's update.
TEST(SynchronousStep, AnUpdateWaitsForItsOwnNetworkOnly) {
  calibration::StepModel model;
  model.phases = {phase("d.backward", "d", 1), phase("g.backward", "g", 1), phase("d.update", "d", 10),
                  phase("g.update", "g", 1)};
  model.buckets = {{"d", 1, 0, 1.0}, {"g", 90, 1, 1.0}};
  model.tail_s = {0};
  model.samples = 1;
  const Reduce by_bytes = [&](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    Seconds free;
    for (const auto& reduction : reductions) {
      const Seconds arrival = *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end());
      free = std::max(free, arrival) + Seconds{0.08 * static_cast<double>(model.buckets[reduction.bucket].bytes)};
      done.emplace_back(reduction.arrivals.size(), free);
    }
    return done;
  };
  SynchronousStep step(model, flat(2), {}, by_bytes);
  // d is reduced from 1 to 1.08, g from 2 to 9.2; d's update runs from 2 to 12, and g's follows at once.
  const StepOutcome outcome = step.next(rows(2));
  EXPECT_DOUBLE_EQ(outcome.duration.si, 1 + 1 + 10 + 1);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, 0);
}

// Two updates of the discriminator in each step: the first waits for its own reduction, from 1 to 4, instead of the
// second one.
TEST(SynchronousStep, EachOfSeveralUpdatesWaitsForItsOwnReduction) {
  calibration::StepModel model;
  model.phases = {phase("d.backward", "d", 1), phase("d.update", "d", 1), phase("d.backward.2", "d", 1),
                  phase("d.update.2", "d", 1)};
  model.buckets = {{"d", 1, 0, 1.0, 1}, {"d", 1, 2, 1.0, 3}};
  model.tail_s = {0};
  model.samples = 1;
  SynchronousStep step(model, flat(2), {}, takes(3_s));
  EXPECT_DOUBLE_EQ(step.next(rows(2)).duration.si, 1 + 3 + 1 + 1 + 3 + 1);
  SynchronousStep exposed(model, flat(2), {.overlap = false}, takes(3_s));
  EXPECT_DOUBLE_EQ(exposed.next(rows(2)).duration.si, 1 + 3 + 1 + 1 + 3 + 1);
}

TEST(SynchronousStep, ANetworkWithoutUpdatePhaseIsAwaitedAtTheEnd) {
  calibration::StepModel model = gan();
  model.phases.pop_back();  // no generator update in this trace
  SynchronousStep step(model, flat(2), {}, takes(3_s));
  EXPECT_DOUBLE_EQ(step.next(rows(2)).duration.si, 11 + 1 + 3);
}

TEST(SynchronousStep, TheSlowestWorkerSetsTheTimeAndTheOthersWaitForIt) {
  calibration::StepModel model = gan();
  for (auto& p : model.phases) {
    p.gap_s = {0, 0};
    p.host_s = {0, 0};
    p.device_s.push_back(p.device_s[0]);
  }
  model.phases[2].device_s[1] = 10;  // the second sample's generator backward pass is 4 s longer
  model.tail_s = {0, 0};
  model.samples = 2;
  SynchronousStep step(model, flat(2), {}, takes(3_s));
  const std::vector<std::size_t> rows{0, 1};
  const StepOutcome outcome = step.next(rows);
  EXPECT_DOUBLE_EQ(outcome.duration.si, 17 + 4);
  EXPECT_DOUBLE_EQ(outcome.workers[0].straggler.si, 4);
  EXPECT_DOUBLE_EQ(outcome.workers[1].straggler.si, 0);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, outcome.workers[1].exposed_communication.si);
}

TEST(SynchronousStep, PartsSumToTheDuration) {
  calibration::StepModel model = gan();
  model.phases.insert(model.phases.begin(), phase("load", "", 15, calibration::Stream::input));
  for (auto& bucket : model.buckets) ++bucket.phase;
  model.tail_s = {0.25};
  SynchronousStep step(model, clustered(4, 2), {}, takes(3_s));
  for (int i = 0; i < 5; ++i) {
    const StepOutcome outcome = step.next(rows(4));
    for (const auto& worker : outcome.workers)
      EXPECT_NEAR((worker.compute + worker.exposed_communication + worker.straggler + worker.input_stall).si,
                  outcome.duration.si, 1e-9);
  }
}

TEST(SynchronousStep, InputFasterThanTheStepIsHiddenAfterTheFirstBatch) {
  calibration::StepModel model = gan();
  model.phases.push_back(phase("load", "", 5, calibration::Stream::input));
  model.phases.push_back(phase("copy", "", 2, calibration::Stream::input));
  SynchronousStep step(model, flat(1), {}, {});
  EXPECT_DOUBLE_EQ(step.next(rows(1)).workers[0].input_stall.si, 7);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(step.next(rows(1)).workers[0].input_stall.si, 0);
}

TEST(SynchronousStep, InputSlowerThanTheStepSetsThePace) {
  calibration::StepModel model = gan();
  model.phases.push_back(phase("load", "", 20, calibration::Stream::input));
  model.phases.push_back(phase("copy", "", 2, calibration::Stream::input));
  SynchronousStep step(model, flat(1), {}, {});
  for (int i = 0; i < 4; ++i) step.next(rows(1));
  // Stages overlap: the slowest of them is the pace, not their sum.
  const StepOutcome outcome = step.next(rows(1));
  EXPECT_DOUBLE_EQ(outcome.duration.si, 20);
  EXPECT_DOUBLE_EQ(outcome.workers[0].input_stall.si, 20 - 13);
}

TEST(SynchronousStep, ASerialHostQueuesTheWorkersOfANode) {
  calibration::StepModel model;
  model.phases = {phase("forward", "g", 1)};
  model.phases[0].host_s = {0.8};
  model.tail_s = {0};
  model.samples = 1;
  model.serial_host = true;
  SynchronousStep one_node(model, clustered(4, 4), {}, takes(0_s));
  const StepOutcome queued = one_node.next(rows(4));
  EXPECT_DOUBLE_EQ(queued.duration.si, 4 * 0.8);
  EXPECT_DOUBLE_EQ(queued.workers[3].device.si, 1);  // its compute time is longer, because it waited for the host
  EXPECT_DOUBLE_EQ(queued.workers[3].compute.si, 4 * 0.8);
  SynchronousStep two_nodes(model, clustered(4, 2), {}, takes(0_s));
  EXPECT_DOUBLE_EQ(two_nodes.next(rows(4)).duration.si, 2 * 0.8);
  model.serial_host = false;
  SynchronousStep parallel(model, clustered(4, 4), {}, takes(0_s));
  EXPECT_DOUBLE_EQ(parallel.next(rows(4)).duration.si, 1);
}

}  // namespace
}  // namespace ganymede::sim

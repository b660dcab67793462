#include "sim/steps/gradient_passes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {
namespace {

using calibration::StepModel;
using calibration::StepPhase;
using calibration::Stream;
using testing::ElementsAre;

/// A phase of two recorded steps.
StepPhase two_samples(std::string name, std::string network, double first, double second,
                      Stream stream = Stream::compute) {
  return {std::move(name), std::move(network), stream, {0, 0}, {first, second}, {0, 0}, 0};
}

/// Loading takes 1 s. The discriminator's passes take 2 and 4 s (two buckets) and its update 1 s; the generator's take
/// 3 and 5 s and its update 1 s. In the second recorded step the discriminator's forward pass takes 10 s longer.
StepModel two_step_gan() {
  StepModel model;
  model.phases = {two_samples("load", "", 1, 1, Stream::input),
                  two_samples("d.forward", "d", 2, 12),
                  two_samples("d.backward", "d", 4, 4),
                  two_samples("d.update", "d", 1, 1),
                  two_samples("g.forward", "g", 3, 3),
                  two_samples("g.backward", "g", 5, 5),
                  two_samples("g.update", "g", 1, 1)};
  model.buckets = {{"d", 100, 2, 0.5, 3}, {"d", 50, 2, 0.9, 3}, {"g", 200, 5, 1.0}};
  model.tail_s = {0, 0};
  model.samples = 2;
  return model;
}

std::vector<std::string> names(const StepModel& model) {
  std::vector<std::string> out;
  for (const StepPhase& phase : model.phases) out.push_back(phase.name);
  return out;
}

TEST(Accumulation, RepeatsThePassesOfEachNetworkAndUpdatesOnce) {
  const StepModel step = accumulate(two_step_gan(), 2);
  EXPECT_THAT(names(step), ElementsAre("load", "d.forward", "d.backward", "d.forward", "d.backward", "d.update",
                                       "g.forward", "g.backward", "g.forward", "g.backward", "g.update"));
  EXPECT_EQ(step.phases[0].device_s[0], 2) << "two batches are loaded";
  ASSERT_EQ(step.buckets.size(), 3U);
  EXPECT_EQ(step.buckets[0].phase, 4U) << "gradients are ready in the last pass";
  EXPECT_EQ(step.buckets[0].ready_fraction, 0.5);
  EXPECT_EQ(step.buckets[0].needed_by, 5U);
  EXPECT_EQ(step.buckets[2].phase, 9U);
}

TEST(Accumulation, PassesRepeatConsecutiveRecordedSteps) {
  const StepModel pass = two_step_gan();
  const StepModel step = accumulate(pass, 3);
  // 3 x (2 + 4 + 3 + 5) + 1 + 1, and 10 s for each pass that repeats the second recorded step.
  EXPECT_DOUBLE_EQ(step.step_s(0), 44 + 10);
  EXPECT_DOUBLE_EQ(step.step_s(1), 44 + 20);
  EXPECT_EQ(names(accumulate(pass, 1)), names(pass));
}

TEST(Accumulation, OfAModelWithoutGradientsRepeatsAllButUpdates) {
  StepModel alone = two_step_gan();
  alone.buckets.clear();
  EXPECT_DOUBLE_EQ(accumulate(alone, 4).step_s(0) + accumulate(alone, 4).step_s(1), 2 * (4 * 14 + 2) + 4 * 10);
}

TEST(FlatReductions, PutAllGradientsOfANetworkIntoOneBucket) {
  const StepModel step = flatten(two_step_gan());
  ASSERT_EQ(step.buckets.size(), 2U);
  EXPECT_EQ(step.buckets[0].bytes, 150);
  EXPECT_EQ(step.buckets[0].ready_fraction, 1);
  EXPECT_EQ(step.buckets[0].needed_by, 3U);
  EXPECT_EQ(step.buckets[1].bytes, 200);
}

/// Each reduction takes a second for each 100 bytes after its last arrival, one after the other.
Reduce by_bytes(const StepModel& model) {
  return [&model](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    Seconds free;
    for (const Reduction& reduction : reductions) {
      const Seconds last = *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end());
      free = std::max(free, last) + Seconds{1e-2 * static_cast<double>(model.buckets[reduction.bucket].bytes)};
      done.emplace_back(reduction.arrivals.size(), free);
    }
    return done;
  };
}

// The flat reductions take 1.5 and 2 s, all of it exposed, once in a step of two passes of 14 s each.
TEST(FlatReductions, AfterTheLastPassOverlapNothing) {
  const StepModel step = flatten(accumulate(two_step_gan(), 2));
  SynchronousStep process(step, flat(2), {.overlap = false}, by_bytes(step));
  const std::vector<std::size_t> rows(2, 0);
  process.next(rows);
  const StepOutcome outcome = process.next(rows);
  EXPECT_DOUBLE_EQ(outcome.duration.si, 2 * 14 + 10 + 2 + 3.5);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, 3.5);
}

}  // namespace
}  // namespace ganymede::sim

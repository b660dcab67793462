// The fit of latency and bandwidth to two measured sizes, and the errors stated for the others.

#include "calibration/link_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "common/units.hpp"

namespace ganymede::calibration {
namespace {

constexpr StatedLink kStated{BytesPerSecond{50e9}};

/// The model of a ring of four: six rounds, each of a latency and a quarter of the bytes.
Seconds ring_of_four(Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes) {
  return 6 * latency + 1.5 * (Bytes{static_cast<double>(bytes)} / bandwidth);
}

std::vector<CollectiveSample> samples_of(const PredictCollective& truth, Seconds latency, BytesPerSecond bandwidth) {
  std::vector<CollectiveSample> samples;
  for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 30; bytes *= 8)
    samples.push_back({bytes, truth(latency, bandwidth, bytes)});
  return samples;
}

TEST(LinkFit, RecoversWhatMadeTheSamples) {
  for (const double latency : {1e-6, 50e-6})
    for (const double bandwidth : {1e9, 200e9}) {
      const auto samples = samples_of(ring_of_four, Seconds{latency}, BytesPerSecond{bandwidth});
      const LinkFit fit = fit_links(samples, ring_of_four, kStated);
      EXPECT_NEAR(fit.latency.si / latency, 1, 1e-5);
      EXPECT_NEAR(fit.bandwidth.si / bandwidth, 1, 1e-5);
      EXPECT_TRUE(fit.meets_ends);
      ASSERT_EQ(fit.samples.size(), samples.size());
      for (const auto& sample : fit.samples) {
        EXPECT_NEAR(sample.predicted / sample.measured.time, 1, 1e-5);
        EXPECT_NEAR(sample.line / sample.measured.time, 1, 1e-5);  // this truth is a straight line
      }
      EXPECT_TRUE(fit.samples.front().fitted && fit.samples.back().fitted && !fit.samples[1].fitted);
    }
}

// Two sizes at the rate of 10 and of 8 GB/s: without latency, no bandwidth meets both, and the one between is off by as
// much in both directions.
TEST(LinkFit, LiesBetweenTwoSizesThatNoBandwidthMeets) {
  const std::vector<CollectiveSample> samples = {
      {1 << 30, ring_of_four(Seconds{0}, BytesPerSecond{10e9}, 1 << 30)},
      {std::int64_t{8} << 30, ring_of_four(Seconds{0}, BytesPerSecond{8e9}, std::int64_t{8} << 30)}};
  const LinkFit fit = fit_links(samples, ring_of_four, kStated);
  EXPECT_NEAR(fit.bandwidth.si, std::sqrt(10e9 * 8e9), 1e6);
  EXPECT_EQ(fit.latency.si, 0);
  EXPECT_FALSE(fit.meets_ends);
}

// A scheme that needs half of the bandwidth where links are slow takes the same time at 10 and at 20 GB/s. The stated
// bandwidth says which it was.
TEST(LinkFit, TakesTheBandwidthNearestToTheStatedOne) {
  const PredictCollective model = [](Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes) {
    return ring_of_four(latency, bandwidth.si < 15e9 ? 2 * bandwidth : bandwidth, bytes);
  };
  const auto samples = samples_of(ring_of_four, Seconds{1e-6}, BytesPerSecond{20e9});
  EXPECT_NEAR(fit_links(samples, model, {BytesPerSecond{18e9}}).bandwidth.si, 20e9, 1e4);
  EXPECT_NEAR(fit_links(samples, model, {BytesPerSecond{9e9}}).bandwidth.si, 10e9, 1e4);
}

TEST(LinkFit, FitsTheLatencyAloneIfTheBandwidthIsKnown) {
  const auto samples = samples_of(ring_of_four, Seconds{5e-6}, BytesPerSecond{10e9});
  const LinkFit fit = fit_links(samples, ring_of_four, {BytesPerSecond{20e9}, true});
  EXPECT_EQ(fit.bandwidth.si, 20e9);
  EXPECT_FALSE(fit.bandwidth_fitted);
  EXPECT_NEAR(fit.latency.si / 5e-6, 1, 1e-3);
  EXPECT_TRUE(fit.samples.front().fitted);
  EXPECT_FALSE(fit.samples.back().fitted);
  EXPECT_NEAR(fit.samples.back().predicted / fit.samples.back().measured.time, 0.5, 1e-3);
}

TEST(LinkFit, KeepsALatencyThatIsKnown) {
  const auto samples = samples_of(ring_of_four, Seconds{5e-6}, BytesPerSecond{10e9});
  const LinkFit fit = fit_links(samples, ring_of_four, {BytesPerSecond{20e9}, false, Seconds{8e-6}});
  EXPECT_EQ(fit.latency.si, 8e-6);
  EXPECT_FALSE(fit.latency_fitted);
  EXPECT_NEAR(fit.samples.back().predicted / samples.back().time, 1, 1e-3);
  EXPECT_FALSE(fit.samples.front().fitted);
  EXPECT_TRUE(fit.meets_ends) << "the smallest size is not fitted";
}

// The latency grows by steps, which the model knows and a straight line does not.
TEST(LinkFit, TellsTheErrorOfEachRangeOverWhatWasNotFitted) {
  const PredictCollective model = [](Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes) {
    return ring_of_four(latency, bandwidth, bytes) * (bytes >= 64 * 1024 && bytes < 1 << 20 ? 2 : 1);
  };
  std::vector<CollectiveSample> samples;
  for (const std::int64_t bytes : {8, 4096, 64 * 1024, 512 * 1024, 1 << 20, 8 << 20, 64 << 20})
    samples.push_back({bytes, ring_of_four(Seconds{1e-6}, BytesPerSecond{1e9}, bytes)});
  samples[1].time = 1.1 * samples[1].time;
  samples[4].time = samples[4].time / 1.2;
  const LinkFit fit = fit_links(samples, model, kStated);
  const std::vector<RangeError> errors = errors_of(fit.samples);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].samples, 1);  // 8 bytes were fitted
  EXPECT_EQ(errors[1].samples, 2);
  EXPECT_EQ(errors[2].samples, 2);  // so were 64 MiB
  EXPECT_NEAR(errors[0].model, 0.1, 1e-4);
  EXPECT_NEAR(errors[1].model, 1.0, 1e-4);
  EXPECT_NEAR(errors[1].line, 0.0, 1e-4);
  EXPECT_NEAR(errors[2].model, std::sqrt(1.2) - 1, 1e-4);
}

TEST(LinkFit, SaysWhenNoLinkMeetsBothEnds) {
  // The model adds 100 us to every size, but the smallest was measured at 20 us.
  const PredictCollective model = [](Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes) {
    return Seconds{100e-6} + ring_of_four(latency, bandwidth, bytes);
  };
  const std::vector<CollectiveSample> samples = {{8, Seconds{20e-6}}, {1 << 20, Seconds{2e-3}}};
  const LinkFit fit = fit_links(samples, model, kStated);
  EXPECT_FALSE(fit.meets_ends);
  EXPECT_EQ(fit.latency, Seconds{0});
  EXPECT_NEAR(fit.samples[1].predicted.si, 2e-3, 1e-7);
  EXPECT_FALSE(fit.predicted_at_no_cost);
  const std::vector<CollectiveSample> too_fast = {{8, Seconds{20e-6}}, {1 << 20, Seconds{50e-6}}};
  EXPECT_NEAR(fit_links(too_fast, model, kStated).predicted_at_no_cost.value().si, 100e-6, 1e-8);
}

}  // namespace
}  // namespace ganymede::calibration

#include "traces/step_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

StepTrace read_back(const StepTrace& trace) {
  return read_step_trace(JsonNode::parse(write_step_trace(trace), "trace.json"));
}

/// Nothing is left at its default.
StepTrace full_trace() {
  StepTrace trace = made_up_trace({0.1, 0.3, 1.0 / 3});
  trace.device = {"AMD EPYC, 2 threads",    "cpu", 2, FlopsPerSecond{123456789012.25}, BytesPerSecond{20e9 / 3},
                  Bytes{17'179'869'184 + 1}};
  trace.software = {"PyTorch", "1.13", "cuda"};
  trace.precision = "bf16";
  trace.seed = UINT64_MAX;
  trace.recorded_at = "2026-11-20T12:00:00Z";
  trace.host = "serial";
  TraceBatch& first = trace.batches.front();
  first.warmup_steps_dropped = 20;
  first.stage = "8x8";
  first.utilization = TraceUtilization{0.05, {{"cpu", {1.5, 2}}, {"memory_bytes", {1e9}}}};
  TracePhase load = made_up_phase("load", "", 0, 0.5, {0.1, 0.3, 1.0 / 3});
  load.stream = "host";
  first.phases.insert(first.phases.begin(), load);
  TraceBatch second = first;
  second.batch = 128;
  second.stage = "";
  second.utilization.reset();
  trace.batches.push_back(second);
  return trace;
}

void expect_equal(const TracePhase& a, const TracePhase& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.network, b.network);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.start_s, b.start_s);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.host_s, b.host_s);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.bytes_read, b.bytes_read);
  EXPECT_EQ(a.bytes_written, b.bytes_written);
  EXPECT_EQ(a.launches, b.launches);
}

void expect_equal(const TraceBatch& a, const TraceBatch& b) {
  EXPECT_EQ(a.batch, b.batch);
  EXPECT_EQ(a.warmup_steps_dropped, b.warmup_steps_dropped);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.wall_s, b.wall_s);
  ASSERT_EQ(a.phases.size(), b.phases.size());
  for (std::size_t i = 0; i < a.phases.size(); ++i) expect_equal(a.phases[i], b.phases[i]);
  ASSERT_EQ(a.buckets.size(), b.buckets.size());
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    EXPECT_EQ(a.buckets[i].network, b.buckets[i].network);
    EXPECT_EQ(a.buckets[i].bytes, b.buckets[i].bytes);
    EXPECT_EQ(a.buckets[i].after_phase, b.buckets[i].after_phase);
    EXPECT_EQ(a.buckets[i].ready_fraction, b.buckets[i].ready_fraction);
  }
  ASSERT_EQ(a.utilization.has_value(), b.utilization.has_value());
  if (!a.utilization) return;
  EXPECT_EQ(a.utilization->interval_s, b.utilization->interval_s);
  EXPECT_EQ(a.utilization->samples, b.utilization->samples);
}

void expect_equal(const StepTrace& a, const StepTrace& b) {
  EXPECT_EQ(a.device.name, b.device.name);
  EXPECT_EQ(a.device.kind, b.device.kind);
  EXPECT_EQ(a.device.threads, b.device.threads);
  EXPECT_EQ(a.device.fp32, b.device.fp32);
  EXPECT_EQ(a.device.memory_bandwidth, b.device.memory_bandwidth);
  EXPECT_EQ(a.device.memory, b.device.memory);
  EXPECT_EQ(a.software.name, b.software.name);
  EXPECT_EQ(a.software.version, b.software.version);
  EXPECT_EQ(a.software.backend, b.software.backend);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.recorded_at, b.recorded_at);
  EXPECT_EQ(a.host, b.host);
  ASSERT_EQ(a.networks.size(), b.networks.size());
  for (const auto& [name, network] : a.networks) {
    ASSERT_TRUE(b.networks.contains(name)) << name;
    EXPECT_EQ(network.parameters, b.networks.at(name).parameters);
    EXPECT_EQ(network.flops_per_image, b.networks.at(name).flops_per_image);
    EXPECT_EQ(network.gradient_bytes, b.networks.at(name).gradient_bytes);
  }
  ASSERT_EQ(a.batches.size(), b.batches.size());
  for (std::size_t i = 0; i < a.batches.size(); ++i) expect_equal(a.batches[i], b.batches[i]);
}

TEST(StepTrace, IsReadBackAsWritten) { expect_equal(full_trace(), read_back(full_trace())); }

TEST(StepTrace, MayLeaveOutWhatHasADefault) {
  StepTrace trace = constant_trace(2);
  trace.device.memory = Bytes{0};
  trace.batches.front().memory_bytes.clear();
  trace.batches.front().buckets.clear();
  trace.networks.clear();
  for (auto& phase : trace.batches.front().phases) phase.network.clear();
  expect_equal(trace, read_back(trace));
}

TEST(StepTrace, IsTheSameTextEachTime) {
  EXPECT_EQ(write_step_trace(full_trace()), write_step_trace(read_back(full_trace())));
}

TEST(StepTrace, IsReadFromAFile) {
  const TemporaryFolder folder;
  expect_equal(full_trace(), load_step_trace(folder.add("trace.json", write_step_trace(full_trace()))));
  EXPECT_THROW(load_step_trace(folder / "absent.json"), ConfigError);
}

TEST(StepTrace, FindsABatchSize) {
  const StepTrace trace = full_trace();
  EXPECT_EQ(trace.find_batch(128), &trace.batches[1]);
  EXPECT_EQ(trace.find_batch(64), &trace.batches[0]);
  EXPECT_EQ(trace.find_batch(65), nullptr);
}

// Times of any magnitude survive: nanoseconds, days, and all 53 bits of them.
RC_GTEST_PROP(StepTrace, KeepsEveryBitOfItsTimes, ()) {
  const auto scale =
      *rc::gen::suchThat(rc::gen::container<std::vector<std::int32_t>>(rc::gen::positive<std::int32_t>()),
                         [](const auto& values) { return !values.empty(); });
  const double unit = std::pow(10.0, *rc::gen::inRange(-18, 0));
  std::vector<double> steps;
  for (const auto value : scale) steps.push_back(value * unit / 3);
  const StepTrace trace = made_up_trace(steps);
  const StepTrace back = read_back(trace);
  RC_ASSERT(back.batches[0].wall_s == trace.batches[0].wall_s);
  for (std::size_t i = 0; i < trace.batches[0].phases.size(); ++i) {
    RC_ASSERT(back.batches[0].phases[i].start_s == trace.batches[0].phases[i].start_s);
    RC_ASSERT(back.batches[0].phases[i].seconds == trace.batches[0].phases[i].seconds);
  }
}

}  // namespace
}  // namespace ganymede::traces

// A step trace that contradicts itself is refused where it does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "support/errors.hpp"
#include "support/made_up.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::traces {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
Json valid() { return Json::parse(write_step_trace(constant_trace(3))); }

std::string read_error(const Json& content) {
  return message_of<ConfigError>([&] { read_step_trace(JsonNode::wrap(content, "t.json", "")); });
}

/// The message for a valid trace in which one value is replaced.
std::string with(const char* pointer, const Json& value) {
  Json content = valid();
  content[JsonPointer(pointer)] = value;
  return read_error(content);
}

std::string without(const char* object, const char* key) {
  Json content = valid();
  content[JsonPointer(object)].erase(key);
  return read_error(content);
}

TEST(StepTraceErrors, OfTheSchema) {
  EXPECT_EQ(with("/schema", "ganymede.step-trace/2"),
            "t.json: /schema: found \"ganymede.step-trace/2\", expected \"ganymede.step-trace/1\"");
  EXPECT_EQ(with("/model_name", "x"),
            "t.json: /model_name: unknown key; known here: " +
                list_of({"schema", "device", "software", "model", "precision", "seed", "recorded_at", "host",
                         "executor", "networks", "kernels", "batches"}));
}

TEST(StepTraceErrors, OfOrder) {
  // The last compute phase moved to the step's start overlaps the ones before it.
  Json content = valid();
  auto& phases = content["batches"][0]["phases"];
  phases.back()["start_s"] = {0, 0, 0};
  EXPECT_THAT(read_error(content), HasSubstr("t.json: /batches/0/phases: at step 0 the compute phase"));

  content = valid();
  auto& buckets = content["batches"][0]["buckets"];
  ASSERT_GE(buckets.size(), 2U);
  std::reverse(buckets.begin(), buckets.end());
  EXPECT_THAT(read_error(content), HasSubstr("is ready before the bucket listed before it"));
}

TEST(StepTraceErrors, OfHostWorkLongerThanItsPhase) {
  EXPECT_THAT(with("/batches/0/phases/0/host_s", {10, 10, 10}),
              StartsWith("t.json: /batches/0/phases/0/host_s: at step 0 found 10 s of host work"));
}

TEST(StepTraceErrors, OfMissingFields) {
  for (const char* key : {"schema", "device", "software", "model", "precision", "seed", "networks", "batches"})
    EXPECT_EQ(without("", key), fmt::format("t.json: /: the key \"{}\" is missing", key));
  for (const char* key : {"name", "kind", "fp32", "memory_bandwidth"})
    EXPECT_EQ(without("/device", key), fmt::format("t.json: /device: the key \"{}\" is missing", key));
  for (const char* key : {"batch", "warmup_steps_dropped", "wall_s", "phases", "buckets"})
    EXPECT_EQ(without("/batches/0", key), fmt::format("t.json: /batches/0: the key \"{}\" is missing", key));
  for (const char* key :
       {"name", "stream", "start_s", "seconds", "host_s", "flops", "bytes_read", "bytes_written", "launches"})
    EXPECT_EQ(without("/batches/0/phases/2", key),
              fmt::format("t.json: /batches/0/phases/2: the key \"{}\" is missing", key));
  for (const char* key : {"network", "bytes", "after_phase", "ready_fraction"})
    EXPECT_EQ(without("/batches/0/buckets/1", key),
              fmt::format("t.json: /batches/0/buckets/1: the key \"{}\" is missing", key));
}

TEST(StepTraceErrors, OfTheDevice) {
  EXPECT_THAT(with("/device/kind", "tpu"),
              StartsWith("t.json: /device/kind: found \"tpu\", expected \"cpu\" or \"gpu\""));
  EXPECT_THAT(with("/device/fp32", 1e12), StartsWith("t.json: /device/fp32: found the bare number"));
  EXPECT_THAT(with("/device/memory_bandwidth", "0B/s"), HasSubstr("above zero"));
  EXPECT_THAT(with("/device/threads", 0), HasSubstr("expected an integer from 1 to 65536"));
  EXPECT_THAT(with("/precision", "fp8"), StartsWith("t.json: /precision: found \"fp8\""));
  EXPECT_THAT(with("/host", "both"), StartsWith("t.json: /host: found \"both\", expected \"parallel\" or \"serial\""));
  EXPECT_THAT(with("/seed", -1), StartsWith("t.json: /seed: found -1"));
}

TEST(StepTraceErrors, OfLengths) {
  EXPECT_THAT(with("/batches/0/memory_bytes/activations", 1e308), StartsWith("t.json: /batches/0/memory_bytes"));
  EXPECT_EQ(with("/batches/0/phases/1/seconds", {0.001, 0.001}),
            "t.json: /batches/0/phases/1/seconds: found 2 numbers, expected 3: one a step, as in wall_s");
  EXPECT_THAT(with("/batches/0/phases/0/start_s", Json::array()), HasSubstr("found 0 numbers, expected 3"));
  EXPECT_THAT(with("/batches/0/phases/3/host_s", {0, 0, 0, 0}), HasSubstr("found 4 numbers, expected 3"));
  EXPECT_THAT(with("/batches/0/wall_s", Json::array()),
              StartsWith("t.json: /batches/0/wall_s: found an array of 0, expected at least one step"));
  EXPECT_THAT(with("/batches", Json::array()), HasSubstr("expected at least one batch size"));
  Json no_phase = valid();
  no_phase["batches"][0]["phases"] = Json::array();
  EXPECT_THAT(read_error(no_phase),
              StartsWith("t.json: /batches/0/phases: found an array of 0, expected at least one"));
}

TEST(StepTraceErrors, OfTimes) {
  EXPECT_THAT(with("/batches/0/wall_s/1", 0),
              StartsWith("t.json: /batches/0/wall_s/1: found 0, expected a time above"));
  EXPECT_THAT(with("/batches/0/wall_s/1", -0.01), StartsWith("t.json: /batches/0/wall_s/1: found -0.01"));
  EXPECT_THAT(with("/batches/0/wall_s/2", "0.01s"), StartsWith("t.json: /batches/0/wall_s/2: found \"0.01s\""));
  EXPECT_THAT(with("/batches/0/phases/0/seconds/2", -1e-9),
              StartsWith("t.json: /batches/0/phases/0/seconds/2: found -1e-09"));
  EXPECT_THAT(with("/batches/0/phases/0/start_s/0", nullptr),
              StartsWith("t.json: /batches/0/phases/0/start_s/0: found null"));
  EXPECT_THAT(with("/batches/0/phases/0/flops", -1), StartsWith("t.json: /batches/0/phases/0/flops: found -1"));
  EXPECT_THAT(with("/batches/0/phases/0/launches", 1.5), StartsWith("t.json: /batches/0/phases/0/launches: found 1.5"));
}

// The step takes 10 ms; the phase begins at 8.5 ms.
TEST(StepTraceErrors, OfAPhaseThatOutlastsItsStep) {
  EXPECT_THAT(with("/batches/0/phases/3/seconds/1", 0.0016),
              StartsWith("t.json: /batches/0/phases/3/seconds: at step 1 the phase ends at 0.0101"));
  Json just_so = valid();
  just_so["batches"][0]["phases"][3]["seconds"][1] = 0.0015 + 0.9e-6;  // within the clock's slack
  read_step_trace(JsonNode::wrap(just_so, "t.json", ""));
}

TEST(StepTraceErrors, OfNames) {
  EXPECT_EQ(with("/batches/0/phases/1/name", "discriminator.backward"),
            "t.json: /batches/0/phases/1: a second phase \"discriminator.backward\"");
  EXPECT_EQ(with("/batches/0/phases/1/network", "critic"),
            "t.json: /batches/0/phases/1/network: no network \"critic\" in /networks");
  EXPECT_THAT(
      with("/batches/0/phases/1/stream", "gpu"),
      StartsWith("t.json: /batches/0/phases/1/stream: found \"gpu\", expected \"compute\", \"host\" or \"copy\""));
  Json twice = valid();
  twice["batches"].push_back(twice["batches"][0]);
  EXPECT_EQ(read_error(twice), "t.json: /batches/1: a second entry for batch 64");
}

TEST(StepTraceErrors, OfBuckets) {
  EXPECT_EQ(with("/batches/0/buckets/0/network", "critic"),
            "t.json: /batches/0/buckets/0/network: no network \"critic\" in /networks");
  EXPECT_THAT(with("/batches/0/buckets/0/after_phase", "discriminator.bakward"),
              testing::AllOf(StartsWith("t.json: /batches/0/buckets/0/after_phase: found \"discriminator.bakward\""),
                             HasSubstr("did you mean \"discriminator.backward\"?")));
  EXPECT_THAT(with("/batches/0/buckets/0/bytes", 0), StartsWith("t.json: /batches/0/buckets/0/bytes: found 0"));
  EXPECT_THAT(with("/batches/0/buckets/0/ready_fraction", 1.01), HasSubstr("expected a number from 0 to 1"));
  EXPECT_THAT(with("/batches/0/buckets/0/ready_fraction", 0), HasSubstr("above zero"));
  EXPECT_THAT(with("/batches/0/buckets/0/before_phase", "nowhere"),
              StartsWith("t.json: /batches/0/buckets/0/before_phase: found \"nowhere\""));
  const Json after = valid()["batches"][0]["buckets"][0]["after_phase"];
  EXPECT_THAT(with("/batches/0/buckets/0/before_phase", after), HasSubstr("expected a compute phase after"));
  // Gradients come out of work on the device, never out of reading or copying a batch.
  EXPECT_THAT(with("/batches/0/phases/0/stream", "host"),
              StartsWith("t.json: /batches/0/buckets/0/after_phase: found"));
}

TEST(StepTraceErrors, OfUtilization) {
  EXPECT_THAT(with("/batches/0/utilization", {{"interval_s", 0}, {"samples", Json::object()}}),
              StartsWith("t.json: /batches/0/utilization/interval_s: found 0"));
  EXPECT_THAT(with("/batches/0/utilization", {{"interval_s", 1}, {"samples", {{"cpu", {1, -1}}}}}),
              StartsWith("t.json: /batches/0/utilization/samples/cpu/1: found -1"));
}

}  // namespace
}  // namespace ganymede::traces

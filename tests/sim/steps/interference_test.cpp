#include "sim/steps/interference.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;

Topology nvlink_node(int gpus, NcclMachine::Generation generation, BytesPerSecond bandwidth) {
  Topology topology = clustered(gpus, gpus);
  topology.nccl.generation = generation;
  topology.nccl.inside = NcclMachine::Inside::nvlink_switch;
  topology.nccl.inside_bandwidth = bandwidth;
  return topology;
}

double lost(const char* scheme, const Topology& topology, platforms::Gpu::Kind kind = platforms::Gpu::Kind::gpu) {
  platforms::Gpu gpu;
  gpu.kind = kind;
  return compute_share_lost(*parse_scheme(scheme).row, topology, gpu);
}

TEST(Interference, IsTheShareOfMultiprocessorsThatChannelsHold) {
  // 12 links of 20 GB/s: 24 channels of 108 multiprocessors.
  const Topology a100 = nvlink_node(8, NcclMachine::Generation::ampere, 240_GB_per_s);
  EXPECT_DOUBLE_EQ(lost("nccl", a100), 24.0 / 108);
  // Over PCIe two channels.
  Topology pcie = clustered(4, 4);
  pcie.nccl.generation = NcclMachine::Generation::volta;
  pcie.nccl.inside = NcclMachine::Inside::pcie;
  EXPECT_DOUBLE_EQ(lost("nccl", pcie), 2.0 / 80);
  EXPECT_EQ(lost("nccl", flat(1)), 0);
  EXPECT_EQ(lost("parameter-server", a100), 0) << "copy engines take no multiprocessors";
  EXPECT_EQ(lost("ring", a100), 0) << "an algorithm without an implementation";
  EXPECT_EQ(lost("nccl", a100, platforms::Gpu::Kind::cpu), 0);
}

TEST(Interference, OfABucketIsCopiesAndCalls) {
  platforms::Gpu gpu;
  gpu.memory_bandwidth = 900_GB_per_s;
  gpu.launch = 4_us;
  // 25 MB four times at 750 GB/s.
  const BucketWork work = bucket_work(Bytes{25e6}, gpu);
  EXPECT_DOUBLE_EQ(work.device.si, 100e6 / 750e9);
  EXPECT_DOUBLE_EQ(work.host.si, 8 * 4e-6);
}

/// A backward pass of 10 s, whose only bucket is ready after `ready` of it, and an update of 1 s.
calibration::StepModel one_bucket(double ready) {
  calibration::StepModel model;
  model.phases = {{"d.backward", "d", calibration::Stream::compute, {0}, {10}, {0}, 0},
                  {"d.update", "d", calibration::Stream::compute, {0}, {1}, {0}, 0}};
  model.buckets = {{"d", 100, 0, ready}};
  model.tail_s = {0};
  model.samples = 1;
  return model;
}

/// Each reduction takes `time` from its last arrival.
Reduce lasting(Seconds time) {
  return [time](std::span<const Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    for (const Reduction& reduction : reductions) {
      const Seconds last = *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end());
      done.emplace_back(reduction.arrivals.size(), last + time);
    }
    return done;
  };
}

StepOutcome step_of(const calibration::StepModel& model, Seconds reduction, const SynchronousOptions& options) {
  SynchronousStep process(model, flat(2), options, lasting(reduction));
  const std::vector<std::size_t> rows(2, 0);
  return process.next(rows);
}

// The reduction is under way from 4 to 6 s, in which the kernels do 1.5 s of their work: 0.5 s more.
TEST(Interference, SlowsKernelsWhileTheReductionLasts) {
  const calibration::StepModel model = one_bucket(0.4);
  const StepOutcome outcome = step_of(model, 2_s, {.interference = 0.25});
  EXPECT_DOUBLE_EQ(outcome.duration.si, 10 + 0.5 + 1);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, 0);
  EXPECT_DOUBLE_EQ(outcome.workers[0].compute.si, 11.5);
  EXPECT_DOUBLE_EQ(step_of(model, 2_s, {}).duration.si, 11);
}

// The reduction lasts from 4 to 14 s. The other 6 s of the backward pass take 6 / 0.75 s beside it: until 12 s.
TEST(Interference, EndsWithTheKernels) {
  const StepOutcome outcome = step_of(one_bucket(0.4), 10_s, {.interference = 0.25});
  EXPECT_DOUBLE_EQ(outcome.duration.si, 14 + 1);
  EXPECT_DOUBLE_EQ(outcome.workers[0].exposed_communication.si, 2);
}

TEST(Interference, NeedsOverlap) {
  EXPECT_DOUBLE_EQ(step_of(one_bucket(0.4), 2_s, {.overlap = false, .interference = 0.25}).duration.si, 13);
}

// The device's work lengthens the phase; the host's does only if the host is behind the device.
TEST(Interference, BucketsTakeTimeOfDeviceAndHost) {
  const calibration::StepModel model = one_bucket(1);
  const auto with = [&](Seconds device, Seconds host) {
    return step_of(model, 0_s, {.bucket_work = {{device, host}}}).duration.si;
  };
  EXPECT_DOUBLE_EQ(with(0.5_s, 3_s), 11.5);
  EXPECT_DOUBLE_EQ(with(0_s, 12_s), 13);
  SynchronousStep alone(model, flat(1), {.bucket_work = {{1_s, 1_s}}}, {});
  EXPECT_DOUBLE_EQ(alone.next(std::vector<std::size_t>{0}).duration.si, 11) << "one worker reduces nothing";
}

}  // namespace
}  // namespace ganymede::sim

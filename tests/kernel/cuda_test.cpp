// The GPU backend: steps equal the CPU backend's, a replayed step equals one that runs call by call. Its operations run
// on the CPU (host_device.hpp) and, if there is one, on a GPU.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "courses.hpp"
#include "kernel/launches.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/train.hpp"
#include "scratch.hpp"
#include "support/when.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

TEST(Philox, GivesTheWordsOfItsAuthors) {
  // The known answers of Random123 for philox4x32-10, with counter and key all zeros, and all ones.
  const cuda::RandomWords zeros = cuda::philox(0, 0, 0);
  EXPECT_EQ(zeros.of[0], 0x6627e8d5U);
  EXPECT_EQ(zeros.of[1], 0xe169c58dU);
  EXPECT_EQ(zeros.of[2], 0xbc57ac4cU);
  EXPECT_EQ(zeros.of[3], 0x9b00dbd8U);
}

TEST(DeviceRandom, NormalsHaveTheirMomentsAndSharesAreThoseOfTheWhole) {
  const auto backend = make_hosted_cuda_backend({.graph = false});
  TensorOps* const ops = backend->ops.get();
  const int features = 40, batch = 1000;
  const Buffer memory = ops->allocate(sizeof(float) * features * batch);
  const Tensor x{memory.floats(), features, batch};
  RandomStream random(3, "tests/normal");
  ops->fill_normal(x, random);
  std::vector<float> whole(x.size());
  ops->read(whole, x);
  double sum = 0, squares = 0, fourth = 0;
  for (const float value : whole) {
    sum += static_cast<double>(value);
    squares += std::pow(static_cast<double>(value), 2);
    fourth += std::pow(static_cast<double>(value), 4);
  }
  const double n = features * batch;  // number of values; the tolerances below are five standard deviations
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  // The second of two processes gets the second half.
  ops->set_shard({1, 2});
  RandomStream same(3, "tests/normal");
  ops->fill_normal({x.data, features, batch / 2}, same);
  std::vector<float> half(whole.size() / 2);
  ops->read(half, Tensor{x.data, features, batch / 2});
  EXPECT_EQ(half, std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(half.size()), whole.end()));
}

class CudaSteps : public testing::TestWithParam<Steps> {};
INSTANTIATE_TEST_SUITE_P(OfModels, CudaSteps, testing::ValuesIn(kSteps), name_of_steps);

/// Whether these steps take seconds; those of all others take minutes.
bool is_short(const Steps& steps) {
  return steps.model == std::string_view("mlp-gan") || steps.model == std::string_view("progressive-gan-video");
}

TEST_P(CudaSteps, AreTheCpusWithTheSameRandomNumbers) {
  if (!is_short(GetParam())) LONG_TEST();
  const auto cpu = make_eigen_backend(2), hosted = make_hosted_cuda_backend({.graph = false, .host_random = true});
  expect_alike(run(*hosted, GetParam(), 4), run(*cpu, GetParam(), 4), 1e-5, growth_of(GetParam()));
}

// A GPU is not to be held to more than two instruction sets of one CPU are.
TEST_P(CudaSteps, OfAnotherInstructionSetAreWithinTheTolerance) {
  const auto best = make_eigen_backend(2);
  for (const CpuKernels* kernels : available_cpu_kernels())
    expect_alike(run(*make_eigen_backend(2, *kernels), GetParam(), 4), run(*best, GetParam(), 4), kGpuTolerance,
                 growth_of(GetParam()));
}

TEST_P(CudaSteps, ReplayedAreThoseRunCallByCall) {
  if (!is_short(GetParam())) LONG_TEST();
  const CudaOptions options{.loads_a_step = loads_of(GetParam())};
  const auto replayed = std::make_shared<HostDevice>(options.loads_a_step);
  CudaOptions plain = options;
  plain.graph = false;
  const auto called = std::make_shared<HostDevice>(options.loads_a_step);
  const Course found = run(*cuda::make_backend(replayed, options), GetParam(), 3);
  const Course expected = run(*cuda::make_backend(called, plain), GetParam(), 3);
  EXPECT_EQ(found.losses, expected.losses);
  for (const auto& [name, tensor] : expected.weights.tensors)
    EXPECT_EQ(found.weights.tensors.at(name).values, tensor.values) << name;
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(replayed->replays, 2);  // all steps but the first
  EXPECT_EQ(called->replays, 0);
}

TEST(CapturedStep, OfOtherOperationsIsNotReplayed) {
  const auto backend = make_hosted_cuda_backend({});
  TensorOps& ops = *backend->ops;
  const Buffer memory = ops.allocate(64);
  const Tensor x{memory.floats(), 4, 2};
  float host[8];
  const auto step = [&](bool twice) {
    ops.timeline().begin_step();
    ops.fill(x, 2);
    if (twice) ops.combine(x, 1, x, 1);
    ops.read(host, x);
  };
  step(false);
  step(false);
  EXPECT_EQ(host[3], 2);
  EXPECT_THROW(step(true), Failure);
  ops.timeline().discard_step();
  step(true);
  step(true);
  EXPECT_EQ(host[3], 4);
}

/// Options of a small training for the tests below, which run the GPU backend's code on the CPU.
TrainOptions dcgan_options() {
  TrainOptions options;
  options.model = "dcgan-28";
  options.batch = 4;
  options.epsilon = 1e-3F;
  return options;
}

TEST(HostedTrainer, TimesPhasesByTheDevicesClockAndSendsImagesAhead) {
  TrainOptions options = dcgan_options();
  options.trace = true;
  options.discriminator_steps = 2;
  const auto device = std::make_shared<HostDevice>(2);
  Trainer trainer(options, nullptr, cuda::make_backend(device, {.loads_a_step = 2}));
  trainer.run(6);
  EXPECT_EQ(device->replays, 5);
  // Two stagings for each step; the first batch of the next step is staged while the host waits for the losses.
  EXPECT_GE(device->stagings, 12);
  EXPECT_LE(device->stagings, 13);
  const traces::StepTrace trace = trainer.trace(1);
  EXPECT_EQ(trace.device.kind, "gpu");
  EXPECT_EQ(trace.software.backend, "cuda");
  const traces::TraceBatch& batch = trace.batches.front();
  ASSERT_EQ(batch.wall_s.size(), 5U);
  for (std::size_t step = 0; step < batch.wall_s.size(); ++step) {
    double sum = 0, end = 0;
    for (const traces::TracePhase& phase : batch.phases) {
      ASSERT_EQ(phase.seconds.size(), batch.wall_s.size()) << phase.name;
      EXPECT_GE(phase.seconds[step], 0) << phase.name;
      if (phase.stream == "host") continue;
      EXPECT_GE(phase.start_s[step], end - 2e-9) << phase.name;  // phases do not overlap
      end = phase.start_s[step] + phase.seconds[step];
      sum += phase.seconds[step];
    }
    EXPECT_LE(sum, batch.wall_s[step]);
    EXPECT_GT(sum, 0.5 * batch.wall_s[step]);  // nearly all of a step is spent on the device
  }
  for (const traces::TraceBucket& bucket : batch.buckets) EXPECT_GT(bucket.ready_fraction, 0);
  // Readers accept it: the host's part of a phase is not longer than the phase, though in the last one it waits.
  const Scratch scratch;
  EXPECT_NO_THROW(traces::load_step_trace(scratch.write("trace.json", traces::write_step_trace(trace))));
  // Replayed steps launch what the captured one did: as many kernels as are listed without training.
  const StepLaunches listed = launches_of(options, {});
  for (const traces::TracePhase& phase : batch.phases)
    EXPECT_EQ(phase.launches, listed.in_phases.at(phase.name)) << phase.name;
}

// Events are nodes of a step's graph, a third as many as mlp-gan has kernels.
TEST(HostedTrainer, MarksTheFirstStepsAndThenEveryEighth) {
  TrainOptions options;
  options.batch = 4;
  options.trace = true;
  const auto device = std::make_shared<HostDevice>(1);
  Trainer trainer(options, nullptr, cuda::make_backend(device, {}));
  trainer.run(3);
  const int marks_a_step = device->marks / 3;
  EXPECT_GE(marks_a_step, 20);
  trainer.run(17);
  EXPECT_EQ(device->marks, 5 * marks_a_step);  // steps 0, 1, 2, 8 and 16
  EXPECT_EQ(device->replays, 19);
  const traces::StepTrace trace = trainer.trace(3);
  const Scratch scratch;
  EXPECT_NO_THROW(traces::load_step_trace(scratch.write("trace.json", traces::write_step_trace(trace))));
  for (const traces::TracePhase& phase : trace.batches.front().phases) EXPECT_EQ(phase.seconds.size(), 17U);
  for (const traces::TraceBucket& bucket : trace.batches.front().buckets) EXPECT_GT(bucket.ready_fraction, 0.01);
}

// The device computes as late as it may, so that a step that used the memory of the one before it too early would
// differ.
TEST(HostedTrainer, IsAStepAheadWithTheSameLosses) {
  LONG_TEST();
  TrainOptions options = dcgan_options();
  options.discriminator_steps = 2;
  Trainer one_by_one(options, nullptr, make_hosted_cuda_backend({.loads_a_step = 2}));
  std::vector<double> expected, found;
  for (int i = 0; i < 7; ++i) expected.push_back(one_by_one.step().generator);

  const auto device = std::make_shared<HostDevice>(2);
  Trainer ahead(options, nullptr, cuda::make_backend(device, {.loads_a_step = 2}));
  std::vector<std::int64_t> steps;
  std::vector<int> replays;  // all steps but the first
  const auto report = [&](const Progress& progress) {
    steps.push_back(progress.step);
    found.push_back(progress.losses.generator);
    replays.push_back(device->replays);
  };
  ahead.run(7, report, [](std::int64_t step) { return step == 4; });
  EXPECT_EQ(found, expected);
  EXPECT_THAT(steps, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
  // After step 4 there is a pause, and after the last one nothing follows.
  EXPECT_THAT(replays, testing::ElementsAre(1, 2, 3, 3, 5, 6, 6));
}

TEST(HostedTrainer, ThatWasLeftAStepAheadGoesOn) {
  LONG_TEST();
  const auto never = [](std::int64_t) { return false; };
  Trainer whole(dcgan_options(), nullptr, make_hosted_cuda_backend({}));
  Trainer left(dcgan_options(), nullptr, make_hosted_cuda_backend({}));
  const Losses expected = whole.run(6).losses;
  const auto leave = [](const Progress& progress) {
    if (progress.step == 3) throw Failure("left");
  };
  EXPECT_THROW(left.run(6, leave, never), Failure);
  EXPECT_EQ(left.steps_done(), 4);  // the fourth had begun
  EXPECT_EQ(left.run(2).losses.generator, expected.generator);
}

TEST(HostedTrainer, ResumesToTheSameLosses) {
  LONG_TEST();
  const auto losses_of = [](Trainer& trainer, int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(trainer.step().discriminator);
    return losses;
  };
  const TrainOptions options = dcgan_options();
  Trainer whole(options, nullptr, make_hosted_cuda_backend({})), again(options, nullptr, make_hosted_cuda_backend({}));
  losses_of(whole, 4);
  const SafeTensors checkpoint = whole.checkpoint();
  const auto expected = losses_of(whole, 4);
  losses_of(again, 6);  // two steps further, so that the prefetched images are those of another step
  again.restore(checkpoint, "memory");
  EXPECT_EQ(losses_of(again, 4), expected);
}

TEST(HostedTrainer, ReplicasOfHalfTheBatchAreOneOfTheWhole) {
  LONG_TEST();
  // A model without batch norm, because each replica would have statistics of its own.
  TrainOptions options = dcgan_options();
  options.model = "progressive-gan";
  options.image = "32x32x3";
  options.stage_steps = 100;
  const auto losses_of = [](const TrainOptions& asked, Communicator* communicator) {
    Trainer trainer(asked, communicator, make_hosted_cuda_backend({}));
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      const Losses step = trainer.step();
      losses.insert(losses.end(), {step.discriminator, step.generator});
    }
    return losses;
  };
  std::vector<std::vector<double>> found(2);
  TrainOptions half = options;
  half.batch = 2;
  ThreadGroup::run(2, [&](Communicator& communicator) {
    found[static_cast<std::size_t>(communicator.shard().rank)] = losses_of(half, &communicator);
  });
  EXPECT_EQ(found[0], found[1]);
  // The losses differ a little, because each replica has a minibatch standard deviation of its own.
  const auto whole = losses_of(options, nullptr);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(found[0][i], whole[i], 0.02 * (1 + std::abs(whole[i])));
}

TEST(HostedTrainer, ReplicasOfOneBatchNormAreOneOfTheWholeBatch) {
  LONG_TEST();
  const auto losses_of = [](TrainOptions options, int ranks) {
    options.batch /= ranks;
    std::vector<std::vector<double>> losses(static_cast<std::size_t>(ranks));
    ThreadGroup::run(ranks, [&](Communicator& communicator) {
      Trainer trainer(options, ranks > 1 ? &communicator : nullptr, make_hosted_cuda_backend({}));
      auto& mine = losses[static_cast<std::size_t>(communicator.shard().rank)];
      for (int i = 0; i < 2; ++i) mine.push_back(trainer.step().generator);
    });
    EXPECT_EQ(losses.front(), losses.back());
    return losses.front();
  };
  TrainOptions options = dcgan_options();
  const auto whole = losses_of(options, 1), apart = losses_of(options, 2);
  options.synchronized_norm = true;
  const auto together = losses_of(options, 2);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(together[i], whole[i], 1e-5 * (1 + std::abs(whole[i])));
  EXPECT_GT(std::abs(apart[0] - whole[0]), 1e-4);
}

TEST(ThreadGroup, GivesTheFirstErrorToAllWhoWait) {
  EXPECT_THAT(
      [] {
        ThreadGroup::run(3, [](Communicator& communicator) {
          double value = 1;
          communicator.sum({&value, 1});
          EXPECT_EQ(value, 3);
          EXPECT_FALSE(communicator.shard().rank == 1 && communicator.abandoned());
          if (communicator.shard().rank == 1) throw ConfigError("mine");
          EXPECT_THROW(communicator.sum({&value, 1}), Failure);
          EXPECT_TRUE(communicator.abandoned());
        });
      },
      testing::ThrowsMessage<ConfigError>("mine"));
}

TEST(CudaModule, LoadsWhereItWasBuiltAndSaysWhetherThereIsAGpu) {
  NOT_SANITIZED("the module is not built for them");
  if (std::string(GANYMEDE_CUDA_MODULE) == "none") GTEST_SKIP() << "configured without CUDA";
  void* handle = ::dlopen(GANYMEDE_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  EXPECT_NE(::dlsym(handle, kMakeCudaBackend), nullptr);
  const auto count = reinterpret_cast<CountGpus>(::dlsym(handle, kCountGpus));
  ASSERT_NE(count, nullptr);
  EXPECT_EQ(count(), count_gpus().count);
  if (count() == 0) {
    EXPECT_THAT([] { open_cuda_backend({}); },
                testing::ThrowsMessage<ConfigError>(testing::HasSubstr("--backend: found cuda, expected cpu here: ")));
  }
}

// Runs on a GPU; skipped on machines without one.
class GpuSteps : public testing::TestWithParam<Steps> {
 protected:
  void SetUp() override {
    if (count_gpus().count == 0) GTEST_SKIP() << count_gpus().why_none;
  }
};
INSTANTIATE_TEST_SUITE_P(OfModels, GpuSteps, testing::ValuesIn(kSteps), name_of_steps);

TEST_P(GpuSteps, AreTheCpusWithTheSameRandomNumbers) {
  const auto cpu = make_eigen_backend(2);
  const auto gpu = open_cuda_backend({.precision = Precision::fp32, .graph = false, .host_random = true});
  expect_alike(run(*gpu, GetParam(), 4), run(*cpu, GetParam(), 4), kGpuTolerance, growth_of(GetParam()));
}

TEST_P(GpuSteps, ReplayedAreThoseRunCallByCall) {
  CudaOptions options{.precision = Precision::fp32, .loads_a_step = loads_of(GetParam())};
  const auto replayed = open_cuda_backend(options);
  options.graph = false;
  const auto called = open_cuda_backend(options);
  expect_alike(run(*replayed, GetParam(), 5), run(*called, GetParam(), 5), 1e-5, growth_of(GetParam()));
}

TEST_P(GpuSteps, InFewerBitsStayNear) {
  const auto exact = open_cuda_backend({.precision = Precision::fp32, .host_random = false});
  const Course expected = run(*exact, GetParam(), 1);
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    // So few outputs has the first convolution of a DCGAN, which is then one kernel with its activation.
    const auto ops = open_cuda_backend({.precision = precision, .least_fused_outputs = 12'000});
    const Course found = run(*ops, GetParam(), 1);
    for (std::size_t i = 0; i < found.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], 0.05 * (1 + std::abs(expected.losses[i])));
  }
}

}  // namespace
}  // namespace ganymede::kernel

// The GPU backend: launches cover their work, steps equal the CPU backend's, a replayed step equals one that runs call
// by call. Its operations run on the CPU (host_device.hpp) and, if there is one, on a GPU.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/samples.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

TEST(LaunchShape, EachElementHasAThreadOrATurn) {
  for (const int multiprocessors : {1, 20, 132})
    for (const std::size_t count : {1UL, 255UL, 256UL, 257UL, 1UL << 20, (1UL << 31) + 5}) {
      const int blocks = cuda::blocks_of_each(count, multiprocessors);
      ASSERT_GE(blocks, 1);
      EXPECT_LE(blocks, multiprocessors * cuda::kBlocksPerMultiprocessor);
      EXPECT_TRUE(static_cast<std::size_t>(blocks) * cuda::kThreads >= count ||
                  blocks == multiprocessors * cuda::kBlocksPerMultiprocessor);
      EXPECT_LT(static_cast<std::size_t>(blocks - 1) * cuda::kThreads, count);  // no block is idle
    }
}

TEST(LaunchShape, ChunksOfColumnSumsCoverTheRowsOnceAndFitTheScratchMemory) {
  for (const int multiprocessors : {1, 20, 132})
    for (const int rows : {1, 2, 64, 257, 4096, 1 << 20})
      for (const int columns : {1, 31, 32, 33, 512, 12'288, 200'000})
        for (const int sums : {1, 2, 7}) {
          const auto shape = cuda::shape_of_columns(rows, columns, sums, multiprocessors);
          EXPECT_GE(shape.column_blocks * cuda::kBlockColumns, columns);
          EXPECT_LT((shape.column_blocks - 1) * cuda::kBlockColumns, columns);
          EXPECT_GE(std::int64_t{shape.chunks} * shape.rows_per_chunk, rows);
          EXPECT_LT(std::int64_t{shape.chunks - 1} * shape.rows_per_chunk, rows);  // no chunk is empty
          EXPECT_LE(shape.chunks, 65535);  // the limit of a grid's second extent
          if (shape.chunks > 1) {
            EXPECT_LE(static_cast<std::size_t>(shape.chunks) * static_cast<std::size_t>(columns * sums),
                      cuda::kPartials);
          }
        }
}

TEST(LaunchShape, EachRowHasItsGroup) {
  for (const int rows : {1, 7, 8, 9, 100'000})
    for (const int length : {1, 32, 256, 257, 200'000}) {
      const auto shape = cuda::shape_of_rows(rows, length);
      EXPECT_GE(shape.blocks * (shape.block_a_row ? 1 : cuda::kThreads / cuda::kWarp), rows);
      EXPECT_EQ(shape.block_a_row, length > 256);
    }
}

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
  ops->read(whole, x.data);
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
  ops->read(half, x.data);
  EXPECT_EQ(half, std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(half.size()), whole.end()));
}

struct Steps {
  const char* model;
  AdversarialLoss loss;
  Growth growth = {};
  int discriminator_steps = 1;
  bool recompute = false;
};
void PrintTo(const Steps& steps, std::ostream* out) { *out << steps.model; }

/// The losses of some steps on random images, and the weights and samples after them.
struct Course {
  std::vector<double> losses;
  SafeTensors weights;
  std::vector<float> samples;
};
Course run(const Backend& backend, const Steps& what, int steps) {
  TensorOps& ops = *backend.ops;
  const Model& model = find_model(what.model);
  Gan gan = model.build(model.grows() ? ImageShape{8, 8, 3} : model.images.front(), what.growth);
  gan.prepare(ops, 3, 5,
              {.average = true,
               .gradient_penalty = what.loss == AdversarialLoss::wasserstein,
               .activations = {what.recompute, Compression::none}});
  StepRandom random(7);
  StepOptions options{
      .loss = what.loss, .discriminator_steps = what.discriminator_steps, .adam = model.adam, .average_decay = 0.9F};
  // With a small epsilon Adam's first steps turn a gradient near zero into a whole step of either sign.
  options.adam.epsilon = 1e-3F;
  StepClock clock;
  RandomStream pixels(9, "tests/pixels");
  Course course;
  for (int step = 0; step < steps; ++step) {
    if (what.growth.fading) *gan.share = 0.1F * static_cast<float>(step + 1);
    ops.timeline().begin_step();
    const Losses losses = gan_step(gan, ops, random, options, clock, [&] {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(gan.image.pixels() * 3));
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(pixels.below(256));
      ops.load_images(gan.real, bytes, gan.darkest, gan.channels());
    });
    course.losses.insert(course.losses.end(), {losses.discriminator, losses.generator});
  }
  course.weights = tensors_of(gan, ops, true);
  course.samples = sample_images(gan, ops, 3, 5);
  return course;
}

const Steps kSteps[] = {
    {"mlp-gan", AdversarialLoss::minimax},
    {"dcgan-28", AdversarialLoss::non_saturating, {}, 2},
    {"dcgan-28", AdversarialLoss::wasserstein},
    {"dcgan-32", AdversarialLoss::hinge, {}, 1, true},
    {"progressive-gan", AdversarialLoss::wasserstein, {1, true}},
    {"progressive-gan", AdversarialLoss::wasserstein, {1, false}},
    {"progressive-gan-video", AdversarialLoss::wasserstein, {1, true}},
};
std::string name_of_steps(const testing::TestParamInfo<Steps>& instance) {
  std::string name = instance.param.model + std::string("_") + std::to_string(instance.index);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// `growth`: factor by which rounding errors grow from one step to the next; a step's two losses are compared with its
/// power as tolerance.
void expect_alike(const Course& found, const Course& expected, double tolerance, double growth = 1) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < found.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i],
                tolerance * std::pow(growth, static_cast<double>(i / 2)) * (1 + std::abs(expected.losses[i])))
        << i;
  for (const auto& [name, tensor] : expected.weights.tensors) {
    if (name.find(".adam.") != std::string::npos) continue;  // with beta1 = 0 a moment is a gradient, of any size
    const auto& values = found.weights.tensors.at(name).values;
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(tensor.values[i]), 2);
      size += std::pow(static_cast<double>(tensor.values[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), 100 * tolerance * std::sqrt(size) + 1e-4) << name;
  }
}

class CudaSteps : public testing::TestWithParam<Steps> {};
INSTANTIATE_TEST_SUITE_P(OfModels, CudaSteps, testing::ValuesIn(kSteps), name_of_steps);

TEST_P(CudaSteps, AreTheCpusWithTheSameRandomNumbers) {
  const auto cpu = make_eigen_backend(2), hosted = make_hosted_cuda_backend({.graph = false, .host_random = true});
  // The second derivatives of a gradient penalty amplify the rounding of products, which differs between AVX2 and
  // AVX-512.
  const double growth = GetParam().loss == AdversarialLoss::wasserstein ? 10 : 1;
  expect_alike(run(*hosted, GetParam(), 4), run(*cpu, GetParam(), 4), 1e-5, growth);
}

TEST_P(CudaSteps, ReplayedAreThoseRunCallByCall) {
  const CudaOptions options{.loads_a_step = GetParam().discriminator_steps};
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
    ops.read(host, x.data);
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
}

TEST(HostedTrainer, ResumesToTheSameLosses) {
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

TEST(HostedTrainer, RefusesWhatGpusDoNotDoTogether) {
  for (const bool norm : {true, false}) {
    TrainOptions options = dcgan_options();
    options.synchronized_norm = norm;
    if (!norm) options.compression = "int8";
    EXPECT_THAT(
        [&] {
          ThreadGroup::run(
              2, [&](Communicator& communicator) { Trainer(options, &communicator, make_hosted_cuda_backend({})); });
        },
        testing::ThrowsMessage<ConfigError>(testing::HasSubstr(norm ? "--sync-batch-norm" : "--compression")));
  }
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
  expect_alike(run(*gpu, GetParam(), 4), run(*cpu, GetParam(), 4), 1e-4);
}

TEST_P(GpuSteps, ReplayedAreThoseRunCallByCall) {
  CudaOptions options{.precision = Precision::fp32, .loads_a_step = GetParam().discriminator_steps};
  const auto replayed = open_cuda_backend(options);
  options.graph = false;
  const auto called = open_cuda_backend(options);
  expect_alike(run(*replayed, GetParam(), 5), run(*called, GetParam(), 5), 1e-5);
}

TEST_P(GpuSteps, InFewerBitsStayNear) {
  const auto exact = open_cuda_backend({.precision = Precision::fp32, .host_random = false});
  const Course expected = run(*exact, GetParam(), 1);
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const auto ops = open_cuda_backend({.precision = precision});
    const Course found = run(*ops, GetParam(), 1);
    for (std::size_t i = 0; i < found.losses.size(); ++i)
      EXPECT_NEAR(found.losses[i], expected.losses[i], 0.05 * (1 + std::abs(expected.losses[i])));
  }
}

}  // namespace
}  // namespace ganymede::kernel

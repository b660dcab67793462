// Reduction of gradients between processes. Here they are threads; tests/cli/processes_test.cpp starts real processes.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

#include "common/process.hpp"
#include "kernel/compression.hpp"
#include "kernel/network.hpp"
#include "kernel/parallel/bucket_reducer.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

TEST(Compression, HalvesAreRoundedToNearestEven) {
  const auto there_and_back = [](Compression compression, float value) {
    std::uint8_t bytes[8] = {};
    compress(compression, {&value, 1}, bytes);
    float back = 0;
    decompress(compression, bytes, {&back, 1});
    return back;
  };
  for (const float exact : {0.0F, 1.0F, -2.5F, 0.09375F, 65504.0F, 0x1p-24F, -0x1.8p-20F}) {
    EXPECT_EQ(there_and_back(Compression::fp16, exact), exact);
  }
  EXPECT_EQ(there_and_back(Compression::fp16, 1 + 0x1p-11F), 1);  // a tie rounds to even
  EXPECT_EQ(there_and_back(Compression::fp16, 1 + 0x1.8p-10F), 1 + 0x1p-9F);
  EXPECT_EQ(there_and_back(Compression::fp16, 1e9F), 65504);  // the largest number
  EXPECT_EQ(there_and_back(Compression::fp16, 1e-9F), 0);
  EXPECT_EQ(there_and_back(Compression::fp16, 0x1.fffp-15F), 0x1p-14F);  // a subnormal number rounds up to a normal one
  EXPECT_EQ(there_and_back(Compression::bf16, 1 + 0x1p-8F), 1);
  EXPECT_EQ(there_and_back(Compression::bf16, 1 + 0x1.8p-7F), 1 + 0x1p-6F);
  EXPECT_EQ(there_and_back(Compression::bf16, 3e38F), 0x1.c4p+127F);
  for (const Compression compression : {Compression::fp16, Compression::bf16, Compression::int8})
    EXPECT_TRUE(std::isnan(there_and_back(compression, std::numeric_limits<float>::quiet_NaN())));
}

TEST(Compression, LosesNoMoreThanItsBits) {
  RandomStream random(1, "tests/compression");
  std::vector<float> values(1000), back(1000);
  for (float& value : values) value = static_cast<float>(random.normal() * std::exp(3 * random.normal()));
  for (const auto& [compression, bytes] : {std::pair{Compression::none, 4000U}, std::pair{Compression::fp16, 2000U},
                                           std::pair{Compression::bf16, 2000U}, std::pair{Compression::int8, 1016U}}) {
    ASSERT_EQ(compressed_bytes(compression, 1000), bytes);
    std::vector<std::uint8_t> packed(bytes);
    compress(compression, values, packed.data());
    decompress(compression, packed.data(), back);
    for (std::size_t i = 0; i < 1000; ++i) {
      float most = 0;
      for (std::size_t j = i / 256 * 256; j < std::min<std::size_t>(1000, (i / 256 + 1) * 256); ++j)
        most = std::max(most, std::abs(values[j]));
      const float size = std::abs(values[i]);
      const float allowed = compression == Compression::none   ? 0
                            : compression == Compression::fp16 ? size * 0x1p-11F + 0x1p-25F
                            : compression == Compression::bf16 ? size * 0x1p-8F
                                                               : most / 254 * 1.001F;
      ASSERT_NEAR(back[i], values[i], allowed) << i;
    }
  }
}

class ReducerTest : public testing::TestWithParam<Compression> {
 protected:
  static constexpr int kRanks = 3;

  /// The gradients of each process, summed over several passes, and the exact means.
  struct Sums {
    std::vector<std::vector<float>> reduced{kRanks};
    std::vector<double> expected;
  };

  static Sums passes(Compression compression, int count, bool on_device = false) {
    ThreadGroup group(kRanks);
    Sums sums;
    std::vector<std::thread> threads;
    std::vector<std::vector<double>> given(kRanks);
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const auto me = static_cast<std::size_t>(rank);
        const auto backend = on_device ? make_hosted_cuda_backend({}) : make_eigen_backend(1);
        TensorOps* const ops = backend->ops.get();
        const auto communicator = group.member(rank);
        if (on_device) backend->gradient_reducer->join(*communicator);
        Layers layers;  // several buckets of 4 MiB; one has two layers
        layers.push_back(dense("first", 700, 900));
        layers.push_back(leaky("leaky", 900, 0.2F));
        layers.push_back(dense("second", 900, 1300));
        layers.push_back(dense("third", 1300, 5));
        Network network("network", std::move(layers));
        RandomStream initial(1, "tests/initial"), random(static_cast<std::uint64_t>(rank), "tests/gradients");
        network.prepare(*ops, 2, initial);
        BucketReducer reducer(network, *backend, *communicator, compression);
        sums.reduced[me].assign(network.parameter_floats(), 0);
        given[me].assign(network.parameter_floats(), 0);
        for (int pass = 0; pass < count; ++pass) {
          for (std::size_t i = 0; i < network.parameter_floats(); ++i) {
            network.gradient_data()[i] = static_cast<float>(random.uniform() - 0.25);
            given[me][i] += static_cast<double>(network.gradient_data()[i]);
          }
          for (std::size_t layer = network.layers().size(); layer-- > 0;) reducer.layer_done(layer);
          reducer.wait();
          for (std::size_t i = 0; i < network.parameter_floats(); ++i)
            sums.reduced[me][i] += network.gradient_data()[i];
        }
      });
    for (auto& thread : threads) thread.join();
    sums.expected.assign(given[0].size(), 0);
    for (const auto& part : given)
      for (std::size_t i = 0; i < part.size(); ++i) sums.expected[i] += part[i] / kRanks;
    return sums;
  }
};

INSTANTIATE_TEST_SUITE_P(Bits, ReducerTest,
                         testing::Values(Compression::none, Compression::fp16, Compression::bf16, Compression::int8));

TEST_P(ReducerTest, EveryProcessHasTheMeanInTheSameBits) {
  const Sums sums = passes(GetParam(), 1);
  EXPECT_EQ(sums.reduced[0], sums.reduced[1]);
  EXPECT_EQ(sums.reduced[0], sums.reduced[2]);
  const double tolerance = GetParam() == Compression::none   ? 1e-6
                           : GetParam() == Compression::fp16 ? 4e-4
                           : GetParam() == Compression::bf16 ? 3e-3
                                                             : 4e-3;
  for (std::size_t i = 0; i < sums.expected.size(); ++i)
    ASSERT_NEAR(static_cast<double>(sums.reduced[0][i]), sums.expected[i], tolerance) << i;
}

TEST_P(ReducerTest, OnDevicesTheyAreThoseOfTheHost) {
  EXPECT_EQ(passes(GetParam(), 3, true).reduced, passes(GetParam(), 3).reduced);
}

TEST(ReducerTestOfEightBits, WhatOnePassLosesTheNextAdds) {
  class Access : public ReducerTest {
   public:
    using ReducerTest::passes;
    void TestBody() override {}
  };
  const auto sums = Access::passes(Compression::int8, 20);
  // Independent rounding would add up to about sqrt(20) times the error of a pass; with the residual it stays one
  // pass's.
  for (std::size_t i = 0; i < sums.expected.size(); ++i)
    ASSERT_NEAR(static_cast<double>(sums.reduced[0][i]), sums.expected[i], 4e-3) << i;
}

TEST(GpuOfProcess, IsOneOfThoseThatItSees) {
  ::setenv("SLURM_LOCALID", "3", 1);
  EXPECT_EQ(gpu_of_process(8), 3);  // all of the machine's
  EXPECT_EQ(gpu_of_process(1), 0);  // only its own
  EXPECT_EQ(gpu_of_process(2), 1);
  EXPECT_EQ(gpu_of_process(0), 0);
  ::unsetenv("SLURM_LOCALID");
}

TEST(CoresOfProcess, AreAPartOfTheMachineWhereSeveralRunOnIt) {
  EXPECT_EQ(cores_of_process(16, 16), 16);
  for (const auto& [variable, value] : {std::pair{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                        {"MPI_LOCALNRANKS", "4"},
                                        {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}}) {
    ::setenv(variable, value, 1);
    EXPECT_EQ(cores_of_process(16, 16), 4) << variable;
    EXPECT_EQ(cores_of_process(16, 2), 2) << "bound to two by the launcher";
    EXPECT_EQ(cores_of_process(2, 2), 1) << "more processes than processors";
    ::unsetenv(variable);
  }
}

// The test starts itself as a launcher that binds a process to one core does.
TEST(CoresOfLauncher, AreThoseOfTheProgramThatStartedThisOne) {
  if (const char* expected = std::getenv("GANYMEDE_TEST_CORES")) {
    EXPECT_EQ(cores_of_launcher(), std::atoi(expected));
    EXPECT_EQ(usable_cores(), 1);
    return;
  }
  EXPECT_EQ(cores_of_launcher(), usable_cores());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  int first = 0;
  while (!CPU_ISSET(first, &mask)) ++first;
  const std::string command = fmt::format(
      "OMPI_COMM_WORLD_LOCAL_SIZE=2 GANYMEDE_TEST_CORES={} taskset -c {} {} --gtest_filter='CoresOfLauncher.*'",
      usable_cores(), first, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace ganymede::kernel

// Replicas on several GPUs: their gradients are averaged, and one that fails or never comes lets no other wait.

#include <cmath>

#include "common/errors.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/train.hpp"
#include "small_training.hpp"
#include "support/when.hpp"

namespace ganymede::kernel::stand_in {
namespace {

/// Threads that take themselves for processes, so that they capture graphs.
class AsProcess final : public Communicator {
 public:
  explicit AsProcess(Communicator& thread) : thread_(thread) {}
  std::string name() const override { return "as processes"; }
  Shard shard() const override { return thread_.shard(); }
  void sum(std::span<double> values) override { thread_.sum(values); }
  void sum_gradients(std::span<float> values) override { thread_.sum_gradients(values); }
  bool abandoned() override { return thread_.abandoned(); }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    thread_.gather_gradients(mine, all);
  }

 private:
  Communicator& thread_;
};

CudaOptions options_of(const Communicator& communicator) {
  return {.device = communicator.shard().rank, .precision = Precision::fp32};
}

TEST(Replicas, ComputeWhatOneDoesFromTheSameImagesInEveryOrder) {
  std::vector<float> alone;
  {
    const Session session;
    alone = SmallTraining({.precision = Precision::fp32}, nullptr).run(4);
  }
  for (const Order order : {Order::late, Order::at_once, Order::others_first})
    for (const int gpus : {2, 4}) {
      const Session session({.order = order, .devices = gpus});
      std::vector<std::vector<float>> losses(static_cast<std::size_t>(gpus));
      ThreadGroup::run(gpus, [&](Communicator& thread) {
        AsProcess process(thread);
        losses[static_cast<std::size_t>(thread.shard().rank)] = SmallTraining(options_of(process), &process).run(4);
      });
      EXPECT_THAT(losses, testing::Each(alone)) << gpus;
      EXPECT_GT(graph_nodes(), 10U);
    }
}

/// The losses of a training whose `ranks` replicas have a batch of 8 together.
std::vector<double> losses_together(TrainOptions options, int ranks,
                                    const std::function<std::unique_ptr<Backend>(int)>& make) {
  options.batch = 8 / ranks;
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(ranks));
  ThreadGroup::run(ranks, [&](Communicator& thread) {
    AsProcess process(thread);
    const int rank = thread.shard().rank;
    Trainer trainer(options, ranks > 1 ? &process : nullptr, make(rank));
    for (int i = 0; i < 3; ++i) {
      const Losses step = trainer.step();
      losses[static_cast<std::size_t>(rank)].insert(losses[static_cast<std::size_t>(rank)].end(),
                                                    {step.discriminator, step.generator});
    }
  });
  EXPECT_THAT(losses, testing::Each(losses.front()));
  return losses.front();
}

std::vector<double> losses_on_gpus(const TrainOptions& options, int ranks, bool alike, Order order = Order::late) {
  const Session session({.order = order, .devices = ranks});
  return losses_together(options, ranks, [alike](int rank) {
    return open({.device = rank, .precision = Precision::fp32, .graph = !alike, .host_random = alike});
  });
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

TrainOptions options_with(const char* model, const char* compression) {
  TrainOptions options;
  options.model = model;
  options.compression = compression;
  options.synchronized_norm = true;
  options.epsilon = 1e-3F;
  return options;
}

TEST(Replicas, OfOneBatchNormHaveTheLossesOfOneGpuWithTheWholeBatch) {
  const TrainOptions dense = options_with("mlp-gan", "none");
  const auto whole = losses_on_gpus(dense, 1, false);
  expect_near(losses_on_gpus(dense, 4, false), whole, 1e-5);
  TrainOptions apart = dense;
  apart.synchronized_norm = false;
  EXPECT_GT(std::abs(losses_on_gpus(apart, 2, false).back() - whole.back()), 1e-4);
}

TEST(Replicas, OfOneBatchNormHaveTheLossesOfOneGpuWithConvolutionsToo) {
  NOT_SANITIZED("dense layers take the same paths between GPUs");
  const TrainOptions convolutions = options_with("dcgan-28", "none");
  expect_near(losses_on_gpus(convolutions, 2, false, Order::others_first), losses_on_gpus(convolutions, 1, false),
              1e-5);
}

TEST(Replicas, CompressGradientsAsTheCpuDoes) {
  NOT_SANITIZED("tests/kernel compresses there the same gradients");
  // Blocks of int8 numbers are those of the CPU only in dense layers: filters have another order on a GPU.
  for (const auto& [model, compression] : {std::pair("dcgan-28", "fp16"), std::pair("mlp-gan", "int8")}) {
    const TrainOptions options = options_with(model, compression);
    const auto on_cpus = losses_together(options, 2, [](int) { return make_eigen_backend(1); });
    expect_near(losses_on_gpus(options, 2, true), on_cpus, 1e-5);
  }
  // The captured step keeps what is lost, too.
  const TrainOptions options = options_with("mlp-gan", "int8");
  expect_near(losses_on_gpus(options, 4, false, Order::others_first), losses_on_gpus(options, 1, false), 1e-3);
}

TEST(Replicas, OfOneProcessRunWithoutAGraph) {
  const Session session({.devices = 2});
  ThreadGroup::run(2, [&](Communicator& thread) { SmallTraining(options_of(thread), &thread).run(4); });
  EXPECT_EQ(graph_nodes(), 0U);
}

struct Failing {
  const char* name;
  int step;      ///< in which replica 1 fails
  bool reduced;  ///< after its reduction has begun
};
void PrintTo(const Failing& failing, std::ostream* out) { *out << failing.name; }

class FailingReplica : public testing::TestWithParam<Failing> {};
INSTANTIATE_TEST_SUITE_P(, FailingReplica,
                         testing::Values(Failing{"eager", 0, true}, Failing{"eager_after", 0, false},
                                         Failing{"capturing", 1, true}, Failing{"captured", 1, false},
                                         Failing{"replayed", 2, false}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(FailingReplica, LetsNobodyWait) {
  for (const Order order : {Order::late, Order::others_first}) {
    const Session session({.order = order, .devices = 2});
    const auto work = [&](Communicator& thread) {
      AsProcess process(thread);
      SmallTraining training(options_of(process), &process);
      for (int step = 0; step < 4; ++step) {
        const bool fails = process.shard().rank == 1 && step == GetParam().step;
        training.step([&] {
          if (fails && GetParam().reduced) throw ConfigError("mine");
        });
        if (fails) throw ConfigError("mine");
      }
    };
    EXPECT_THAT([&] { ThreadGroup::run(2, work); }, testing::ThrowsMessage<ConfigError>("mine"));
  }
}

TEST(Replicas, EndWhenNcclReportsAnError) {
  const Session session({.devices = 2});
  const auto work = [&](Communicator& thread) {
    AsProcess process(thread);
    TrainOptions options;
    options.model = "mlp-gan";
    options.batch = 4;
    Trainer trainer(options, &process, open(options_of(process)));
    trainer.run(3);
    break_network();
    trainer.run(1);
  };
  EXPECT_THAT([&] { ThreadGroup::run(2, work); }, testing::ThrowsMessage<Failure>(testing::HasSubstr("NCCL")));
}

TEST(Replicas, EndIfAnyCallOfOneFails) {
  int all = 0;
  const auto work = [&](Communicator& thread) {
    AsProcess process(thread);
    SmallTraining(options_of(process), &process).run(3);
    if (thread.shard().rank == 1) all = calls(1);
  };
  {
    const Session session({.devices = 2});
    ThreadGroup::run(2, work);
  }
  ASSERT_GT(all, 100);
  // The number of calls that look whether work is done differs from run to run.
  for (int failing = 1; failing <= all; ++failing) {
    SCOPED_TRACE(failing);
    const Session session({.devices = 2, .failing_device = 1, .failing_call = failing});
    try {
      ThreadGroup::run(2, work);
    } catch (const Failure&) {
      EXPECT_FALSE(failed_call().empty());
    }
  }
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

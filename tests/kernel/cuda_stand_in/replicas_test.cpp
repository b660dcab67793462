// Replicas on several GPUs: their gradients are averaged, and one that fails or never comes lets no other wait.

#include <cmath>

#include "common/errors.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/train.hpp"
#include "small_training.hpp"

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

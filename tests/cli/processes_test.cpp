// Several processes of one training, started as a user starts them: mpirun -n 2 ganymede train.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
const bool kUsable = std::filesystem::exists(GANYMEDE_MPI_MODULE) && std::system("command -v mpirun >/dev/null") == 0;

class Processes : public testing::Test {
 protected:
  void SetUp() override {
    if (!kUsable) GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  }

  static Outcome run(int processes, const std::string& arguments) {
    const std::string launcher =
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -n " +
        std::to_string(processes);
    return processes == 1 ? run_program(arguments) : run_program(arguments, launcher);
  }

  static Json history(int processes, const std::string& arguments) {
    const Outcome outcome =
        run(processes, "train --quiet --format json --threads 1 --lr 1e-5 --epsilon 1e-4 " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("history");
  }

  static void expect_near(const Json& found, const Json& expected, double tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const char* network : {"discriminator", "generator"}) {
        const auto value = expected[i][network].get<double>();
        EXPECT_NEAR(found[i][network].get<double>(), value, tolerance * std::abs(value)) << network << " " << i;
      }
  }
};

TEST_F(Processes, OfHalfABatchGiveTheLossesOfOneOfTheWhole) {
  // One model with dropout, those with batch norms over the whole batch, and one whose absolute error has a gradient
  // that jumps where rounding makes two images equal.
  for (const char* model : {"mlp-gan", "dcgan-28", "cgan-28", "vae-28", "cyclegan-32"}) {
    const std::string arguments = std::string("--steps 6 --model ") + model;
    const Json whole = history(1, arguments + " --batch 16");
    const double tolerance = model == std::string("cyclegan-32") ? 5e-5 : 2e-6;
    expect_near(history(2, arguments + " --batch 8 --sync-batch-norm"), whole, tolerance);
    expect_near(history(4, arguments + " --batch 4 --sync-batch-norm"), whole, tolerance);
  }
}

TEST_F(Processes, WithoutThatTheirBatchNormsDiffer) {
  const Json whole = history(1, "--steps 3 --model dcgan-28 --batch 16"),
             parts = history(2, "--steps 3 --model dcgan-28 --batch 8");
  EXPECT_GT(std::abs(parts[0]["generator"].get<double>() - whole[0]["generator"].get<double>()), 1e-5);
  expect_near(parts, whole, 0.1);
}

TEST_F(Processes, CompressTheirGradients) {
  const Json whole = history(1, "--steps 6 --model dcgan-28 --batch 16");
  for (const char* bits : {"fp16", "bf16", "int8"})
    expect_near(history(2, std::string("--steps 6 --model dcgan-28 --batch 8 --sync-batch-norm --compression ") + bits),
                whole, 1e-3);
}

TEST_F(Processes, GoOnFromACheckpointAndOnlyTheFirstWrites) {
  const Scratch scratch;
  const std::string keep = " --checkpoint " + (scratch / "run").string();
  const Json whole = history(2, "--steps 6 --batch 8");
  history(2, "--steps 3 --batch 8" + keep);
  const Json rest = history(2, "--steps 6 --batch 8 --resume" + keep);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i]["discriminator"], whole[i + 3]["discriminator"]);
    EXPECT_EQ(rest[i]["generator"], whole[i + 3]["generator"]);
  }
  // A single process that trains the whole batch can continue from the checkpoint too.
  EXPECT_EQ(run(1, "train --quiet --steps 7 --batch 16 --resume" + keep).code, 0);
}

TEST_F(Processes, EndTogetherOnBadInput) {
  EXPECT_NE(run(2, "train --steps 3 --batch 8000").code, 0);
  EXPECT_THAT(run(2, "train --steps 3 --batch 8000").err, HasSubstr("--batch: found 8000, expected at most 5000"));
  EXPECT_THAT(run(2, "train --steps 3 --trace /tmp/none.json").err, HasSubstr("--trace: found several processes"));
}

/// A launcher that gives the last process one more argument, or a command that runs before it.
std::string start_unlike(const std::string& second) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 GANYMEDE_MPI_PATIENCE=1 timeout 120 mpirun "
         "--oversubscribe -n 2 sh -c '" +
         second + "' sh";
}

TEST_F(Processes, StartedUnlikeAreRefused) {
  for (const auto& [flag, value] : {std::pair{"--lr", "0.5"}, std::pair{"--seed", "7"}, std::pair{"--steps", "4"}}) {
    const std::string more = std::string(flag) + " " + value;
    const Outcome outcome =
        run_program("train --batch 8 --threads 1",
                    start_unlike("[ $OMPI_COMM_WORLD_RANK = 0 ] || set -- \"$@\" " + more + "; exec \"$@\""));
    EXPECT_EQ(outcome.code, 2) << flag << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(flag) + ": rank 1 was started with another value than rank 0"));
  }
}

// The other process would wait for ever for one that is stopped.
TEST_F(Processes, AStoppedOneEndsTheTrainingAndIsNamed) {
  const Outcome outcome = run_program(
      "train --batch 8 --threads 1 --steps 1000000",
      start_unlike("[ $OMPI_COMM_WORLD_RANK = 0 ] || { pid=$$; (sleep 3; kill -STOP $pid) & }; exec \"$@\""));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("no answer from rank 1 on "));
}

TEST(OneProcess, HasNobodyToSendGradientsTo) {
  const Outcome outcome = run_program("train --steps 3 --compression int8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found one process, expected several"));
  EXPECT_EQ(run_program("train --steps 3 --compression zip").code, 2);
}

TEST_F(Processes, ShareTheLockOfTheirCheckpoints) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string();
  const std::string train = "train --model mlp-gan --batch 8 --threads 1 --checkpoint " + folder + " --steps ";
  const Outcome together = run(2, train + "2");
  EXPECT_EQ(together.code, 0) << together.err;
  const int other = ::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);  // as another training would hold the lock
  const Outcome refused = run(2, train + "4 --resume");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(folder + ": found a training"));
  ::close(other);
  EXPECT_EQ(run(2, train + "4 --resume").code, 0);
}

TEST_F(Processes, TimeTheirAllReduceForAnOverlay) {
  const Scratch scratch;
  const std::string catalog = scratch.write("lab.json", run_program("example platform").out);
  const Outcome outcome = run(2, "calibrate --model mlp-gan --backend cpu --threads 1 --gpus 2 --catalog " + catalog +
                                     " --instance node --scheme ring -o " + (scratch / "trace.json").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string log = content_of(scratch / "trace.all-reduce.txt");
  EXPECT_THAT(log, testing::AllOf(HasSubstr("2 ranks by MPI"), HasSubstr("67108864")));
  const Json overlay = Json::parse(content_of(scratch / "trace.overlay.json"));
  EXPECT_EQ(overlay["schema"], "ganymede.overlay/1");
  EXPECT_EQ(overlay["platform"]["instances"]["node"]["gpu_links"]["label"], "measured");
  EXPECT_EQ(overlay["fit"]["rows"].size(), 8U);
  // Commands accept the overlay.
  EXPECT_EQ(run_program("allreduce --catalog " + catalog + " --overlay " + (scratch / "trace.overlay.json").string() +
                        " --instance node --nodes 1 --gpus-per-node 2 --scheme ring --bytes 1MiB")
                .code,
            0);
}

}  // namespace
}  // namespace ganymede::cli

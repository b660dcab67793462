// ganymede train and generate around checkpoints, as a user runs and interrupts them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;

TEST(Train, AnInterruptedTrainingGoesOnAsIfItHadNotStopped) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string(), train = "train --model mlp-gan --batch 16 ";
  // A training of very many steps is stopped once it has a checkpoint, and says after which step. The test does not
  // depend on how long the start takes.
  const std::string endless = "{ " GANYMEDE_BINARY " " + train + "--steps 1000000 --checkpoint-every 20 --checkpoint " +
                              folder + " 2> " + (scratch / "err").string() +
                              " & } ; child=$!; for i in $(seq 600); do " + "ls " + folder +
                              "/*.ckpt > /dev/null 2>&1 && break; sleep 0.1; done; " + "kill -TERM $child; wait $child";
  const int status = std::system(endless.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const std::string said = content_of(scratch / "err");
  const auto at = said.find("stopped after step ");
  ASSERT_NE(at, std::string::npos) << said;
  const std::string steps = std::to_string(std::stoll(said.substr(at + 19)) + 5);
  const Outcome resumed = run_program(train + "--steps " + steps + " --resume --checkpoint " + folder + " --weights " +
                                      (scratch / "resumed").string());
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on from"));
  EXPECT_EQ(run_program(train + "--steps " + steps + " --weights " + (scratch / "whole").string()).code, 0);
  EXPECT_TRUE(content_of(scratch / "resumed") == content_of(scratch / "whole"));

  const Outcome images =
      run_program("generate --checkpoint " + folder + " --count 5 --format json -o " + (scratch / "g.png").string());
  EXPECT_EQ(images.code, 0) << images.err;
  EXPECT_EQ(Json::parse(images.out)["images"], 5);
  EXPECT_GT(Json::parse(images.out)["memory_bytes"].get<double>(), 1e6);
  EXPECT_EQ(content_of(scratch / "g.png").substr(1, 3), "PNG");
}

// Reading a pipe that nobody writes would never end, and a device might not.
TEST(Train, ACheckpointThatIsNoFileIsRefused) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "run");
  const std::string file = (scratch / "run" / "step-000000000009.ckpt").string();
  for (const bool pipe : {true, false}) {
    if (pipe)
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    else
      std::filesystem::create_symlink("/dev/zero", file);
    const Outcome refused = run_program(
        "train --model mlp-gan --batch 2 --steps 2 --threads 1 --resume --checkpoint " + (scratch / "run").string(),
        "timeout 60");
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("step-000000000009.ckpt: is no regular file, expected a checkpoint"));
    std::filesystem::remove(file);
  }
}

TEST(Train, AnOutputThatCannotBeWrittenTakesNoOtherWithIt) {
  const Scratch scratch;
  const Outcome full =
      run_program("train --model mlp-gan --batch 2 --steps 1 --threads 1 --samples /dev/full --weights " +
                  (scratch / "weights").string());
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "weights"));
}

// A full disk or a slow one makes the write long: the file is 27 MB. What is written to try the folder, before the
// training, has the name of step 0.
TEST(Train, EndedWhileItWritesTheLastCheckpointWritesItUnlessItIsAskedTwice) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string();
  for (const std::string kills : {"kill -TERM $child; ", "kill -TERM $child; sleep 0.002; kill -TERM $child; "}) {
    std::filesystem::remove_all(folder);
    const std::string script = "{ " GANYMEDE_BINARY " train --model mlp-gan --batch 16 --steps 2 --checkpoint " +
                               folder + " 2> " + (scratch / "err").string() +
                               " & } ; child=$!; for i in $(seq 20000); do for file in " + folder +
                               "/step-000000000002.*; do [ -e $file ] && break 2; done; sleep 0.001; done; " + kills +
                               "wait $child; code=$?; ls " + folder + "/*.tmp-* 2> /dev/null && exit 77; exit $code";
    const int status = std::system(("bash -c '" + script + "'").c_str());
    // Where the training had ended before the second signal came it has ended well.
    if (kills.find("sleep") == std::string::npos) {
      EXPECT_EQ(WEXITSTATUS(status), 0) << content_of(scratch / "err");
      EXPECT_TRUE(std::filesystem::exists(folder + "/step-000000000002.ckpt"));
    } else {
      EXPECT_THAT(WEXITSTATUS(status), testing::AnyOf(128 + SIGTERM, 0)) << content_of(scratch / "err");
    }
  }
}

/// Starts a training of very many steps in the background, waits for its first checkpoint, runs the shell command
/// `then` beside it, and returns the exit code of `then`. The training's process is $child.
int beside_a_training(const std::string& folder, const std::string& then) {
  const std::string script = "{ " GANYMEDE_BINARY
                             " train --model mlp-gan --batch 16 --steps 1000000 --checkpoint-every 5 --checkpoint " +
                             folder + " 2> /dev/null & } ; child=$!; for i in $(seq 600); do ls " + folder +
                             "/*.ckpt > /dev/null 2>&1 && break; sleep 0.1; done; " + then +
                             "; code=$?; kill -KILL $child 2> /dev/null; wait $child 2> /dev/null; exit $code";
  const int status = std::system(("bash -c '" + script + "'").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Two trainings in one folder would remove each other's checkpoints, so that the work of one would be lost.
TEST(Train, OneTrainingAtATimeHasAFolder) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string(), said = (scratch / "said").string();
  const std::string second = GANYMEDE_BINARY
                             " train --model mlp-gan --batch 16 --steps 1000000 --resume --checkpoint " +
                             folder + " 2> " + said;
  EXPECT_EQ(beside_a_training(folder, "timeout 60 " + second), 2);
  EXPECT_THAT(content_of(said), testing::AllOf(HasSubstr(folder + ": found a training"), HasSubstr("(process ")));
  // The first training was killed and no longer holds the folder: the next one goes on from it.
  const std::string until_it_goes_on = " & training=$!; for i in $(seq 600); do grep -q 'going on from' " + said +
                                       " && break; sleep 0.1; done; kill -TERM $training; wait $training";
  const int next = std::system((second + until_it_goes_on).c_str());
  EXPECT_NE(WEXITSTATUS(next), 2);
  EXPECT_THAT(content_of(said), HasSubstr("going on from"));
}

TEST(Train, ARefusedTrainingLeavesNoLock) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string();
  std::filesystem::create_directory(scratch / "empty");
  const Outcome refused =
      run_program("train --batch 16 --steps 2 --data " + (scratch / "empty").string() + " --checkpoint " + folder);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder + "/lock"));
  ASSERT_EQ(run_program("train --batch 16 --steps 2 --checkpoint " + folder).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/lock"));
}

TEST(Train, WritesSamplesAtIntervals) {
  const Scratch scratch;
  const Outcome outcome = run_program("train --model mlp-gan --batch 16 --steps 5 --samples-every 2 --samples " +
                                      (scratch / "s.png").string());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"s.png", "s-000002.png", "s-000004.png"}) EXPECT_FALSE(content_of(scratch / name).empty());
  EXPECT_EQ(scratch.files(), 3U);
}

TEST(Train, AClassIsDrawnByItsNumber) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string(), draw = "generate --checkpoint " + folder + " --count 3 -o ";
  ASSERT_EQ(run_program("train --model cgan-28 --batch 4 --steps 1 --checkpoint " + folder).code, 0);
  const auto drawn = [&](const std::string& options) {
    const std::string file = (scratch / "drawn.png").string();
    EXPECT_EQ(run_program(draw + file + options).code, 0);
    return content_of(file);
  };
  const std::string fives = drawn(" --class 5");
  EXPECT_TRUE(fives == drawn(" --class 5"));
  EXPECT_FALSE(fives == drawn(" --class 6"));
  EXPECT_FALSE(fives == drawn(""));
  const Outcome beyond = run_program(draw + (scratch / "x.png").string() + " --class 10");
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--class: found 10, expected 0 to 9 for cgan-28"));
}

/// Trains, and simulates with what was recorded; returns what the training prints.
std::string trained_and_simulated(const std::string& options) {
  const Scratch scratch;
  const std::string trace = (scratch / "trace.json").string();
  const Outcome trained = run_program("train " + options + " --batch 4 --trace " + trace);
  EXPECT_EQ(trained.code, 0) << trained.err;
  const std::string scenario = (scratch / "scenario.json").string();
  EXPECT_EQ(run_program("example scenario -o " + scenario).code, 0);
  const Outcome simulated = run_program("simulate " + scenario + " --set /workload/trace=" + trace +
                                        " --set /workload/batch_per_gpu=4 --format json");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_GT(Json::parse(simulated.out)["time"]["total_s"].get<double>(), 0);
  return trained.out;
}

TEST(Train, AnAutoencodersTraceIsSimulated) {
  EXPECT_THAT(trained_and_simulated("--model vae-28 --steps 12"), HasSubstr("reconstruction loss"));
}

TEST(Train, TheTraceOfTranslationsIsSimulated) {
  EXPECT_THAT(trained_and_simulated("--model cyclegan-32 --steps 3"), HasSubstr("images/s"));
}

TEST(Train, TranslationsAreShownButNotDrawnFromRandomNumbers) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string(), grid = (scratch / "grid.png").string();
  ASSERT_EQ(
      run_program("train --model cyclegan-32 --batch 2 --steps 1 --checkpoint " + folder + " --samples " + grid).code,
      0);
  EXPECT_THAT(content_of(grid), HasSubstr("PNG"));
  for (const std::string& command : {"generate --checkpoint " + folder + " -o " + (scratch / "x.png").string(),
                                     "serve --listen 127.0.0.1:0 --generator " + folder}) {
    const Outcome refused = run_program(command);
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("found cyclegan-32, which makes images of images")) << command;
  }
  const Outcome none = run_program("train --model cyclegan-32 --steps 1 --dataset " + (scratch / "").string());
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("found neither the folders A and B nor trainA and trainB"));
}

TEST(Train, BadInputIsLocated) {
  const Scratch scratch;
  const std::string folder = (scratch / "run").string();
  const auto expect_rejected = [](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  };
  ASSERT_EQ(run_program("train --batch 16 --steps 2 --checkpoint " + folder).code, 0);
  expect_rejected("train --batch 16 --steps 4 --checkpoint " + folder, "found checkpoints of an earlier training");
  expect_rejected("train --batch 16 --steps 1 --resume --checkpoint " + folder, "expected at least the 2");
  expect_rejected("train --batch 32 --steps 4 --resume --checkpoint " + folder, "of batch 16, expected 32");
  expect_rejected("train --model dcgan-28 --batch 16 --steps 4 --resume --checkpoint " + folder, "of model mlp-gan");
  expect_rejected("train --steps 4 --checkpoint " + scratch.write("file", ""), "file: cannot be made");
  expect_rejected("train --steps 4 --resume", "--resume: expected --checkpoint");
  expect_rejected("train --steps 4 --samples-every 2", "--samples-every");
  expect_rejected("train --steps 4 --checkpoint-every 0 --checkpoint " + folder, "--checkpoint-every: found 0");
  expect_rejected("generate --checkpoint " + folder, "--output");
  expect_rejected("generate --checkpoint " + folder + " --count 0 -o " + (scratch / "x.png").string(),
                  "--count: found 0");
  expect_rejected("generate --checkpoint " + folder + " --class 3 -o " + (scratch / "x.png").string(),
                  "--class: found 3, expected none: mlp-gan learns no classes");
  expect_rejected("generate --checkpoint " + (scratch / "none").string() + " -o " + (scratch / "x.png").string(),
                  "found no checkpoint");
}

}  // namespace
}  // namespace ganymede::cli

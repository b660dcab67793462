// Policies that are programs of the user's: whatever they start, read or write, their time limit holds, and none of
// their processes is left at the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
/// Ends a simulation that hangs; its exit code is then 124.
constexpr const char* kPatience = "timeout 20";

class ExternalPolicyTest : public testing::Test {
 protected:
  static Json scenario(const Json& command, const Json& platform, const char* limit) {
    return {{"schema", "ganymede.scenario/1"},
            {"workload", {{"trace", "recorded:mlp-gan-cpu"}, {"batch_per_gpu", 64}, {"steps", 3000000}}},
            {"platform", platform},
            {"synchronization", {{"scheme", "ring"}}},
            {"policy", {{"name", "external"}, {"command", command}, {"limit", limit}}},
            {"seed", 1}};
  }
  Outcome simulate(const Json& command, const Json& platform) const {
    return run_program("simulate " + scratch_.write("scenario.json", scenario(command, platform, "1s").dump()),
                       kPatience);
  }
  /// A scenario whose policy starts a process that sleeps, makes the file `ready` and never answers.
  static std::string asleep(const std::string& seconds, const std::string& ready) {
    return scenario({"sh", "-c", "sleep " + seconds + " & touch " + ready + "; wait"}, pool(), "60s").dump();
  }
  static Json pool() {
    return {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}, {"nodes", 1}, {"max_nodes", 4}};
  }
  void expect_failure(const Json& command, const std::string& why) const {
    const Outcome outcome = simulate(command, pool());
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << command;
  }
  Scratch scratch_;
};

/// True if some process has exactly these words as its command line.
bool runs(const std::string& words) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string command = content_of(entry.path() / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    if (command == words + " ") return true;
  }
  return false;
}

TEST_F(ExternalPolicyTest, ItsLimitBindsWhateverItStarts) {
  const std::string seconds = "477" + std::to_string(::getpid());  // no other process sleeps so long
  expect_failure({"sh", "-c", "sleep " + seconds + " | cat"}, "gave no answer within 1 s");
  expect_failure({"sh", "-c", "sleep " + seconds + " & exit 3"}, "ended with exit status 3");
  EXPECT_FALSE(runs("sleep " + seconds));
  // A process that leaves the group, and whose parent ends, is ended all the same.
  expect_failure({"sh", "-c", "setsid sleep " + seconds + " & exit 3"}, "ended with exit status 3");
  EXPECT_FALSE(runs("sleep " + seconds));
}

// The second line was taken as the answer to the next observation, and so on to the end.
TEST_F(ExternalPolicyTest, OneLineAnswersOneObservation) {
  const std::string answer = "echo '{\"nodes\": {}}'; ";
  expect_failure({"sh", "-c", "while read line; do " + answer + answer + " done"}, "answered before it was asked");
}

TEST_F(ExternalPolicyTest, WhatItSaysIsBounded) {
  const Outcome loud = simulate({"sh", "-c", "yes 'much to say' >&2"}, pool());
  EXPECT_EQ(loud.code, 1);
  EXPECT_THAT(loud.err, HasSubstr("gave no answer within 1 s"));
  EXPECT_THAT(loud.err, HasSubstr("has written 64 KiB to standard error"));
  EXPECT_LT(loud.err.size(), 70'000U);
  // The message repeats what the program writes before it ends.
  expect_failure({"sh", "-c", "echo the reason >&2; exit 3"}, "the reason");
}

// 300 pools make an observation that is larger than a pipe's buffer of 64 KiB.
TEST_F(ExternalPolicyTest, ItsLimitBindsWhereItDoesNotRead) {
  Json pools = Json::array();
  for (int i = 0; i < 300; ++i) {
    pools.push_back(pool());
    pools.back()["name"] = "pool " + std::to_string(i) + std::string(200, 'x');
  }
  for (const char* program : {"sleep 60", "yes"}) {
    const Outcome outcome = simulate({"sh", "-c", program}, {{"pools", pools}});
    EXPECT_EQ(outcome.code, 1) << program;
    EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("did not read what it is told within 1 s"),
                                            HasSubstr("answered before it was asked")))
        << program;
  }
}

// If the simulation is killed, the system alone would end the policy's program, but not the processes that it has
// started.
TEST_F(ExternalPolicyTest, NothingIsLeftOfItWhenTheSimulationIsKilled) {
  const std::string seconds = "478" + std::to_string(::getpid());
  const std::string ready = (scratch_ / "ready").string();
  const std::string file = scratch_.write("killed.json", asleep(seconds, ready));
  std::system(("bash -c '" GANYMEDE_BINARY " simulate " + file + " & child=$!; for i in $(seq 300); do test -e " +
               ready + " && break; sleep 0.1; done; kill -KILL $child; wait $child 2> /dev/null'")
                  .c_str());
  ASSERT_TRUE(std::filesystem::exists(ready));
  for (int i = 0; i < 300 && runs("sleep " + seconds); ++i) ::usleep(100'000);
  EXPECT_FALSE(runs("sleep " + seconds));
}

// Ctrl-C reaches the whole group of processes, `kill` the simulation alone. Either way it ends by the signal, as the
// shell expects, nothing that the policy has started goes on, and there is no file, not even a temporary one.
TEST_F(ExternalPolicyTest, CtrlCLeavesNothing) {
  for (const auto& [signal, to_all] : {std::pair{SIGINT, true}, std::pair{SIGINT, false}, std::pair{SIGTERM, false}}) {
    const std::string seconds = "479" + std::to_string(::getpid());
    const Scratch scratch;
    const std::string ready = (scratch / "ready").string(), output = (scratch / "result.json").string();
    const std::string file = scratch.write("scenario.json", asleep(seconds, ready));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::setpgid(0, 0);
      ::execl(GANYMEDE_BINARY, GANYMEDE_BINARY, "simulate", file.c_str(), "--format", "json", "-o", output.c_str(),
              nullptr);
      ::_exit(99);
    }
    for (int i = 0; i < 300 && !std::filesystem::exists(ready); ++i) ::usleep(100'000);
    ASSERT_TRUE(std::filesystem::exists(ready));
    ASSERT_EQ(::kill(to_all ? -child : child, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == signal : WEXITSTATUS(status) == 128 + signal) << status;
    for (int i = 0; i < 300 && runs("sleep " + seconds); ++i) ::usleep(100'000);
    EXPECT_FALSE(runs("sleep " + seconds)) << signal;
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(file).parent_path()))
      left.insert(entry.path().filename().string());
    EXPECT_EQ(left, (std::set<std::string>{"ready", "scenario.json"})) << signal;
  }
}

}  // namespace
}  // namespace ganymede::cli

#include "rehearsal/local_hosts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "rehearsal/execution.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/local_network.hpp"
#include "rehearsal/real_allreduce.hpp"
#include "support/errors.hpp"

namespace ganymede::rehearsal {
namespace {

using testing::HasSubstr;

const Shaping kFast{BytesPerSecond{125e6}, Seconds{100e-6}};

/// A ring of three hosts that all check their sums.
std::string ring(kernel::Messenger& messenger) {
  Group group(messenger);
  const sim::Schedule schedule = plan_for_processes(sim::parse_scheme("ring"), sim::flat(group.ranks()), 100'000);
  const TimedCall call = time_call(group, nullptr, schedule, "ring");
  return group.is_first() ? std::to_string(call.median_s) : "";
}

TEST(LocalHosts, TakeAtLeastTheTimeOfTheirNetwork) {
  // 2 (n - 1) rounds of a third of the bytes at the rate, each one latency late.
  EXPECT_GE(std::stod(run_on_hosts(3, kFast, false, ring)), 4 * (100'000.0 / 3 / 125e6 + 100e-6));
  const Shaping slow{BytesPerSecond{1.25e6}, Seconds{20e-3}};
  EXPECT_GE(std::stod(run_on_hosts(3, slow, false, ring)), 4 * (100'000.0 / 3 / 1.25e6 + 20e-3));
}

// Messages of one packet, one after the other. Each packet that is lost comes a round trip later.
TEST(LocalHosts, LosePacketsAndSendThemAgain) {
  constexpr int kMessages = 300;
  constexpr double kLoss = 0.2;
  const Shaping lossy{BytesPerSecond{125e6}, Seconds{200e-6}, kLoss};
  const std::string said = run_on_hosts(2, lossy, false, [](kernel::Messenger& messenger) -> std::string {
    Group group(messenger);
    std::vector<std::byte> bytes(1000);
    const auto lost = [&] { return dynamic_cast<SocketMessenger&>(messenger).lost_packets(); };
    const std::int64_t before = lost();
    const double begin = group.now();
    for (int i = 0; i < kMessages; ++i) {
      if (group.rank() == 0) group.send(bytes, 1, 3);
      if (group.rank() == 1) group.receive(bytes, 0, 3);
      if (group.rank() == 1) group.send(bytes, 0, 3);
      if (group.rank() == 0) group.receive(bytes, 1, 3);
    }
    return std::to_string(group.now() - begin) + " " + std::to_string(lost() - before);
  });
  const double seconds = std::stod(said);
  const int lost = std::stoi(said.substr(said.find(' ')));
  // A packet is sent 1 / (1 - p) times; four standard deviations of the geometric distribution are allowed.
  const double expected = kMessages * kLoss / (1 - kLoss);
  EXPECT_NEAR(lost, expected, 4 * std::sqrt(expected / (1 - kLoss)));
  EXPECT_GE(seconds, kMessages * 2 * 200e-6 + lost * 2 * 200e-6);
}

TEST(LocalHosts, NameADeadPeer) {
  try {
    run_on_hosts(3, kFast, false, [](kernel::Messenger& messenger) {
      if (messenger.rank() == 1) ::raise(SIGKILL);
      return ring(messenger);
    });
    FAIL() << "expected a failure";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("rank 1 has died: crashed (Killed); rank "));
  }
}

TEST(LocalHosts, KillAHostThatIsStopped) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    run_on_hosts(3, kFast, false, [](kernel::Messenger& messenger) -> std::string {
      if (messenger.rank() == 1) ::raise(SIGSTOP);
      if (messenger.rank() == 0) throw Failure("rank 0 has waited for rank 1");
      ::sleep(20);
      return "";
    });
    FAIL() << "no failure";
  } catch (const Failure& failure) {
    // Neither the host that was asked to end nor the one that was killed is what failed.
    EXPECT_STREQ(failure.what(), "rank 0 has waited for rank 1");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(LocalHosts, ArentTakenForDeadWhenTheyAreAskedToEnd) {
  for (int i = 0; i < 20; ++i)
    EXPECT_THROW(run_on_hosts(4, kFast, false,
                              [](kernel::Messenger& messenger) -> std::string {
                                if (messenger.rank() > 0) ::usleep(1000 * static_cast<unsigned>(messenger.rank()));
                                throw ConfigError("nothing of this can be planned");
                              }),
                 ConfigError);
}

TEST(LocalHosts, PassOnWhatAHostThrows) {
  const auto one_refuses = [](kernel::Messenger& messenger) -> std::string {
    if (messenger.rank() == 2) throw ConfigError("rank 2 refuses");
    return ring(messenger);
  };
  EXPECT_THROW(run_on_hosts(3, kFast, false, one_refuses), std::runtime_error);
}

TEST(LocalHosts, InNameSpacesLeaveNothingBehind) {
  if (const std::string why = why_no_name_spaces(); !why.empty()) GTEST_SKIP() << why;
  try {
    EXPECT_GE(std::stod(run_on_hosts(2, {BytesPerSecond{12.5e6}, Seconds{1e-3}}, true, ring)),
              2 * (50'000 / 12.5e6 + 1e-3) * 0.8);
  } catch (const Failure& failure) {
    GTEST_SKIP() << failure.what();  // a container may forbid it
  }
  EXPECT_NE(std::system(("ip netns list | grep -q ganymede-rehearsal-" + std::to_string(::getpid())).c_str()), 0);
}

// A `tc` that takes netem for something that the kernel has, and notes what it is told of it.
TEST(LocalHosts, LetTheKernelDelayWhereItCan) {
  if (const std::string why = why_no_name_spaces(); !why.empty()) GTEST_SKIP() << why;
  char folder[] = "/tmp/ganymede-tc-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/tc", path = ::getenv("PATH");
  std::ofstream(file) << "#!/bin/sh\ncase \"$*\" in *netem*) echo \"$*\" >> " << folder
                      << "/told; exit 0 ;; esac\nPATH=" << path << " exec tc \"$@\"\n";
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  ::setenv("PATH", (std::string(folder) + ":" + path).c_str(), 1);
  try {
    const NameSpaces spaces(2, BytesPerSecond{12.5e6}, Seconds{1.5e-3}, 0.01);
    EXPECT_TRUE(spaces.has_netem());
    spaces.set_rate(BytesPerSecond{6e6});
  } catch (const Failure& failure) {
    ADD_FAILURE() << failure.what();
  }
  ::setenv("PATH", path.c_str(), 1);
  std::ifstream in(std::string(folder) + "/told");
  const std::string told((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(told,
              HasSubstr("qdisc add dev eth0 parent 1:1 handle 10: netem limit 1000000 delay 1500us loss 1.000000%"));
  std::filesystem::remove_all(folder);
}

TEST(LocalHosts, RemoveNameSpacesOfProgramsThatAreGone) {
  if (const std::string why = why_no_name_spaces(); !why.empty()) GTEST_SKIP() << why;
  // No process has this number, which is above the kernel's highest.
  if (std::system("ip netns add ganymede-rehearsal-99999999-0 2>/dev/null") != 0) GTEST_SKIP() << "forbidden here";
  ASSERT_EQ(std::system("ip netns add another-99999999-0"), 0);
  EXPECT_GE(remove_left_over_name_spaces(), 1);
  EXPECT_EQ(std::system("ip netns del another-99999999-0"), 0);  // not ours, so it was left
  EXPECT_NE(std::system("ip netns list | grep -q ganymede-rehearsal-99999999-0"), 0);
}

// Texts go as bytes, of any length up to the longest.
TEST(LocalHosts, LearnTheFirstTextThatIsNotEmpty) {
  const auto texts = [](kernel::Messenger& messenger) {
    Group group(messenger);
    const std::string none = group.first_of("");
    const std::string first =
        group.first_of(group.rank() == 0 ? "" : "fault " + std::string(11, 'x') + std::to_string(group.rank()));
    const std::string longest = group.first_of(std::string(1000, 'y'));
    return none + first + fmt::format(" {}", longest.size());
  };
  // The longest text has 511 characters, "rank 0: " included.
  EXPECT_EQ(run_on_hosts(3, kFast, false, texts), "rank 1: fault xxxxxxxxxxx1 511");
}

TEST(RealAllReduce, SaysWhichOptionDoesNotSuit) {
  RealAllReduce request{.schemes = {sim::parse_scheme("ring")}, .sizes = {1024}};
  const auto error = [&] {
    return message_of<ConfigError>([&] { real_allreduce(request, [](const std::string& /*text*/) {}); });
  };
  EXPECT_THAT(error(), HasSubstr("--real: found one process, expected several"));
  request.hosts.hosts = 2;
  EXPECT_THAT(error(), HasSubstr("--hosts: expected --catalog and --instance"));
  const PlainFabric fabric(2, {BytesPerSecond{1e9}, Seconds{1e-6}, BytesPerSecond{1e10}});
  request.fabric = &fabric.graph();
  request.backend = "cuda";
  EXPECT_THAT(error(), HasSubstr("--backend: found cuda, expected cpu with --hosts"));
  request.backend = "cpu";
  request.is_fitted = true;
  EXPECT_THAT(error(), HasSubstr("--output: expected --catalog and one --instance"));
  request.is_fitted = false;
  request.sizes = {std::int64_t{1} << 31};
  EXPECT_THAT(error(), HasSubstr("--bytes: found 2147483648, expected 1B to 1GiB with --real"));
  request.sizes = {1024};
  request.hosts.scale = 0.5;
  EXPECT_THAT(error(), HasSubstr("--scale 0.5: expected 1 or more"));
}

}  // namespace
}  // namespace ganymede::rehearsal

#include "rehearsal/local_hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "common/errors.hpp"
#include "rehearsal/contributions.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/name_spaces.hpp"
#include "rehearsal/timed_call.hpp"

namespace ganymede::rehearsal {
namespace {

using testing::HasSubstr;

const Shaping kFast{BytesPerSecond{125e6}, Seconds{100e-6}};

/// A ring of three hosts that all check their sums.
std::string ring(kernel::Messenger& messenger) {
  Group group(messenger);
  const sim::Schedule schedule = plan_for_processes(sim::parse_scheme("ring"), sim::flat(group.ranks()), 100'000);
  const TimedCall call = time_call(group, schedule, "ring");
  return group.is_first() ? std::to_string(call.median_s) : "";
}

TEST(LocalHosts, TakeAtLeastTheTimeOfTheirNetwork) {
  // 2 (n - 1) rounds of a third of the bytes at the rate, each one latency late.
  EXPECT_GE(std::stod(run_on_hosts(3, kFast, false, ring)), 4 * (100'000.0 / 3 / 125e6 + 100e-6));
  const Shaping slow{BytesPerSecond{1.25e6}, Seconds{20e-3}};
  EXPECT_GE(std::stod(run_on_hosts(3, slow, false, ring)), 4 * (100'000.0 / 3 / 1.25e6 + 20e-3));
}

TEST(LocalHosts, NameADeadPeer) {
  try {
    run_on_hosts(3, kFast, false, [](kernel::Messenger& messenger) {
      if (messenger.rank() == 1) ::raise(SIGKILL);
      return ring(messenger);
    });
    FAIL() << "expected a failure";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("rank 1 has died: crashed (Killed)"));
  }
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

TEST(LocalHosts, RemoveNameSpacesOfProgramsThatAreGone) {
  if (const std::string why = why_no_name_spaces(); !why.empty()) GTEST_SKIP() << why;
  // No process has this number, which is above the kernel's highest.
  if (std::system("ip netns add ganymede-rehearsal-99999999-0 2>/dev/null") != 0) GTEST_SKIP() << "forbidden here";
  ASSERT_EQ(std::system("ip netns add another-99999999-0"), 0);
  EXPECT_GE(remove_left_over_name_spaces(), 1);
  EXPECT_EQ(std::system("ip netns del another-99999999-0"), 0);  // not ours, so it was left
  EXPECT_NE(std::system("ip netns list | grep -q ganymede-rehearsal-99999999-0"), 0);
}

}  // namespace
}  // namespace ganymede::rehearsal

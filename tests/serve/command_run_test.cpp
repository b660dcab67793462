// Runs this test program itself, as the server runs itself: --gtest_… options make it a child that does what is wanted.

#include "serve/command_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

auto in(std::chrono::steady_clock::duration time) { return std::chrono::steady_clock::now() + time; }

class Run : public testing::Test {
 protected:
  Run() {
    std::string name = (fs::temp_directory_path() / "ganymede-serve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Run() override { fs::remove_all(folder_); }

  CommandRun child(const std::string& what, bool progress = false) const {
    return {
        {"--gtest_also_run_disabled_tests", "--gtest_filter=Child.DISABLED_" + what}, folder_, "out", "log", progress};
  }
  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  /// Once it is there.
  int number_in(const std::string& name) const {
    int number = 0;
    while (!(std::ifstream(folder_ / name) >> number)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return number;
  }

  fs::path folder_;
};

// What the children do. In a folder of their own, with 3 as the pipe for progress.
TEST(Child, DISABLED_Descriptors) {
  std::ofstream out("descriptors");
  for (int fd = 0; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) != -1) out << fd << ' ';
  sigset_t blocked;
  ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
  out << (::sigismember(&blocked, SIGTERM) == 1 ? "blocked" : "open");
}
TEST(Child, DISABLED_Code) { ::_exit(7); }
TEST(Child, DISABLED_Crash) { ::raise(SIGKILL); }
TEST(Child, DISABLED_Sleep) {
  // A lock that is free once the last of both is gone.
  ASSERT_EQ(::flock(::open("lock", O_RDWR | O_CREAT, 0600), LOCK_EX), 0);
  if (::fork() != 0) std::ofstream("parent") << ::getpid() << std::endl;
  ::sleep(3600);
}
TEST(Child, DISABLED_Deaf) {
  ::signal(SIGTERM, SIG_IGN);
  std::ofstream("deaf") << ::getpid() << std::endl;
  for (;;) ::sleep(3600);
}
TEST(Child, DISABLED_Progress) {
  for (const std::string text : {"0 4 runs\n1 4 ru", "ns\n2 4 runs\n", "4 4 runs of it\n"})
    ASSERT_EQ(::write(3, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST_F(Run, TellsHowItEnded) {
  const StopSignal stop;
  const CommandEnd end = run_command(child("Code"), stop, in(hours(1)), {});
  EXPECT_EQ(end.why, CommandEnd::Why::exited);
  EXPECT_EQ(end.code, 7);
  EXPECT_GT(end.peak_memory_bytes, 0);
  EXPECT_EQ(run_command(child("Crash"), stop, in(hours(1)), {}).code, 128 + SIGKILL);
}

TEST_F(Run, TheChildGetsNothingOfOurs) {
  const int ours = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as the connections that the library accepts
  sigset_t term, before;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  run_command(child("Descriptors"), StopSignal(), in(hours(1)), {});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(ours);
  // Its standard ones, and the file that it writes this to.
  EXPECT_EQ(file("descriptors"), "0 1 2 3 open");
}

TEST_F(Run, StoppingEndsTheWholeGroup) {
  StopSignal stop;
  std::thread stopper([&] {
    number_in("parent");
    stop.raise();
  });
  const CommandEnd end = run_command(child("Sleep"), stop, in(hours(1)), {});
  stopper.join();
  EXPECT_EQ(end.why, CommandEnd::Why::stopped);
  const int lock = ::open((folder_ / "lock").c_str(), O_RDWR);
  int held = -1;
  for (int i = 0; i < 6000 && (held = ::flock(lock, LOCK_EX | LOCK_NB)) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::close(lock);
  EXPECT_EQ(held, 0) << "its own child is still there";
}

TEST_F(Run, WhoDoesNotListenIsKilled) {
  StopSignal stop;
  std::thread stopper([&] {
    number_in("deaf");
    stop.raise();
  });
  const CommandEnd end = run_command(child("Deaf"), stop, in(hours(1)), {});
  stopper.join();
  EXPECT_EQ(end.why, CommandEnd::Why::stopped);
  EXPECT_EQ(end.code, 128 + SIGKILL);
}

TEST_F(Run, AStopBeforeTheBeginningCounts) {
  StopSignal stop;
  stop.raise();
  EXPECT_EQ(run_command(child("Sleep"), stop, in(hours(1)), {}).why, CommandEnd::Why::stopped);
}

TEST_F(Run, TheTimeLimitEndsIt) {
  EXPECT_EQ(run_command(child("Sleep"), StopSignal(), in(std::chrono::milliseconds(1)), {}).why,
            CommandEnd::Why::too_long);
}

TEST_F(Run, ProgressArrivesInLines) {
  std::vector<Progress> seen;
  // The program knows the option, this test does not: it writes to the descriptor all the same.
  run_command(child("Progress", true), StopSignal(), in(hours(1)),
              [&](const Progress& progress) { seen.push_back(progress); });
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().done, 4U);
  EXPECT_EQ(seen.back().count, 4U);
  EXPECT_EQ(seen.back().what, "runs of it");
}

}  // namespace
}  // namespace ganymede::serve

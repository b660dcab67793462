// Runs this test program itself, as the server runs itself. An environment variable turns it into one of the children
// below.

#include "serve/command_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
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

// The programs of the children. Each runs in a folder of its own; descriptor 3 is the pipe for progress.

int descriptors() {
  std::ofstream out("descriptors");
  for (int fd = 0; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) != -1) out << fd << ' ';
  sigset_t blocked;
  ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
  out << (::sigismember(&blocked, SIGTERM) == 1 ? "blocked" : "open") << std::flush;
  return 0;
}

int crash() { return ::raise(SIGKILL); }

int sleeping() {
  // Parent and child share the lock, which is free once both have ended.
  ::flock(::open("lock", O_RDWR | O_CREAT, 0600), LOCK_EX);
  if (::fork() != 0) std::ofstream("parent") << ::getpid() << std::endl;
  ::sleep(3600);
  return 0;
}

int deaf() {
  ::signal(SIGTERM, SIG_IGN);
  std::ofstream("deaf") << ::getpid() << std::endl;
  for (;;) ::sleep(3600);
}

int progress() {
  for (const std::string text : {"0 4 runs\n1 4 ru", "ns\n2 4 runs\n", "4 4 runs of it\tsize=3\tloss=0.25\n"})
    if (::write(3, text.data(), text.size()) < 0) return 1;
  return 0;
}

/// Notes ticks until there is a file "end"; returns its priority.
int tick() {
  while (!fs::exists("end")) {
    ::usleep(20'000);
    std::ofstream("ticks", std::ios::app) << '.' << std::flush;
  }
  return ::getpriority(PRIO_PROCESS, 0);
}

constexpr const char* kVariable = "GANYMEDE_TEST_CHILD";

/// Runs before any test: if the environment asks for a child, the program does its work and exits.
[[maybe_unused]] const bool kIsNoChild = [] {
  const char* wanted = std::getenv(kVariable);
  if (wanted == nullptr) return true;
  const std::string what = wanted;
  ::_exit(what == "descriptors" ? descriptors()
          : what == "crash"     ? crash()
          : what == "sleep"     ? sleeping()
          : what == "deaf"      ? deaf()
          : what == "progress"  ? progress()
          : what == "tick"      ? tick()
                                : 7);
}();

class Run : public testing::Test {
 protected:
  Run() {
    std::string name = (fs::temp_directory_path() / "ganymede-serve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override {
    ::unsetenv(kVariable);
    fs::remove_all(folder_);
  }

  CommandRun child(const std::string& what, bool progress = false) const {
    ::setenv(kVariable, what.c_str(), 1);
    return {{}, folder_, "out", "log", progress};
  }
  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  /// Waits until the file holds a number, and returns it.
  int number_in(const std::string& name) const {
    int number = 0;
    while (!(std::ifstream(folder_ / name) >> number)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return number;
  }

  fs::path folder_;
};

TEST_F(Run, TellsHowItEnded) {
  const StopSignal stop;
  const CommandEnd end = run_command(child("code"), stop, in(hours(1)), {});
  EXPECT_EQ(end.why, CommandEnd::Why::exited);
  EXPECT_EQ(end.code, 7);
  EXPECT_GT(end.peak_memory_bytes, 0);
  EXPECT_EQ(run_command(child("crash"), stop, in(hours(1)), {}).code, 128 + SIGKILL);
}

TEST_F(Run, TheChildGetsNothingOfOurs) {
  const int ours = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as the connections that the library accepts
  sigset_t term, before;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  run_command(child("descriptors"), StopSignal(), in(hours(1)), {});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(ours);
  // The standard descriptors and the file that it writes, which is number 3.
  EXPECT_EQ(file("descriptors"), "0 1 2 3 open");
}

TEST_F(Run, StoppingEndsTheWholeGroup) {
  StopSignal stop;
  std::thread stopper([&] {
    number_in("parent");
    stop.raise();
  });
  const CommandEnd end = run_command(child("sleep"), stop, in(hours(1)), {});
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
  const CommandEnd end = run_command(child("deaf"), stop, in(hours(1)), {});
  stopper.join();
  EXPECT_EQ(end.why, CommandEnd::Why::stopped);
  EXPECT_EQ(end.code, 128 + SIGKILL);
}

TEST_F(Run, AStopBeforeTheBeginningCounts) {
  StopSignal stop;
  stop.raise();
  EXPECT_EQ(run_command(child("sleep"), stop, in(hours(1)), {}).why, CommandEnd::Why::stopped);
}

TEST_F(Run, TheTimeLimitEndsIt) {
  EXPECT_EQ(run_command(child("sleep"), StopSignal(), in(std::chrono::milliseconds(1)), {}).why,
            CommandEnd::Why::too_long);
}

TEST_F(Run, ProgressArrivesInLines) {
  std::vector<Progress> seen;
  // This test program ignores the option --progress-fd and always writes to descriptor 3.
  run_command(child("progress", true), StopSignal(), in(hours(1)),
              {.progress = [&](const Progress& progress) { seen.push_back(progress); }});
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().done, 4U);
  EXPECT_EQ(seen.back().count, 4U);
  EXPECT_EQ(seen.back().what, "runs of it");
  ASSERT_EQ(seen.back().values.size(), 2U);
  EXPECT_EQ(seen.back().values[1], (std::pair<std::string, double>{"loss", 0.25}));
}

// While it is held, the child notes nothing, and the time does not count.
TEST_F(Run, AHeldRunStandsStillAndGoesOn) {
  const auto notes = [&] { return fs::exists(folder_ / "ticks") ? fs::file_size(folder_ / "ticks") : 0; };
  std::uintmax_t when_held = 0, at_the_end_of_it = 0;
  int asked = 0;
  const auto pace = [&] {
    if (notes() > 0) ++asked;              // it has begun
    if (asked == 10) when_held = notes();  // the signal has arrived long ago
    if (asked == 20) at_the_end_of_it = notes();
    if (asked > 20 && notes() > at_the_end_of_it) std::ofstream(folder_ / "end") << "now";
    return asked < 5 ? Pace::full : asked < 20 ? Pace::held : Pace::background;
  };
  const CommandEnd end = run_command(child("tick"), StopSignal(), in(hours(1)), {.pace = pace});
  EXPECT_EQ(end.code, std::min(19, ::getpriority(PRIO_PROCESS, 0) + 10));  // the priority that it has at its end
  EXPECT_GT(when_held, 0U);
  EXPECT_EQ(when_held, at_the_end_of_it);
  EXPECT_GT(end.held.count(), 0);
}

TEST_F(Run, AHeldRunCanBeStopped) {
  StopSignal stop;
  stop.raise();
  const CommandEnd end = run_command(child("sleep"), stop, in(hours(1)), {.pace = [] { return Pace::held; }});
  EXPECT_EQ(end.why, CommandEnd::Why::stopped);
}

}  // namespace
}  // namespace ganymede::serve

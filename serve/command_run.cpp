#include "serve/command_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::serve {

void Losses::add(const Progress& progress) {
  Point point{static_cast<std::int64_t>(progress.done), NAN, NAN};
  for (const auto& [name, value] : progress.values) {
    if (name == "discriminator") point.discriminator = value;
    if (name == "generator") point.generator = value;
  }
  if (!std::isfinite(point.discriminator) || !std::isfinite(point.generator)) return;
  if (!points_.empty() && point.step <= points_.back().step) return;
  points_.push_back(point);
  if (points_.size() < kMost) return;
  for (std::size_t i = 0; i < kMost / 2; ++i) points_[i] = points_[2 * i];
  points_.resize(kMost / 2);
}

std::string Losses::csv() const {
  std::string text = "step,discriminator,generator\n";
  for (const Point& point : points_)
    text += fmt::format("{},{},{}\n", point.step, point.discriminator, point.generator);
  return text;
}

Losses Losses::read(const std::filesystem::path& file) {
  Losses losses;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  for (Point point{}; std::getline(in, line);) {
    if (std::sscanf(line.c_str(), "%ld,%lf,%lf", &point.step, &point.discriminator, &point.generator) != 3) break;
    losses.add({static_cast<std::uint64_t>(point.step),
                0,
                "",
                {{"discriminator", point.discriminator}, {"generator", point.generator}}});
  }
  return losses;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(20);  ///< enough for a training to write a checkpoint beside much else
constexpr auto kPaceInterval = std::chrono::milliseconds(100);
constexpr int kBackgroundNice = 10;  ///< more than the server's
constexpr int kProgressFd = 3;
/// Higher than the descriptors that the child gets, so that dup2 of one cannot overwrite another.
constexpr int kFirstFree = 10;

Failure system_failure(const char* what) { return Failure(fmt::format("{}: {}", what, std::strerror(errno))); }

class Descriptor {
 public:
  Descriptor() = default;
  /// Owns `fd` from now on.
  Descriptor(int fd, const char* what) {
    if (fd < 0) throw system_failure(what);
    fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
    ::close(fd);
    if (fd_ < 0) throw system_failure(what);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

Descriptor open_file(const std::filesystem::path& path) {
  return {::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), path.c_str()};
}

/// Everything that the child needs, made before the fork: a process that had several threads may only make system calls
/// between fork and exec.
struct Prepared {
  std::vector<char*> arguments;
  std::array<int, 4> descriptors{-1, -1, -1, -1};
  const char* folder = nullptr;
  pid_t parent = 0;
};

[[noreturn]] void be_child(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // the HTTP library ignores it
  unsigned int first_closed = 0;
  for (const int descriptor : prepared.descriptors)
    if (descriptor >= 0) ::dup2(descriptor, static_cast<int>(first_closed++));
  ::close_range(first_closed, ~0U, 0);  // closes all other descriptors, such as the server's connections
  if (::chdir(prepared.folder) == 0) ::execv("/proc/self/exe", prepared.arguments.data());
  ::_exit(127);
}

class Child {
 public:
  explicit Child(const CommandRun& run) {
    std::vector<std::string> words = {"ganymede"};
    words.insert(words.end(), run.arguments.begin(), run.arguments.end());
    const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null");
    const Descriptor output = open_file(run.folder / run.output), log = open_file(run.folder / run.log);
    Descriptor progress;
    Prepared prepared;
    prepared.descriptors = {input.get(), output.get(), log.get(), -1};
    if (run.progress) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) throw system_failure("cannot make a pipe");
      pipe_ = Descriptor(ends[0], "cannot keep a pipe");
      progress = Descriptor(ends[1], "cannot keep a pipe");
      ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
      prepared.descriptors[kProgressFd] = progress.get();
      words.insert(words.end(), {"--progress-fd", std::to_string(kProgressFd)});
    }
    for (std::string& word : words) prepared.arguments.push_back(word.data());
    prepared.arguments.push_back(nullptr);
    prepared.folder = run.folder.c_str();
    prepared.parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw system_failure("cannot start a child process");
    if (pid_ == 0) be_child(prepared);
    ::setpgid(pid_, pid_);  // parent and child both do this, because the group must exist before it is killed
    try {
      handle_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)), "cannot watch a child process");
    } catch (const Failure&) {
      signal(SIGKILL);
      reap();
      throw;
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int handle() const { return handle_.get(); }
  int pipe() const { return pipe_.get(); }
  /// Sends a signal to the child's process group. Precondition: the child is not reaped.
  void signal(int number) const { ::kill(-pid_, number); }
  /// Brings the process group from one pace to another.
  void change(Pace from, Pace to) const {
    if (from == to) return;
    if (to == Pace::held) return signal(SIGSTOP);
    // Only the superuser could raise the priority again, so that a run in the background stays there.
    if (to == Pace::background)
      ::setpriority(PRIO_PGRP, static_cast<id_t>(pid_), ::getpriority(PRIO_PROCESS, 0) + kBackgroundNice);
    if (from == Pace::held) signal(SIGCONT);
  }

  CommandEnd reap() const {
    int status = 0;
    rusage usage{};
    while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    return {CommandEnd::Why::exited, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            std::int64_t{usage.ru_maxrss} * 1024};
  }

  /// The last whole line of progress; none if there is no new one.
  std::optional<Progress> read_progress() {
    char buffer[4096];
    for (ssize_t got; (got = ::read(pipe_.get(), buffer, sizeof buffer)) > 0;)
      received_.append(buffer, static_cast<std::size_t>(got));
    const std::size_t end = received_.rfind('\n');
    if (end == std::string::npos) return std::nullopt;
    const std::size_t before = end == 0 ? std::string::npos : received_.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    std::istringstream line(received_.substr(begin, end - begin));
    received_.erase(0, end + 1);
    Progress progress;
    line >> progress.done >> progress.count >> std::ws;
    std::getline(line, progress.what, '\t');
    for (std::string name, value; std::getline(line, name, '=') && std::getline(line, value, '\t');)
      progress.values.emplace_back(name, std::strtod(value.c_str(), nullptr));
    return progress;
  }

 private:
  pid_t pid_ = -1;
  Descriptor handle_, pipe_;
  std::string received_;
};

int milliseconds_until(Clock::time_point time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

}  // namespace

StopSignal::StopSignal() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw system_failure("cannot make an event");
}
StopSignal::~StopSignal() { ::close(descriptor_); }
void StopSignal::raise() {
  raised_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

CommandEnd run_command(const CommandRun& run, const StopSignal& stop, Clock::time_point until, const RunHooks& hooks) {
  Child child(run);
  CommandEnd::Why why = CommandEnd::Why::exited;
  std::array<pollfd, 3> polled{
      {{child.handle(), POLLIN, 0}, {stop.descriptor(), POLLIN, 0}, {child.pipe(), POLLIN, 0}}};
  Pace pace = Pace::full;
  Clock::time_point asked = Clock::now(), kill_at{};
  Clock::duration held{0};
  for (;;) {
    const bool ending = why != CommandEnd::Why::exited;
    Clock::time_point next = ending ? kill_at : until + held;
    if (!ending && hooks.pace) next = std::min(next, asked + kPaceInterval);
    ::poll(polled.data(), polled.size(), milliseconds_until(next));
    if (polled[2].revents != 0) {
      const auto seen = child.read_progress();
      if (seen && hooks.progress) hooks.progress(*seen);
      if ((polled[2].revents & POLLIN) == 0) polled[2].fd = -1;  // closed: nothing more comes
    }
    if (polled[0].revents != 0) break;
    const auto now = Clock::now();
    if (ending) {
      if (now < kill_at) continue;
      child.signal(SIGKILL);
      kill_at = now + kGrace;
      continue;
    }
    if (hooks.pace) {
      if (pace == Pace::held) held += now - asked;
      asked = now;
      const Pace wanted = hooks.pace();
      child.change(pace, wanted);
      pace = wanted;
    }
    if (polled[1].revents == 0 && now < until + held) continue;
    why = polled[1].revents != 0 ? CommandEnd::Why::stopped : CommandEnd::Why::too_long;
    polled[1].fd = -1;
    child.signal(SIGTERM);
    child.signal(SIGCONT);  // a stopped process ends only when it continues
    kill_at = now + kGrace;
  }
  child.signal(SIGKILL);  // ends what the child left in its group, which exists until the child is reaped
  CommandEnd end = child.reap();
  end.why = why;
  end.held = held;
  return end;
}

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kMostTime{1};
constexpr const char* kFile = "upload.json";
constexpr int kNothingServes = 3;  // as cli/exit_codes.hpp has it

class TrialFolder {
 public:
  explicit TrialFolder(const fs::path& parent) : path_(parent / (std::string(kTrial) + "XXXXXX")) {
    std::string name = path_.string();
    if (::mkdtemp(name.data()) == nullptr) throw Failure(parent.string() + ": no folder can be made in it");
    path_ = name;
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  ~TrialFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void try_upload(const std::string& kind, const std::string& name, const std::string& text, const fs::path& folder) {
  static std::mutex one_at_a_time;  // and not each its memory
  const std::lock_guard lock(one_at_a_time);
  const TrialFolder trial(folder);
  write_file(trial.path() / kFile, text);
  constexpr double kMiB = 1U << 20U;  // 64 of them are the least that --max-memory takes
  const Bytes most{std::clamp(memory_budget().si / 4, 64 * kMiB, 512 * kMiB)};
  CommandRun run{{}, trial.path(), "output", "log"};
  if (kind == "trace")
    run.arguments = {"fits", kFile};
  else
    run.arguments = {"catalog", "--provider", kFile};
  run.arguments.insert(run.arguments.end(), {"--max-memory", fmt::format("{:.0f}B", most.si)});
  const CommandEnd end = run_command(run, StopSignal(), std::chrono::steady_clock::now() + kMostTime, {});
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: reading it {}", name, why)); };
  if (end.why == CommandEnd::Why::too_long) refuse("took more than a minute");
  if (end.code > 4) refuse(fmt::format("ended the process that did (signal {})", end.code - 128));
  if (end.code == kNothingServes)  // neither command refuses anything else so
    refuse(fmt::format("would take more than {} of memory", to_string(most)));
}

}  // namespace ganymede::serve

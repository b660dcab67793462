#include "sim/run/policy_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxAnswer = 1 << 20;        ///< bytes of a line
constexpr std::size_t kMaxErrors = 64 << 10;       ///< bytes of standard error that are passed on
constexpr std::size_t kMaxErrorsAtEnd = 16 << 20;  ///< bytes of standard error that are read once the program has ended

/// A pipe whose ends are closed with it, unless they are taken. A program that is started inherits neither.
class PolicyPipe {
 public:
  PolicyPipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw PolicyFault("cannot be given a pipe");
  }
  PolicyPipe(const PolicyPipe&) = delete;
  PolicyPipe& operator=(const PolicyPipe&) = delete;
  ~PolicyPipe() {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  /// The caller must close the end. Reading and writing it never block.
  int take_read_end() { return take(0); }
  int take_write_end() { return take(1); }

 private:
  int take(std::size_t i) {
    ::fcntl(ends_[i], F_SETFL, O_NONBLOCK);
    return std::exchange(ends_[i], -1);
  }
  std::array<int, 2> ends_{-1, -1};
};

void close_end(int& end) {
  if (end >= 0) ::close(std::exchange(end, -1));
}

/// Ends the processes of this user whose environment holds `mark`: those that the program has started, and that have
/// left its group and lost their parent. Others appear while these are looked for, so it is done until there are none.
void end_marked(const std::string& mark) {
  namespace fs = std::filesystem;
  constexpr int kMostRounds = 20;
  bool found = !mark.empty();
  for (int round = 0; found && round < kMostRounds; ++round) {
    found = false;
    std::error_code error;
    for (fs::directory_iterator entry("/proc", error), none; !error && entry != none; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      pid_t process = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc()) continue;
      std::ifstream in(entry->path() / "environ", std::ios::binary);
      const std::string environment{std::istreambuf_iterator<char>(in), {}};
      if (environment.find(mark) == std::string::npos) continue;
      found = ::kill(process, SIGKILL) == 0 || found;
    }
  }
}

bool try_again() { return errno == EINTR || errno == EAGAIN; }

}  // namespace

PolicyProcess::PolicyProcess(const std::vector<std::string>& command) : name_(command.front()) {
  try {
    start(command);
    start_guard();
  } catch (...) {
    end();
    throw;
  }
}

PolicyProcess::~PolicyProcess() { end(); }

void PolicyProcess::start(const std::vector<std::string>& command) {
  PolicyPipe to, from, errors;
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::random_device random;
  mark_ = fmt::format("GANYMEDE_POLICY={:08x}{:08x}", random(), random());
  ::signal(SIGPIPE, SIG_IGN);  // the error of a write says that the program has ended
  program_ = ::fork();
  if (program_ < 0) throw PolicyFault("cannot be started");
  if (program_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(to.read_end(), STDIN_FILENO);
    ::dup2(from.write_end(), STDOUT_FILENO);
    ::dup2(errors.write_end(), STDERR_FILENO);
    ::close_range(3, ~0U, 0);
    ::putenv(mark_.data());  // a use of environ would give the program a copy, of which Open MPI frees what it must not
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  // The child makes the group too: whichever comes first, the group exists before anything kills it.
  ::setpgid(program_, program_);
  in_ = to.take_write_end();
  out_ = from.take_read_end();
  errors_ = errors.take_read_end();
}

/// Starts a process in the program's group that waits for the end of this process, however it ends, and then kills the
/// group. PR_SET_PDEATHSIG would end the program itself, but not the processes that it has started.
void PolicyProcess::start_guard() {
  PolicyPipe alive;
  guard_ = ::fork();
  if (guard_ < 0) throw PolicyFault("cannot be started");
  if (guard_ == 0) {
    ::setpgid(0, program_);
    ::dup2(alive.read_end(), STDIN_FILENO);
    ::close_range(1, ~0U, 0);
    for (char byte = 0; ::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR;) {
    }
    ::kill(-program_, SIGKILL);
    ::_exit(0);
  }
  ::setpgid(guard_, program_);
  alive_ = alive.take_write_end();
}

void PolicyProcess::end() {
  if (program_ > 0) ::kill(-program_, SIGKILL);  // its group exists until it is reaped
  if (program_ > 0) ::kill(program_, SIGKILL);
  if (guard_ > 0) ::kill(guard_, SIGKILL);
  for (pid_t* child : {&program_, &guard_})
    if (*child > 0)
      while (::waitpid(std::exchange(*child, -1), nullptr, 0) < 0 && errno == EINTR) {
      }
  end_marked(std::exchange(mark_, {}));
  for (std::size_t read = 0; read < kMaxErrorsAtEnd && pass_on_errors(); read += 4096) {
  }
  for (int* end : {&in_, &out_, &errors_, &alive_}) close_end(*end);
}

/// How the program ended, as the rest of a sentence; empty while it runs.
std::string PolicyProcess::how_it_ended() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(program_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != program_)
    return "";
  if (info.si_code != CLD_EXITED) return fmt::format("was ended by signal {}", info.si_status);
  if (info.si_status == 127) return "could not be started: is it there, and executable?";
  return fmt::format("ended with exit status {} before it had answered", info.si_status);
}

/// How the program ended, after it has closed its output: its exit status follows shortly.
std::string PolicyProcess::wait_for_end() const {
  for (int tries = 0; tries < 100; ++tries) {
    if (std::string how = how_it_ended(); !how.empty()) return how;
    ::usleep(2000);
  }
  return "closed its output before it had answered";
}

void PolicyProcess::send_some(const std::string& text, std::size_t& sent) {
  const ssize_t wrote = ::write(in_, text.data() + sent, text.size() - sent);
  if (wrote >= 0)
    sent += static_cast<std::size_t>(wrote);
  else if (!try_again())
    throw PolicyFault(wait_for_end());
}

void PolicyProcess::receive_some() {
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(out_, bytes.data(), bytes.size());
  if (got < 0 && try_again()) return;
  if (got <= 0) throw PolicyFault(wait_for_end());
  received_.append(bytes.data(), static_cast<std::size_t>(got));
}

/// Passes on what the program has written to standard error. Returns false if there is nothing more now.
bool PolicyProcess::pass_on_errors() {
  std::array<char, 4096> bytes;
  const ssize_t got = errors_ < 0 ? -1 : ::read(errors_, bytes.data(), bytes.size());
  if (got == 0) close_end(errors_);
  if (got <= 0) return false;
  const std::size_t shown = std::min(static_cast<std::size_t>(got), kMaxErrors - errors_shown_);
  errors_shown_ += shown;
  std::string text(bytes.data(), shown);
  if (shown > 0 && errors_shown_ == kMaxErrors)
    text += fmt::format("\nganymede: {} has written {} KiB to standard error; what follows is left out\n", name_,
                        kMaxErrors >> 10U);
  for (std::string_view left = text; !left.empty();) {
    const ssize_t wrote = ::write(STDERR_FILENO, left.data(), left.size());
    if (wrote < 0 && errno != EINTR) break;
    left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(wrote, 0)));
  }
  return true;
}

std::string PolicyProcess::exchange(const std::string& line, Seconds limit) {
  const std::string text = line + "\n";
  const auto until = Clock::now() + std::chrono::duration<double>(limit.si);
  // What was written before it is asked answers nothing: every answer after it would be one to the question before.
  if (pollfd early{out_, POLLIN, 0}; received_.empty() && ::poll(&early, 1, 0) > 0 && (early.revents & POLLIN) != 0)
    receive_some();
  if (!received_.empty()) throw PolicyFault("answered before it was asked: expected one line for each observation");
  for (std::size_t sent = 0;;) {
    const std::size_t newline = received_.find('\n');
    if (sent == text.size() && newline != std::string::npos) {
      std::string answer = received_.substr(0, newline);
      received_.erase(0, newline + 1);
      return answer;
    }
    if (newline == std::string::npos && received_.size() > kMaxAnswer)
      throw PolicyFault("wrote more than 1 MiB without the end of a line");
    std::array<pollfd, 3> polled{{{sent < text.size() ? in_ : -1, POLLOUT, 0},
                                  {newline == std::string::npos ? out_ : -1, POLLIN, 0},
                                  {errors_, POLLIN, 0}}};
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    const int ready =
        left <= 0 ? 0 : ::poll(polled.data(), polled.size(), static_cast<int>(std::min(left * 1000 + 1, 1e9)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      // A process that the program has started may keep the pipe open after the program has ended.
      if (const std::string how = how_it_ended(); !how.empty()) throw PolicyFault(how);
      throw PolicyFault(fmt::format(
          "{} within {}", sent < text.size() ? "did not read what it is told" : "gave no answer", to_string(limit)));
    }
    if (polled[2].revents != 0) pass_on_errors();
    if (polled[0].revents != 0) send_some(text, sent);
    if (polled[1].revents != 0) receive_some();
  }
}

}  // namespace ganymede::sim

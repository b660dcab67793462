#include "rehearsal/life_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "common/errors.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

// The handler of a node's SIGTERM needs these.
const WakePipe* notice_pipe = nullptr;
std::uint64_t notice_node = 0;

void on_notice(int) {
  const int error = errno;
  notice_pipe->send({Wake::Kind::notice_heard, notice_node});
  errno = error;
}

}  // namespace

WakePipe::WakePipe() {
  if (::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Failure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
}

WakePipe::~WakePipe() {
  for (const int end : ends_) ::close(end);
}

void WakePipe::send(Wake wake) const {
  // So few bytes are written at once or not at all, and the pipe holds thousands.
  while (::write(ends_[1], &wake, sizeof wake) < 0 && errno == EINTR) {
  }
}

std::optional<Wake> WakePipe::take() const {
  Wake wake{};
  if (::read(ends_[0], &wake, sizeof wake) != static_cast<ssize_t>(sizeof wake)) return std::nullopt;
  return wake;
}

void WakePipe::wait(double seconds) const {
  if (seconds <= 0) return;
  pollfd polled{ends_[0], POLLIN, 0};
  timespec timeout{};
  timeout.tv_sec = static_cast<std::time_t>(seconds);
  timeout.tv_nsec = static_cast<long>((seconds - static_cast<double>(timeout.tv_sec)) * 1e9);
  ::ppoll(&polled, 1, &timeout, nullptr);
}

pid_t start_process(pid_t leader, const std::function<void()>& work,
                    const std::function<void(const std::string&)>& failed) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw Failure(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid > 0) {
    ::setpgid(pid, leader);  // both processes do this, because nobody knows which of them runs first
    return pid;
  }
  ::setpgid(0, leader);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  int status = 0;
  try {
    work();
  } catch (const std::exception& error) {
    if (failed) failed(error.what());
    status = 1;
  } catch (...) {  // must not unwind into the leader's code, which would then run twice
    status = 1;
  }
  ::_exit(status);
}

std::optional<std::string> how_it_ended(pid_t pid) {
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != pid)
    return std::nullopt;
  if (ended.si_code == CLD_EXITED) return fmt::format("exit status {}", ended.si_status);
  return fmt::format("signal {} ({})", ended.si_status, ::strsignal(ended.si_status));
}

void kill_and_bury(pid_t pid, bool whole_group) {
  ::kill(whole_group ? -pid : pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

pid_t start_node(const WakePipe& pipe, std::uint64_t node, double ready_at) {
  // A notice that comes before the process can hear it waits until then.
  sigset_t notices, before;
  ::sigemptyset(&notices);
  ::sigaddset(&notices, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &notices, &before);
  const pid_t pid = start_process(0, [&] {
    notice_pipe = &pipe;
    notice_node = node;
    struct sigaction action {};
    action.sa_handler = on_notice;
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    sleep_until(ready_at);
    pipe.send({Wake::Kind::node_ready, node});
    while (true) ::pause();
  });
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

}  // namespace ganymede::rehearsal

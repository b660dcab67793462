#include "common/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "common/errors.hpp"

namespace ganymede {
namespace {

struct Child {
  pid_t pid = 0;
  int pipe = -1;
  std::size_t index = 0;
  std::string received;
};

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(1);  // the parent is gone
    done += static_cast<std::size_t>(wrote);
  }
}

/// The first byte on the pipe is the kind, the rest the text.
[[noreturn]] void be_child(pid_t parent, int pipe, const std::function<std::string(std::size_t)>& work,
                           std::size_t index) {
  using Kind = ChildOutcome::Kind;
  // Whoever wanted the answer may be killed: do not compute on for nobody.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  Kind kind = Kind::ok;
  std::string text;
  try {
    text = work(index);
  } catch (const ConfigError& error) {
    kind = Kind::config_error, text = error.what();
  } catch (const Infeasible& error) {
    kind = Kind::infeasible, text = error.what();
  } catch (const std::exception& error) {
    kind = Kind::failure, text = error.what();
  } catch (...) {  // must not unwind into the parent's code, which would then run twice
    kind = Kind::failure, text = "an exception of unknown type";
  }
  write_all(pipe, std::string(1, static_cast<char>('0' + static_cast<int>(kind))) + text);
  // Not exit(): the parent's buffers and atexit handlers are not ours to run.
  ::_exit(0);
}

Child start(const std::function<std::string(std::size_t)>& work, std::size_t index) {
  int ends[2];
  if (::pipe(ends) != 0) throw Failure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Failure(fmt::format("cannot start a child process: {}", std::strerror(errno)));
  if (pid == 0) {
    ::close(ends[0]);
    be_child(parent, ends[1], work, index);
  }
  ::close(ends[1]);
  return {pid, ends[0], index, {}};
}

ChildOutcome reap(Child& child) {
  ::close(child.pipe);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return {ChildOutcome::Kind::failure, fmt::format("the simulation crashed ({})", ::strsignal(WTERMSIG(status)))};
  if (WEXITSTATUS(status) != 0 || child.received.empty())
    return {ChildOutcome::Kind::failure, fmt::format("the simulation ended with exit status {}", WEXITSTATUS(status))};
  return {static_cast<ChildOutcome::Kind>(child.received[0] - '0'), child.received.substr(1)};
}

/// Reads what there is; false at the end of the pipe.
bool receive(Child& child) {
  char buffer[1 << 16];
  const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got > 0) child.received.append(buffer, static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::vector<ChildOutcome> run_children(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                                       const std::function<void(std::size_t)>& finished) {
  assert(jobs >= 1);
  std::vector<ChildOutcome> outcomes(count);
  std::vector<Child> running;
  std::size_t started = 0;
  std::size_t done = 0;
  while (done < count) {
    while (started < count && running.size() < static_cast<std::size_t>(jobs))
      running.push_back(start(work, started++));
    std::vector<pollfd> polled;
    for (const auto& child : running) polled.push_back({child.pipe, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      throw Failure("cannot wait for child processes");
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0 || receive(running[i])) continue;
      outcomes[running[i].index] = reap(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      ++done;
      if (finished) finished(done);
    }
  }
  return outcomes;
}

std::string run_child(const std::function<std::string()>& work) {
  auto outcome = run_children(1, 1, [&](std::size_t) { return work(); }).front();
  rethrow(outcome);
  return std::move(outcome.text);
}

void rethrow(const ChildOutcome& outcome, const std::string& context) {
  const std::string message = context + outcome.text;
  switch (outcome.kind) {
    case ChildOutcome::Kind::ok:
      return;
    case ChildOutcome::Kind::config_error:
      throw ConfigError(message);
    case ChildOutcome::Kind::infeasible:
      throw Infeasible(message);
    case ChildOutcome::Kind::failure:
      throw Failure(message);
  }
}

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace ganymede

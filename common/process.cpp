#include "common/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "common/budget.hpp"
#include "common/errors.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kNone = SIZE_MAX;
/// Milliseconds after which a parent that may be stopped asks whether it is, in case a signal came just before poll().
constexpr int kAskAgain_ms = 500;

struct Child {
  pid_t pid = 0;
  int pipe = -1;
  int place = 0;  // index into Children::at_, whose entry is the piece that this child works on
  std::string received;
};

/// The header that a child sends before the text of an outcome; `size` is the text's length in bytes.
struct Header {
  std::uint64_t index = 0, kind = 0, size = 0;
};

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(1);  // the parent is gone
    done += static_cast<std::size_t>(wrote);
  }
}

ChildOutcome outcome_of(const std::function<std::string(std::size_t)>& work, std::size_t index) {
  using Kind = ChildOutcome::Kind;
  try {
    return {Kind::ok, work(index)};
  } catch (const ConfigError& error) {
    return {Kind::config_error, error.what()};
  } catch (const Infeasible& error) {
    return {Kind::infeasible, error.what()};
  } catch (const BudgetExceeded& error) {
    return {Kind::budget_exceeded, error.what()};
  } catch (const std::bad_alloc& error) {
    const std::string exceeded = memory_budget_exceeded();
    if (exceeded.empty()) return {Kind::failure, error.what()};
    return {Kind::budget_exceeded, exceeded};
  } catch (const std::exception& error) {
    return {Kind::failure, error.what()};
  } catch (...) {  // must not unwind into the parent's code, which would then run twice
    return {Kind::failure, "an exception of unknown type"};
  }
}

/// Runs pieces of work in forked children, which send the outcomes back through pipes.
class Children {
  using Shared = std::atomic<std::size_t>;

 public:
  Children(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work, ChildUse use)
      : count_(count), work_(work), use_(use), outcomes_(count), done_(count, false) {
    size_ = sizeof(Shared) * (1 + static_cast<std::size_t>(jobs));
    void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Failure("cannot share memory with child processes");
    next_ = new (memory) Shared(0);
    at_ = next_ + 1;
    running_.reserve(static_cast<std::size_t>(jobs));  // so that no memory is asked for once a child is there
    for (int place = 0; place < jobs; ++place) {
      new (at_ + place) Shared(kNone);
      free_.push_back(place);
    }
  }
  /// Ends the children that still run, if an exception has cut the work short: none is left behind, nor a zombie.
  ~Children() {
    for (const Child& child : running_) {
      ::kill(child.pid, SIGKILL);
      ::close(child.pipe);
      while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    ::munmap(next_, size_);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  std::vector<ChildOutcome> run(const std::function<void(std::size_t)>& finished,
                                const std::function<void(std::size_t, ChildOutcome&)>& landed,
                                const std::function<bool()>& stopped) {
    finished_ = &finished;
    landed_ = &landed;
    while (landed_count_ < count_) {
      if (stopped && stopped()) {
        *next_ = count_;
        break;
      }
      while (!free_.empty() && *next_ < count_) start();
      wait(stopped ? kAskAgain_ms : -1);
    }
    while (!running_.empty()) wait();
    return std::move(outcomes_);
  }

 private:
  [[noreturn]] void be_child(pid_t parent, int pipe, int place) {
    // The child exits when its parent dies, because nobody would read its answer.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    do {
      const std::size_t index = next_->fetch_add(1);
      if (index >= count_) break;
      at_[place] = index;
      const ChildOutcome outcome = outcome_of(work_, index);
      const Header header{index, static_cast<std::uint64_t>(outcome.kind), outcome.text.size()};
      write_all(pipe, std::string(reinterpret_cast<const char*>(&header), sizeof header) + outcome.text);
    } while (use_ == ChildUse::reused);
    // Not exit(), which would flush the parent's buffers and run its atexit handlers.
    ::_exit(0);
  }

  void start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const int place = free_.back();
    free_.pop_back();
    at_[place] = kNone;
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
      const std::string why = std::strerror(errno);
      for (const int end : ends) ::close(end);
      throw Failure(fmt::format("cannot start a child process: {}", why));
    }
    if (pid == 0) {
      ::close(ends[0]);
      be_child(parent, ends[1], place);
    }
    ::close(ends[1]);
    running_.push_back({pid, ends[0], place, {}});
  }

  void wait(int timeout_ms = -1) {
    std::vector<pollfd> polled;
    for (const auto& child : running_) polled.push_back({child.pipe, POLLIN, 0});
    const int ready = ::poll(polled.data(), polled.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) throw Failure("cannot wait for child processes");
    if (ready <= 0) return;
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      const bool open = receive(running_[i]);
      take_outcomes(running_[i]);
      if (open) continue;
      reap(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void take_outcomes(Child& child) {
    for (;;) {
      Header header;
      if (child.received.size() < sizeof header) return;
      std::memcpy(&header, child.received.data(), sizeof header);
      if (child.received.size() < sizeof header + header.size) return;
      land(header.index,
           {static_cast<ChildOutcome::Kind>(header.kind), child.received.substr(sizeof header, header.size)});
      child.received.erase(0, sizeof header + header.size);
    }
  }

  void land(std::size_t index, ChildOutcome outcome) {
    outcomes_[index] = std::move(outcome);
    done_[index] = true;
    ++landed_count_;
    if (*landed_) (*landed_)(index, outcomes_[index]);
    if (*finished_) (*finished_)(landed_count_);
  }

  /// Collects a child that has ended. If it ended in the middle of a piece, that piece fails.
  void reap(Child& child) {
    ::close(child.pipe);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    const std::size_t at = at_[child.place];
    free_.push_back(child.place);
    if (at == kNone || done_[at]) return;
    land(at, {ChildOutcome::Kind::failure,
              WIFSIGNALED(status) ? fmt::format("the simulation crashed ({})", ::strsignal(WTERMSIG(status)))
                                  : fmt::format("the simulation ended with exit status {}", WEXITSTATUS(status))});
  }

  /// Reads what the child's pipe holds; returns false if the child has closed it.
  static bool receive(Child& child) {
    char buffer[1 << 16];
    const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return true;
    if (got > 0) child.received.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  std::size_t count_;
  const std::function<std::string(std::size_t)>& work_;
  ChildUse use_;
  std::vector<ChildOutcome> outcomes_;
  std::vector<bool> done_;
  std::size_t landed_count_ = 0;
  // Memory shared with the children: the index of the next piece of work, and for each child the index of its current
  // piece (kNone before its first).
  Shared* next_ = nullptr;
  Shared* at_ = nullptr;
  std::size_t size_ = 0;
  std::vector<int> free_;
  std::vector<Child> running_;
  const std::function<void(std::size_t)>* finished_ = nullptr;
  const std::function<void(std::size_t, ChildOutcome&)>* landed_ = nullptr;
};

}  // namespace

std::vector<ChildOutcome> run_children(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                                       const std::function<void(std::size_t)>& finished, ChildUse use,
                                       const std::function<void(std::size_t, ChildOutcome&)>& landed,
                                       const std::function<bool()>& stopped) {
  assert(jobs >= 1);
  return Children(count, jobs, work, use).run(finished, landed, stopped);
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
    case ChildOutcome::Kind::budget_exceeded:
      throw BudgetExceeded(message);
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

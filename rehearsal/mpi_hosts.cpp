#include "rehearsal/mpi_hosts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_network.hpp"

namespace ganymede::rehearsal {
namespace {

class LateMessenger final : public kernel::Messenger {
 public:
  LateMessenger(std::unique_ptr<kernel::Messenger> inner, Seconds latency)
      : inner_(std::move(inner)), latency_(latency) {}

  std::string name() const override {
    return fmt::format("{} in network namespaces, {} later", inner_->name(), to_string(latency_));
  }
  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  Message send(std::span<const std::byte> bytes, int to, int tag) override {
    return keep({inner_->send(bytes, to, tag), false});
  }
  Message receive(std::span<std::byte> bytes, int from, int tag) override {
    return keep({inner_->receive(bytes, from, tag), true});
  }
  bool done(Message message) override {
    State& state = states_[message];
    if (state.passed_on == 0) {
      if (!inner_->done(state.inner)) return false;
      state.passed_on = machine_time() + (state.is_late ? latency_.si : 0);
    }
    if (machine_time() < state.passed_on) return false;
    free_.push_back(message);
    return true;
  }
  /// Sleeps, because all ranks are on one machine: MPI looks at messages only in done().
  void wait(double seconds) override {
    constexpr double kNap = 20e-6;
    inner_->wait(0);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kNap)));
  }
  void rest(double seconds) override { inner_->rest(seconds); }

 private:
  struct State {
    Message inner;
    bool is_late;
    double passed_on = 0;  ///< when a received message may be seen; 0: it has not come
  };
  Message keep(State state) {
    if (free_.empty()) {
      states_.push_back(state);
      return states_.size() - 1;
    }
    const Message message = free_.back();
    free_.pop_back();
    states_[message] = state;
    return message;
  }

  std::unique_ptr<kernel::Messenger> inner_;
  Seconds latency_;
  std::vector<State> states_;
  std::vector<Message> free_;
};

/// A folder for the launch agent, which is removed.
class AgentFolder {
 public:
  AgentFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ganymede-agent-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Failure(fmt::format("cannot make {}: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~AgentFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  AgentFolder(const AgentFolder&) = delete;
  AgentFolder& operator=(const AgentFolder&) = delete;

  /// The agent's file. mpirun calls it as it would call ssh: with an address and a command. Each host has a name of its
  /// own, because processes of one name would talk through shared memory.
  std::string agent(const NameSpaces& spaces, int hosts) const {
    std::string script = "#!/bin/sh\naddress=$1; shift\ncase $address in\n";
    for (int host = 0; host < hosts; ++host)
      script += fmt::format("{}) space={}; name=host{} ;;\n", NameSpaces::address_of(host), spaces.name_of(host), host);
    script +=
        "*) exit 255 ;;\nesac\n"
        "exec ip netns exec $space unshare --uts sh -c \"echo $name > /proc/sys/kernel/hostname; $*\"\n";
    const std::string file = (path_ / "agent").string();
    write_file(file, script);
    ::chmod(file.c_str(), 0700);
    return file;
  }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> mpirun_command(const std::string& agent, int hosts, const std::vector<std::string>& command) {
  std::string addresses;
  for (int host = 0; host < hosts; ++host) addresses += (host > 0 ? "," : "") + NameSpaces::address_of(host) + ":1";
  std::istringstream words(
      fmt::format("mpirun --allow-run-as-root --mca plm rsh --mca plm_rsh_agent AGENT --mca oob_tcp_if_include eth0 "
                  "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --bind-to none --host {} -n {}",
                  addresses, hosts));
  std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  std::replace(all.begin(), all.end(), std::string("AGENT"), agent);  // whose path may hold blanks
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

/// A process group of a command; the destructor ends it.
class Launched {
 public:
  Launched(std::vector<std::string> command, const NameSpaces& spaces, int host) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    pipe_ = ends[0];
    pid_ = start_process(
        0, [&] { be_launcher(words, spaces, host, ends[1]); }, [](const std::string&) { ::_exit(126); });
    ::close(ends[1]);
  }
  ~Launched() {
    ::close(pipe_);
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGTERM);
    const double begin = machine_time();
    while (!ended() && machine_time() - begin < 3) ::usleep(10'000);
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  /// The text that the command prints, until it has closed its output. Throws Failure if a signal asks this program to
  /// end.
  std::string output() const {
    std::string out;
    while (true) {
      if (EndSignals::asked()) throw Interrupted("interrupted; all hosts have ended");
      pollfd polled{pipe_, POLLIN, 0};
      if (::poll(&polled, 1, 200) <= 0) continue;
      char buffer[1 << 16];
      const ssize_t got = ::read(pipe_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(got));
    }
  }
  /// Its exit status, once it has ended.
  int wait() {
    while (!ended()) {
      if (EndSignals::asked()) throw Interrupted("interrupted; all hosts have ended");
      ::usleep(1000);
    }
    return status_;
  }

 private:
  [[noreturn]] static void be_launcher(const std::vector<char*>& words, const NameSpaces& spaces, int host, int out) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    spaces.enter(host);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  bool ended() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = 0;
    return true;
  }

  pid_t pid_ = 0;
  int pipe_ = -1, status_ = 0;
};

}  // namespace

std::unique_ptr<kernel::Messenger> later_by(Seconds latency, std::unique_ptr<kernel::Messenger> inner) {
  return std::make_unique<LateMessenger>(std::move(inner), latency);
}

std::string run_by_mpi_on_hosts(int hosts, const Shaping& shaping, const MpiCommand& command) {
  const EndSignals signals;
  const NameSpaces spaces(hosts + 1, shaping.rate, shaping.latency, shaping.loss);
  if (shaping.loss > 0 && !spaces.has_netem())
    throw ConfigError("--loss: this kernel has no netem, which loses packets of MPI; expected --network paced here");
  const AgentFolder folder;
  const auto words = mpirun_command(folder.agent(spaces, hosts), hosts, command(spaces.has_netem()));
  Launched launched(words, spaces, hosts);
  const std::string out = launched.output();
  switch (const int status = launched.wait()) {
    case 0:
      return out;
    case 2:
      throw ConfigError("the processes that mpirun has started refuse this, as they say above");
    case 127:
      throw Failure("cannot start mpirun: it is not on PATH (Debian: openmpi-bin)");
    default:
      throw Failure(
          fmt::format("mpirun has ended with exit status {}; what it and its processes said is above", status));
  }
}

}  // namespace ganymede::rehearsal

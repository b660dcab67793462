#include "rehearsal/local_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/local_network.hpp"

namespace ganymede::rehearsal {
namespace {

/// Bytes a second that the hosts of one machine may send together: a tenth of what two cores move through loopback, so
/// that the processor time of a message stays small beside its time on the network.
constexpr double kMostTogether = 250e6;
/// Seconds that a message may be under way: much less than what a rank waits for another before it gives up.
constexpr double kLongestLatency = Group::kPatience / 8;

/// The numbers of the hosts' processes, which they write themselves; 0: not started, or ended.
class RunningHosts {
 public:
  explicit RunningHosts(std::size_t hosts) : hosts_(hosts), memory_(hosts * sizeof(Pid)) {
    for (std::size_t host = 0; host < hosts; ++host) new (memory_.data() + host * sizeof(Pid)) Pid(0);
  }

  std::atomic<pid_t>& pid(std::size_t host) const { return reinterpret_cast<Pid*>(memory_.data())[host]; }
  void send(int signal) const {
    for (std::size_t host = 0; host < hosts_; ++host)
      if (const pid_t number = pid(host); number > 0) ::kill(number, signal);
  }

 private:
  using Pid = std::atomic<pid_t>;
  std::size_t hosts_;
  SharedMemory memory_;
};

constexpr const char* kCrash = "the simulation ";  // how the outcome of a child that a signal has ended begins

bool is_crash(const ChildOutcome& outcome) {
  return outcome.kind == ChildOutcome::Kind::failure && outcome.text.starts_with(kCrash);
}

/// How all hosts are brought to an end once one has failed or this program is to end.
class Ending {
 public:
  explicit Ending(const RunningHosts& running) : running_(running) {}

  void begin() {
    if (!since_) since_ = machine_time();
    running_.send(SIGTERM);  // they may be in a long phase, in which nobody waits for a message
  }
  bool has_begun() const { return since_.has_value(); }
  /// Kills what has not ended: a process that is stopped does not when it is asked to.
  void go_on() {
    constexpr double kPatience = 1;  // seconds
    if (!since_ || killed_ || machine_time() - *since_ < kPatience) return;
    killed_ = true;
    running_.send(SIGKILL);
  }
  /// True if a host has ended because of this.
  bool explains(const ChildOutcome& outcome) const {
    const auto by = [&](const char* signal) { return outcome.text.ends_with(signal); };
    return since_ && is_crash(outcome) && (by("(Terminated)") || (killed_ && by("(Killed)")));
  }

 private:
  const RunningHosts& running_;
  std::optional<double> since_;
  bool killed_ = false;
};

/// The message of another rank that ended because a rank had died, best of all one that waited for it.
std::string where_others_were(std::size_t dead, const std::vector<ChildOutcome>& outcomes) {
  std::string said;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (rank == dead || outcomes[rank].kind != ChildOutcome::Kind::failure || is_crash(outcomes[rank])) continue;
    const bool waited = (outcomes[rank].text + " ").find(fmt::format("rank {} ", dead)) != std::string::npos;
    if (said.empty() || waited) said = "; " + outcomes[rank].text;
    if (waited) break;
  }
  return said;
}

}  // namespace

std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  assert(hosts >= 2 && hosts <= kMaxLocalHosts);
  const EndSignals signals;
  std::optional<NameSpaces> spaces;
  if (name_spaces) spaces.emplace(hosts, shaping.rate, shaping.latency, shaping.loss);
  shaping.is_paced = !name_spaces;
  shaping.is_delayed = !spaces || !spaces->has_netem();
  std::vector<int> all(static_cast<std::size_t>(hosts));
  std::iota(all.begin(), all.end(), 0);
  HostConnections connections(all, spaces ? &*spaces : nullptr);
  const RunningHosts running(all.size());
  std::optional<std::size_t> failed;  // the first host that did; a death comes before what it causes
  bool died = false;
  Ending ending(running);
  const auto landed = [&](std::size_t host, ChildOutcome& outcome) {
    connections.end(host);
    running.pid(host) = 0;
    const bool is_death = is_crash(outcome);
    if (outcome.kind == ChildOutcome::Kind::ok || ending.explains(outcome) || (failed && (died || !is_death))) return;
    if (is_death) outcome.text = fmt::format("rank {} has died: {}", host, outcome.text.substr(std::strlen(kCrash)));
    died = is_death;
    failed = host;
    ending.begin();
  };
  // Asked twice a second. All hosts have begun, so that there is nothing to stop.
  const auto look_after = [&] {
    if (EndSignals::asked() && !ending.has_begun()) {
      for (std::size_t host = 0; host < static_cast<std::size_t>(hosts); ++host) connections.end(host);
      ending.begin();
    }
    ending.go_on();
    return false;
  };
  const auto outcomes = run_children(
      static_cast<std::size_t>(hosts), hosts,
      [&](std::size_t host) {
        running.pid(host) = ::getpid();
        const ProcessorTurn turn(ProcessorTurn::Turn::before_others);
        if (spaces) spaces->enter(static_cast<int>(host));
        SocketMessenger messenger(static_cast<int>(host), connections.take(host), shaping);
        return work(messenger);
      },
      {}, ChildUse::once, landed, look_after);
  if (EndSignals::asked()) throw Interrupted("interrupted; all hosts have ended");
  if (!failed) return outcomes[0].text;
  ChildOutcome first = outcomes[*failed];
  if (died) first.text += where_others_were(*failed, outcomes);
  rethrow(first);
  return "";
}

void refuse_mpirun(const HostsChoice& choice) {
  if (choice.network == "mpirun")
    throw ConfigError("--network: found mpirun, expected namespaces or paced except for the steps of `rehearse`");
}

void refuse_launched(const HostsChoice& choice) {
  if (choice.hosts > 0 && kernel::launched_processes() > 1)
    throw ConfigError("--hosts: found several processes, expected one, which starts the others");
}

bool choose_name_spaces(const HostsChoice& choice, const Remark& remark) {
  if (choice.network == "paced") return false;
  const std::string why_not = why_no_name_spaces();
  if (!why_not.empty()) {
    if (!choice.network.empty())
      throw ConfigError(fmt::format("--network {}: {}; expected paced here", choice.network, why_not));
    remark("note: " + why_not + ": sockets are paced in place of network namespaces\n");
    return false;
  }
  if (const int removed = remove_left_over_name_spaces(); removed > 0)
    remark(fmt::format("note: removed {} network namespaces that a run before had left\n", removed));
  return true;
}

double slowest_scale(BytesPerSecond rate, int hosts) {
  return std::max(1.0, std::ceil(rate.si * hosts / kMostTogether));
}

Ping scaled(const Ping& ping, double scale) {
  return {.rate = ping.rate * (1 / scale), .latency = ping.latency * scale, .adding = ping.adding * (1 / scale)};
}

HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Remark& remark) {
  if (fabric.ranks() != choice.hosts || fabric.topology().nodes() != choice.hosts)
    throw ConfigError(fmt::format("--hosts {}: found {} GPUs on {} nodes, expected {} nodes with one GPU each",
                                  choice.hosts, fabric.ranks(), fabric.topology().nodes(), choice.hosts));
  HostsNetwork network{.stated = stated_ping(fabric)};
  if (choice.scale > 0 && choice.scale < 1)
    throw ConfigError(fmt::format("--scale {}: expected 1 or more, except with --life", choice.scale));
  network.scale = choice.scale > 0 ? choice.scale : slowest_scale(network.stated.rate, choice.hosts);
  if (const Seconds once = network.stated.latency; once.si * network.scale > kLongestLatency)
    throw ConfigError(fmt::format(
        "--scale {:g}: a message would be {} under way, expected {} at most: a scale of {:.0f}", network.scale,
        to_string(once * network.scale), to_string(Seconds{kLongestLatency}), std::floor(kLongestLatency / once.si)));
  network.stated = scaled(network.stated, network.scale);
  network.name_spaces = choose_name_spaces(choice, remark);
  return network;
}

std::string run_on_hosts(const HostsChoice& choice, const HostsNetwork& network,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  refuse_mpirun(choice);
  return run_on_hosts(choice.hosts, {network.stated.rate, network.stated.latency, choice.loss}, network.name_spaces,
                      work);
}

}  // namespace ganymede::rehearsal

#pragma once
// The common ground of processes that stand for hosts: how they are forked and end, memory that they share, network
// namespaces, the sockets between all pairs, a place before other programs of the machine, and the wish of a user that
// they end.

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::rehearsal {

/// Why this process cannot make name spaces: "not root", "no `tc` here (Debian: iproute2)"; "": it can.
std::string why_no_name_spaces();

/// Removes name spaces that programs left behind which are gone, and ends the processes in them; returns how many.
int remove_left_over_name_spaces();

/// Network namespaces of Linux, which need root, and `ip` and `tc` of iproute2.
/// Hosts 0 to hosts - 1 have the addresses 10.0.0.1 and so on. Each is joined to the switch by a veth pair, on both
/// ends of which a token bucket (tbf) sends at `rate`. Where the kernel has netem, it delays what a host sends by
/// `latency` and loses the share `loss` of its packets. The switch is in a name space of its own: the machine's own
/// network stays as it is. The destructor ends the processes that are still in one of them, and removes all with their
/// interfaces.
class NameSpaces {
 public:
  /// Throws Failure with what `ip` or `tc` said.
  NameSpaces(int hosts, BytesPerSecond rate, Seconds latency, double loss);
  ~NameSpaces();
  NameSpaces(const NameSpaces&) = delete;
  NameSpaces& operator=(const NameSpaces&) = delete;

  /// From now on all hosts send at that rate. Throws Failure with what `tc` said.
  void set_rate(BytesPerSecond rate) const;
  bool has_netem() const { return has_netem_; }  ///< otherwise nothing here delays or loses packets
  static std::string address_of(int host);
  std::string name_of(int host) const;
  void enter(int host) const;  ///< from then on, this process opens its sockets in the host's name space
  void leave() const;          ///< back to where the process was

 private:
  void remove() const;

  std::string prefix_;
  int hosts_;
  int mtu_;       // large packets at high rates, because each costs the processor as much as a small one
  int own_ = -1;  // the name space of this process
  bool has_netem_ = false;
};

/// The sockets between all pairs of processes, by rank. Ports are those that the kernel finds free.
class HostConnections {
 public:
  /// `hosts`: for each rank its host, whose name space its sockets are in; `spaces` is null without name spaces. Throws
  /// ConfigError if no port is free, and Failure.
  HostConnections(const std::vector<int>& hosts, const NameSpaces* spaces);
  ~HostConnections();
  HostConnections(const HostConnections&) = delete;
  HostConnections& operator=(const HostConnections&) = delete;

  /// The sockets of a rank, for its process, which closes all others: a connection ends when its two processes do.
  std::vector<int> take(std::size_t rank);
  /// Tells the other ranks that this one has ended.
  void end(std::size_t rank);
  /// Closes this process's ends of a rank's sockets.
  void close_rank(std::size_t rank);

 private:
  void connect(std::size_t a, std::size_t b);

  std::vector<int> hosts_;
  std::vector<std::vector<int>> sockets_;
  const NameSpaces* spaces_;
};

/// Forks a process that calls `work` and exits: with status 0, or 1 if `work` threw, whose message goes to `failed`. It
/// is killed when this process ends. It joins the process group of `leader`; 0: it leads one of its own.
pid_t start_process(pid_t leader, const std::function<void()>& work,
                    const std::function<void(const std::string&)>& failed = {});

/// How a process ended: nothing while it runs, else "exit status 1" or "signal 9 (Killed)". Its number stays its
/// own until it is buried.
std::optional<std::string> how_it_ended(pid_t pid);

/// Kills a process, or with `whole_group` its group too, and waits for its end.
void kill_and_bury(pid_t pid, bool whole_group);

/// Zeroed memory that this process shares with those that it forks. Pages take memory only once they are written.
class SharedMemory {
 public:
  /// Throws Failure.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

/// The turn of this process, and of those that it forks, at the processors while it lives.
class ProcessorTurn {
 public:
  enum class Turn {
    /// As soon as it wakes up, where that is allowed (root): other programs of this machine would delay the network
    /// that is played. Such processes sleep at most times, so that others are hardly delayed.
    before_others,
    usual  ///< like all others: it computes
  };
  explicit ProcessorTurn(Turn turn);
  ~ProcessorTurn();
  ProcessorTurn(const ProcessorTurn&) = delete;
  ProcessorTurn& operator=(const ProcessorTurn&) = delete;

 private:
  int policy_;
  sched_param priority_{};
};

/// The user, or a scheduler, has asked the command to end, and what it had started has ended. Exit code 130.
struct Interrupted : Failure {
  using Failure::Failure;
};

/// Notes SIGINT and SIGTERM while it lives, and SIGHUP unless that is ignored (nohup).
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  static bool asked();
};

}  // namespace ganymede::rehearsal

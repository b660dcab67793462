#pragma once
// The common ground of processes that stand for hosts: sockets between all pairs, a place before other programs of
// the machine, and the wish of a user that they end.

#include <sched.h>

#include <cstddef>
#include <vector>

#include "common/errors.hpp"
#include "rehearsal/name_spaces.hpp"

namespace ganymede::rehearsal {

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

/// While it lives, this process and those that it forks run as soon as they wake up, where that is allowed (root):
/// other programs of this machine would delay the network that they play. They sleep at most times, so that others are
/// hardly delayed.
class BeforeOthers {
 public:
  BeforeOthers();
  ~BeforeOthers();
  BeforeOthers(const BeforeOthers&) = delete;
  BeforeOthers& operator=(const BeforeOthers&) = delete;

 private:
  int policy_;
  sched_param priority_{};
};

/// While it lives, this process waits its turn like all others: it computes.
class AmongOthers {
 public:
  AmongOthers();
  ~AmongOthers();
  AmongOthers(const AmongOthers&) = delete;
  AmongOthers& operator=(const AmongOthers&) = delete;

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

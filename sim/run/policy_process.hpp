#pragma once
// A program of the user that decides: it reads a line and answers with a line within a time limit.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// The program's mistake, as the rest of a sentence that begins with its name: "gave no answer within 3 s".
struct PolicyFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The program runs in a process group of its own, with its three standard streams and no other file of this process.
/// The whole group is killed when this object is destroyed, and also when this process is killed; when it is destroyed,
/// so are processes that the program has moved to another group, which GANYMEDE_POLICY in their environment tells.
class PolicyProcess {
 public:
  /// Throws PolicyFault if it cannot be started.
  explicit PolicyProcess(const std::vector<std::string>& command);
  PolicyProcess(const PolicyProcess&) = delete;
  PolicyProcess& operator=(const PolicyProcess&) = delete;
  ~PolicyProcess();

  /// Sends `line`, which must not contain an end of line, and returns the next line of the program's output. Throws
  /// PolicyFault if both take longer than `limit`, if the program ends, or if its line is longer than 1 MiB. The first
  /// 64 KiB that it writes to standard error are passed on to that of this process; the rest is dropped.
  std::string exchange(const std::string& line, Seconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  void start(const std::vector<std::string>& command);
  void start_guard();
  void end();
  void send_some(const std::string& text, std::size_t& sent);
  void receive_some();
  bool pass_on_errors();
  std::string how_it_ended() const;
  std::string wait_for_end() const;

  std::string name_, mark_;  ///< the mark: of the program's environment
  pid_t program_ = -1, guard_ = -1;
  int in_ = -1, out_ = -1, errors_ = -1;  ///< this process's ends of the pipes, -1 once closed
  int alive_ = -1;                        ///< the guard waits for the end of this pipe, which closes with this process
  std::string received_;
  std::size_t errors_shown_ = 0;
};

}  // namespace ganymede::sim

#pragma once
// A program of the user's that decides: a line to it, a line from it, within a time.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// What the program did wrong, to be said behind its name: "gave no answer within 3 s".
struct PolicyFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The program runs in a process group of its own, with its three standard streams and nothing else that is open here.
/// The whole group is killed when this ends, also when this process is killed; what it leaves behind outside of its
/// group keeps nobody waiting.
class PolicyProcess {
 public:
  /// PolicyFault if it cannot be started.
  explicit PolicyProcess(const std::vector<std::string>& command);
  PolicyProcess(const PolicyProcess&) = delete;
  PolicyProcess& operator=(const PolicyProcess&) = delete;
  ~PolicyProcess();

  /// Sends the line, which has no end of line, and returns the next that comes. Both must be done within `limit`,
  /// whatever the program reads and writes meanwhile. PolicyFault otherwise, if it dies, or if a line is longer than 1
  /// MiB. Of what it writes to standard error, the first 64 KiB go to that of this process and the rest nowhere.
  std::string exchange(const std::string& line, Seconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  void start(const std::vector<std::string>& command);
  void guard();
  void end();
  void send_some(const std::string& text, std::size_t& sent);
  void receive_some();
  bool pass_on_errors();
  std::string exited() const;
  std::string death() const;

  std::string name_;
  pid_t program_ = -1, guard_ = -1;
  int in_ = -1, out_ = -1, errors_ = -1;  ///< this process's ends of the pipes
  int alive_ = -1;                        ///< closed when this process ends
  std::string received_;
  std::size_t errors_shown_ = 0;
};

}  // namespace ganymede

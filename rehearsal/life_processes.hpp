#pragma once
// The processes of a rehearsed life, which the leading process forks, ends and buries: one for each node, and on the
// nodes the workers that train.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::rehearsal {

/// A message of a process to the leader.
struct Wake {
  enum class Kind : std::uint32_t {
    node_ready,     ///< node `number` has booted
    notice_heard,   ///< node `number` got SIGTERM
    workers_ready,  ///< all workers of start `number` can begin
    workers_ended,  ///< all workers of start `number` have ended their last step
    task_done,      ///< task `number`
  };
  Kind kind;
  std::uint64_t number;
};

/// A pipe through which processes wake the leader up.
class WakePipe {
 public:
  WakePipe();
  ~WakePipe();
  WakePipe(const WakePipe&) = delete;
  WakePipe& operator=(const WakePipe&) = delete;

  /// Also in handlers of signals.
  void send(Wake wake) const;
  std::optional<Wake> take() const;
  /// Returns when something may have come, after `seconds` at the latest.
  void wait(double seconds) const;

 private:
  int ends_[2];
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

/// Starts the process of a node, which boots until the moment `ready_at` of the machine's clock. Then it exists until
/// it is killed, and tells of the first SIGTERM.
pid_t start_node(const WakePipe& pipe, std::uint64_t node, double ready_at);

}  // namespace ganymede::rehearsal

#pragma once
// One start of `ganymede train` as several processes, which a policy has asked for.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::rehearsal {

/// What the log of a start (`ganymede.run-log/1`) says so far.
struct TrainingLog {
  bool begun = false;            ///< the processes are connected and the last checkpoint is read
  std::int64_t first = 0;        ///< steps done before this start
  std::int64_t step = 0;         ///< the last step that is logged
  std::int64_t saved = 0;        ///< steps in the last checkpoint that is logged
  std::int64_t checkpoints = 0;  ///< written in this start
  double saving_s = 0;           ///< that these took
  std::string end;               ///< "finished", "stopped" or ""
  double trained_s = 0;          ///< from the begin to `step`, without pauses
};

class TrainingCrew {
 public:
  struct Files {
    std::filesystem::path log, report, errors;  ///< the log is appended to, the others are written anew
  };
  /// Starts the command, whose first word is a launcher of processes such as mpirun. Throws Failure if it cannot.
  TrainingCrew(const std::vector<std::string>& command, Files files);
  /// Ends all processes that still run.
  ~TrainingCrew();
  TrainingCrew(const TrainingCrew&) = delete;
  TrainingCrew& operator=(const TrainingCrew&) = delete;

  /// Reads what the log has gained.
  const TrainingLog& log();
  /// The launcher's exit status, 128 more than the signal that ended it; none while it runs.
  std::optional<int> ended();
  /// Asks the first process to end after the step under way and to write a checkpoint; all end with it.
  void ask_to_stop();
  /// Kills the process of that rank, if it is on this machine.
  void kill_rank(int rank);
  /// The rank that a signal has ended, as the launcher says; none: no rank was killed.
  std::optional<int> killed_rank() const;
  std::string errors() const;

 private:
  std::map<int, pid_t> ranks() const;

  Files files_;
  std::uintmax_t read_until_ = 0;  // bytes of the log
  TrainingLog log_;
  double begun_at_ = 0, paused_s_ = 0;
  pid_t launcher_ = 0;
  std::optional<int> ended_;
};

}  // namespace ganymede::rehearsal

#pragma once
// What a training under way says of itself: the lines of a `ganymede.run-log/1` file, which `train --metrics` and the
// Python recorder write. docs/formats.md describes them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::plan {

/// A step that was done, and when.
struct LoggedStep {
  std::int64_t step = 0;   ///< steps done in all, those before a resumption included
  double unix_s = 0;       ///< Unix time in seconds
  bool clock_set = false;  ///< the time since the step before is not known, because the clock was set back
};

/// A time in which the run did not train: an evaluation, a checkpoint, or the gap before a resumption.
struct LoggedPause {
  std::string what;
  std::int64_t step = 0;  ///< steps done before it
  double seconds = 0;
  double unix_s = 0;  ///< Unix time of its end
};

/// How good the generator was after a step.
struct LoggedFid {
  std::int64_t step = 0;
  double fid = 0;
};

/// The lines of a run so far.
struct RunLog {
  std::string model;              ///< empty if the log does not say it
  std::string device;             ///< empty if the log does not say it
  int gpus = 1;                   ///< replicas, one for each GPU
  std::int64_t batch = 0;         ///< images of one step over all replicas
  std::int64_t planned = 0;       ///< steps of the whole run
  double begin_unix_s = 0;        ///< when the first header was written, by the clock of the last line
  std::int64_t begin_step = 0;    ///< steps done before the log began
  std::vector<LoggedStep> steps;  ///< in order of both step and time
  std::vector<LoggedPause> pauses;
  std::vector<LoggedFid> fids;  ///< in order of the steps
  std::string reference;        ///< what the FIDs compare with; empty if the log does not say it
  std::string end;              ///< "finished" or "stopped"; empty while the run goes on
  int resumptions = 0;
  std::string run;         ///< the one that was taken of a file of several
  int cut_lines = 0;       ///< lines that a crash cut short, or that cannot be read, which are skipped
  double last_unix_s = 0;  ///< time of the last line

  std::int64_t done() const { return steps.empty() ? begin_step : steps.back().step; }
};

/// What logs of other programs do not say of their training.
struct PlannedTraining {
  std::int64_t batch = 0;  ///< images of one step over all GPUs
  double images = 0;       ///< of the whole training
  int gpus = 1;
};

/// Reads the lines of a log that another process may still be writing.
class RunLogReader {
 public:
  explicit RunLogReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// Reads logs of other programs too (traces/run_pace.hpp), as those of the planned training.
  RunLogReader(std::filesystem::path file, const PlannedTraining& planned)
      : file_(std::move(file)), planned_(planned) {}

  /// Reads the lines that were added since the last call; a last line without its end is left for the next one.
  /// Returns the number of lines read. A clock that is set back moves the times before it along. Throws ConfigError
  /// with file and line for a line that is no line of a run log, for a number of steps that goes backwards, and for a
  /// file that has become shorter.
  int read();
  const RunLog& log() const { return log_; }

 private:
  void add(std::string_view line);
  bool is_foreign() const;
  int read_foreign();

  std::filesystem::path file_;
  std::optional<PlannedTraining> planned_;
  bool foreign_ = false;
  std::uint64_t offset_ = 0;  ///< where the next line begins, in bytes
  std::int64_t number_ = 0;   ///< of the last line that was read, from 1
  RunLog log_;
};

}  // namespace ganymede::plan

#pragma once
// One run of the program itself as a child: its own process group, no shell, output into files, progress over a pipe,
// an end when it is told to stop or takes too long.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ganymede::serve {

/// Tells a run to stop, from any thread, also before it has begun.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  void raise();
  bool raised() const { return raised_; }
  int descriptor() const { return descriptor_; }  ///< readable once raised

 private:
  int descriptor_;
  std::atomic<bool> raised_ = false;
};

struct CommandRun {
  std::vector<std::string> arguments;  ///< behind the program's name
  std::filesystem::path folder;        ///< it runs there …
  std::string output, log;             ///< … and these files of it take its standard output and its standard error
  bool progress = false;               ///< it knows --progress-fd
};

struct Progress {
  std::uint64_t done = 0, count = 0;  ///< count 0: nothing is known
  std::string what;                   ///< "runs"
};

struct CommandEnd {
  enum class Why { exited, stopped, too_long } why = Why::exited;
  int code = 0;                        ///< as a shell says it: 128 + the signal that ended it
  std::int64_t peak_memory_bytes = 0;  ///< of its largest process
};

/// Runs it to its end, or until `stop` is raised or `until` has come: then its whole process group is asked to end
/// (SIGTERM) and, two seconds later, killed. Nothing of it runs when this returns. It also dies with the thread that
/// called. Failure if it cannot be started.
CommandEnd run_command(const CommandRun& run, const StopSignal& stop, std::chrono::steady_clock::time_point until,
                       const std::function<void(const Progress&)>& progress);

}  // namespace ganymede::serve

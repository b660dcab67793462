#pragma once
// Runs the program itself as a child process: in a process group of its own, without a shell, with its output in files
// and its progress over a pipe; it is ended when it is told to stop or takes too long.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::serve {

/// Tells a run to stop. It may be raised from any thread, also before the run begins.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();
  void raise();
  bool raised() const { return raised_; }
  int descriptor() const { return descriptor_; }  ///< becomes readable when the signal is raised

 private:
  int descriptor_;
  std::atomic<bool> raised_ = false;
};

struct CommandRun {
  std::vector<std::string> arguments;  ///< without the program's name
  std::filesystem::path folder;        ///< the working directory
  std::string output, log;             ///< files in `folder` for its standard output and standard error
  bool progress = false;               ///< the command has the option --progress-fd
};

struct Progress {
  std::uint64_t done = 0, count = 0;  ///< count 0: not known
  std::string what;                   ///< "runs"
  /// Measurements that the program sends along, such as {"discriminator", 0.7}.
  std::vector<std::pair<std::string, double>> values;
};

/// The losses of a training, as it tells them while it runs.
class Losses {
 public:
  static constexpr std::size_t kMost = 1000;

  struct Point {
    std::int64_t step;
    double discriminator, generator;
  };

  /// Adds what a training has told of itself. A point that is not after the last one is left out, as is one without
  /// losses. Every other point is dropped when there are kMost.
  void add(const Progress& progress);
  const std::vector<Point>& points() const { return points_; }
  /// With the header "step,discriminator,generator".
  std::string csv() const;
  /// Reads what csv() wrote; nothing from a file that is not there or is damaged.
  static Losses read(const std::filesystem::path& file);

 private:
  std::vector<Point> points_;
};

/// How a running command shares the machine.
enum class Pace {
  full,        ///< at the priority of the server
  background,  ///< at a lower priority: others of the machine go first
  held         ///< its processes are stopped until the pace is another one
};

/// The conversation with a run while it runs. Both functions may be empty.
struct RunHooks {
  std::function<void(const Progress&)> progress{};
  std::function<Pace()> pace{};  ///< asked some times a second, always by the thread that called run_command()
};

struct CommandEnd {
  enum class Why { exited, stopped, too_long } why = Why::exited;
  int code = 0;                                 ///< as a shell states it: 128 + signal if a signal ended the program
  std::int64_t peak_memory_bytes = 0;           ///< of the largest process of its group
  std::chrono::steady_clock::duration held{0};  ///< how long its processes were stopped
};

/// Runs the command until it ends, `stop` is raised or `until` has passed. In the last two cases its whole process
/// group is asked to end (SIGTERM) and killed five seconds later. The time for which a run
/// is held does not count. No process of the group is left when this returns, and the child is killed if the calling
/// thread ends. Throws Failure if it cannot be started.
CommandEnd run_command(const CommandRun& run, const StopSignal& stop, std::chrono::steady_clock::time_point until,
                       const RunHooks& hooks);

/// A file that is sent to the server is read first by a process of its own, whose memory and time are bounded, so that
/// what no reader has foreseen ends that process and not the server.
constexpr const char* kTrial = "trial-";  ///< how names of its folders begin

/// Has the program read the file of that kind ("trace" or "platform") as a command would. Returns also for a file that
/// the command refuses, because the server says better why. Throws ConfigError, which begins with `name`, if reading it
/// crashed, took more than 512 MiB, or a quarter of the server's memory, or more than a minute.
/// @param folder of the server, in which the file stands for so long
void try_upload(const std::string& kind, const std::string& name, const std::string& text,
                const std::filesystem::path& folder);

}  // namespace ganymede::serve

#pragma once
// Progress on stderr: one line, on a terminal only and not with --quiet. It appears after two seconds, is redrawn four
// times a second by a thread of its own, and is erased at the end. It uses carriage returns and no escape codes.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/command.hpp"
#include "kernel/train.hpp"
#include "report/table.hpp"

namespace ganymede::cli {

/// The columns of the terminal behind a descriptor: the value of COLUMNS, or what the terminal says. Returns nullopt if
/// the descriptor is no terminal, or one that does not know its width.
std::optional<std::size_t> terminal_columns(int descriptor);
/// The width to which a command's result is fitted: kAnyWidth unless it goes to a terminal.
std::size_t result_width(const Shared& shared);
/// The width to which text on stderr is fitted: kAnyWidth unless stderr is a terminal.
std::size_t remark_width();
/// The text without characters that could steer a terminal, which may stand in files that somebody else wrote, and with
/// its marked lines coloured, if it goes to a terminal that shows colours: those that begin with "-> " or hold "<- ",
/// which are chosen, in green, and "-> MISSED" in red.
std::string highlighted(const Shared& shared, const std::string& text);
/// True if stdout is a terminal that supports colours and NO_COLOR (no-color.org) is not set.
bool may_color();

/// A line that is drawn as long as the object lives.
class ProgressLine {
 public:
  /// Returns the text to draw after `elapsed_s` seconds, at most `columns` columns wide. It is called from another
  /// thread.
  using Text = std::function<std::string(double elapsed_s, std::size_t columns)>;
  explicit ProgressLine(Text text);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  void draw(const std::stop_token& stop);

  Text text_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // declared last, because the thread uses the other members
};

/// True if progress is shown: stderr is a terminal and --quiet is not given.
bool shows_progress(const Shared& shared);

/// Shows how long `what` has taken, for work that cannot tell how much of it is done, and the time left if it is
/// expected to take `expected_s` seconds (0: not known). Returns nullptr if progress is not shown.
std::unique_ptr<ProgressLine> show_elapsed(const Shared& shared, const std::string& what, double expected_s = 0);

/// The duration as "42 s", or from 100 s on as "0:01:40".
std::string duration_text(double seconds);

/// The seconds left at the mean rate so far: `done` of `count` pieces were done after `last_s` seconds, and `now_s`
/// have passed. A piece that takes longer than the mean is counted as if it ended now. Returns 0 if no piece is done.
double time_left(std::size_t done, std::size_t count, double last_s, double now_s);

/// "[####      ] 4/10 runs  5 s, 7 s left", cut to `columns`. The time left is not shown if it is below one second.
std::string bar_text(std::size_t done, std::size_t count, const std::string& what, double elapsed_s, double left_s,
                     std::size_t columns);

// The words of `ganymede train` while it trains: on a terminal a line of progress, after the first steps of a long
// training how long it will take here, and for a program that started this one its losses.

/// How long a training takes, from its first steps. The first three are not counted: they allocate memory and choose
/// algorithms.
class TrainingEstimate {
 public:
  /// `grows`: later stages have larger images, so that the first steps give only a lower bound.
  TrainingEstimate(std::int64_t steps, bool grows) : steps_(steps), grows_(grows) {}

  /// The sentence for people once ten steps, or three seconds of them, are timed; empty before and after that, and if
  /// less than a minute is left. `now_s` are the seconds since the first step began.
  std::string after_step(std::int64_t done, double now_s);

 private:
  std::int64_t steps_;
  bool grows_, said_ = false;
  double begin_s_ = 0;  ///< when the third step was done
};

/// On a terminal a line with losses, rate and time left. With --progress-fd lines for the program that started this
/// one, such as "120 2000 steps\tdiscriminator=0.7\tgenerator=1.1".
class TrainingLine {
 public:
  /// The training does the steps after `first` up to `last`, each of `batch` images over all replicas. `shared` must
  /// outlive this.
  TrainingLine(std::int64_t first, std::int64_t last, int batch, bool grows, kernel::LossNames names,
               const Shared& shared);
  void show(const kernel::Progress& progress);

 private:
  void tell(const kernel::Progress& progress);
  std::string text(double seconds);

  const Shared& shared_;
  std::int64_t first_, last_;
  int batch_;
  kernel::LossNames names_;
  TrainingEstimate estimate_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_{};  ///< before which nothing is told
  std::mutex mutex_;
  kernel::Progress progress_{};
  std::unique_ptr<ProgressLine> line_;  // last, because its thread uses the other members
};

}  // namespace ganymede::cli

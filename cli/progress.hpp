#pragma once
// Progress on stderr: one line, on a terminal only and not with --quiet. It appears after two seconds, is redrawn four
// times a second by a thread of its own, and is erased at the end. It uses carriage returns and no escape codes.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cli/command.hpp"

namespace ganymede::cli {

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

/// Writes a line "done count what" to --progress-fd. It is no error if the reader is gone, or if it is slow and the
/// descriptor does not block. `what` may hold measurements, each as a tab and "name=value".
void write_progress(int descriptor, std::size_t done, std::size_t count, const std::string& what);

/// The duration as "42 s", or from 100 s on as "0:01:40".
std::string duration_text(double seconds);

/// The seconds left at the mean rate so far: `done` of `count` pieces were done after `last_s` seconds, and `now_s`
/// have passed. A piece that takes longer than the mean is counted as if it ended now. Returns 0 if no piece is done.
double time_left(std::size_t done, std::size_t count, double last_s, double now_s);

/// "[####      ] 4/10 runs  5 s, 7 s left", cut to `columns`. The time left is not shown if it is below one second.
std::string bar_text(std::size_t done, std::size_t count, const std::string& what, double elapsed_s, double left_s,
                     std::size_t columns);

}  // namespace ganymede::cli

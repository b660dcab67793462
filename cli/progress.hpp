#pragma once
// Progress on stderr, for work that people wait for: one line, on a terminal only and not with --quiet. It appears
// after two seconds, is redrawn four times a second by a thread of its own, and is erased in the end. No escape codes:
// it is overwritten from the carriage return on.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cli/command.hpp"

namespace ganymede::cli {

/// Drawn while it lives.
class ProgressLine {
 public:
  /// What to draw after so many seconds in so many columns; called from another thread.
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
  std::jthread thread_;  // the last: it uses the others
};

bool shows_progress(const Shared& shared);

/// How long `what` has been going on and, where its length is about known, how long it will; nullptr where progress is
/// not shown. For work that cannot tell how much of it is done.
std::unique_ptr<ProgressLine> show_elapsed(const Shared& shared, const std::string& what, double expected_s = 0);

/// "42 s", from 100 s on "0:01:40".
std::string duration_text(double seconds);

/// Seconds left of `count` pieces when `done` of them took until `last_s` and it is now `now_s`, at their mean rate; a
/// piece that takes longer than the mean counts as done now. 0 without any done.
double time_left(std::size_t done, std::size_t count, double last_s, double now_s);

/// "[####      ] 4/10 runs  5 s, 7 s left", cut to the columns; `left_s` below 1: not said.
std::string bar_text(std::size_t done, std::size_t count, const std::string& what, double elapsed_s, double left_s,
                     std::size_t columns);

}  // namespace ganymede::cli

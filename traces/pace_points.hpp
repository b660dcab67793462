#pragma once
// The points of a training's log: how far it was, and when.

#include <optional>
#include <string_view>

#include "traces/run_pace.hpp"

namespace ganymede::traces {

inline constexpr double kMostCount = 1e15;  ///< images or steps, as for goals

/// Adds a point; what has a higher count is of a life before a restart. Where the clock was set back before it, it goes
/// on from there: the time between the two lines is not known and counts as none, nor are their steps in the pace.
void add_point(RunPace& pace, double count, double seconds);

/// Times of a log since its first, which may lack their year: then it goes on at a New Year.
class LogClock {
 public:
  double since_begin(double moment);
  std::optional<double> begin() const { return begin_; }

 private:
  std::optional<double> begin_;
  double last_ = 0, years_ = 0;
};

/// Steps, iterations or images: "1000", "1,000", "1_000", "1e3", "1k", "1.5M", with what else may follow.
std::optional<double> count_of(std::string_view text);
/// The same of a text that has nothing else: "1,00" and "1k images" are none.
std::optional<double> whole_count_of(std::string_view text);

}  // namespace ganymede::traces

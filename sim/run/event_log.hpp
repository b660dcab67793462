#pragma once
// The list of what happened in a run, as its result shows it.

#include <cstddef>
#include <vector>

#include "sim/run/result.hpp"

namespace ganymede::sim {

/// Largest number of entries that a log lists.
inline constexpr std::size_t kMaxListedEvents = 20'000;

class EventLog {
 public:
  /// Appends an entry. One that repeats the last, at the same time, adds its nodes to that entry instead: nodes that
  /// are requested together are one line. After kMaxListedEvents a last line says that no further ones follow.
  void append(RunEvent entry);

  const std::vector<RunEvent>& events() const { return events_; }
  /// True: more happened than is listed.
  bool truncated() const { return events_.size() > kMaxListedEvents; }

 private:
  std::vector<RunEvent> events_;
};

}  // namespace ganymede::sim

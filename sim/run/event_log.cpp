#include "sim/run/event_log.hpp"

#include <utility>

namespace ganymede::sim {

void EventLog::append(RunEvent entry) {
  if (events_.size() == kMaxListedEvents) events_.push_back({entry.at, "further events are not listed", "", 0, "", 1});
  if (truncated()) return;
  if (!events_.empty()) {
    RunEvent& last = events_.back();
    if (last.at == entry.at && last.what == entry.what && last.pool == entry.pool && last.detail == entry.detail) {
      last.nodes += entry.nodes;
      return;
    }
  }
  events_.push_back(std::move(entry));
}

}  // namespace ganymede::sim

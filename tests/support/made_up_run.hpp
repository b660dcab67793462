#pragma once
// Makes up the part of a run's result that its timeline is made of.

#include <vector>

#include "documents/result.hpp"

namespace ganymede {

/// A run of `total_s` seconds with these events.
inline documents::Result run_with(std::vector<documents::RunEvent> events, double total_s) {
  documents::Result run;
  run.total = Seconds{total_s};
  run.events = std::move(events);
  return run;
}

/// One event, of `nodes` nodes of the pool, or of the whole run if `nodes` is 0.
inline documents::RunEvent event(double at, const char* what, int nodes = 0, const char* pool = "p") {
  return {Seconds{at}, what, nodes > 0 ? pool : "", nodes, ""};
}

}  // namespace ganymede

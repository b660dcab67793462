#pragma once
// Spans of time as a Chrome trace (the JSON array format of the Trace Event Format), which ui.perfetto.dev opens.

#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

struct TimelineSpan {
  std::string process;  ///< spans of one process stand together
  int track = 0;        ///< below the process, in this order
  std::string track_name;
  std::string name;
  Seconds start, end;  ///< end >= start; where they are equal it is an instant
  std::vector<std::pair<std::string, std::string>> details;
};

/// Spans of one track that overlap without nesting get further tracks of the same name, as the format demands.
std::string chrome_trace(const std::vector<TimelineSpan>& spans);

}  // namespace ganymede

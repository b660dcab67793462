#pragma once
// Spans of time as a Chrome trace (the JSON object format of the Trace Event Format), which ui.perfetto.dev opens.

#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::exports {

struct TimelineSpan {
  std::string process;  ///< the viewer groups the tracks of a process
  int track = 0;        ///< place among the tracks of its process
  std::string track_name;
  std::string name;
  Seconds start, end;  ///< end >= start; a span without length is drawn as an instant
  std::vector<std::pair<std::string, std::string>> details;
};

/// Returns the trace as JSON. Spans of one track must not overlap in this format: those that do are placed on further
/// tracks of the same name.
std::string chrome_trace(const std::vector<TimelineSpan>& spans);

}  // namespace ganymede::exports

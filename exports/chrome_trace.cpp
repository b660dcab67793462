#include "exports/chrome_trace.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/json_value.hpp"
#include "common/units.hpp"

namespace ganymede::exports {
namespace {
constexpr double kMicroseconds = 1e6;  // the format's unit

/// Places spans side by side: each goes to the first lane whose last span has ended.
class Lanes {
 public:
  std::size_t place(const TimelineSpan& span) {
    if (span.start == span.end) return 0;  // instants need no room
    for (std::size_t lane = 0; lane < ends_.size(); ++lane) {
      if (ends_[lane] > span.start) continue;
      ends_[lane] = span.end;
      return lane;
    }
    ends_.push_back(span.end);
    return ends_.size() - 1;
  }

 private:
  std::vector<Seconds> ends_;
};

OrderedJson metadata(const char* what, int process, std::int64_t thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chrome_trace(const std::vector<TimelineSpan>& spans) {
  std::vector<const TimelineSpan*> ordered;
  for (const TimelineSpan& span : spans) ordered.push_back(&span);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->start < b->start; });

  std::map<std::string, int> processes;
  for (const TimelineSpan& span : spans) processes.try_emplace(span.process, static_cast<int>(processes.size()));
  std::map<std::pair<int, int>, Lanes> tracks;
  std::map<std::tuple<int, int, std::size_t>, std::int64_t> threads;

  OrderedJson events = OrderedJson::array();
  for (const auto& [name, process] : processes) events.push_back(metadata("process_name", process, 0, name));
  for (const TimelineSpan* span : ordered) {
    const int process = processes.at(span->process);
    const std::size_t lane = tracks[{process, span->track}].place(*span);
    const auto [thread, is_new] =
        threads.try_emplace({process, span->track, lane}, static_cast<std::int64_t>(threads.size()) + 1);
    if (is_new) {
      events.push_back(metadata("thread_name", process, thread->second, span->track_name));
      events.push_back({{"name", "thread_sort_index"},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread->second},
                        {"args", {{"sort_index", span->track}}}});
    }
    OrderedJson details = OrderedJson::object();
    for (const auto& [key, value] : span->details) details[key] = value;
    OrderedJson event = {{"name", span->name}, {"ph", "X"}, {"ts", span->start.si * kMicroseconds}};
    if (span->start == span->end) {
      event["ph"] = "i";
      event["s"] = "t";  // of its track
    } else {
      event["dur"] = (span->end - span->start).si * kMicroseconds;
    }
    event["pid"] = process;
    event["tid"] = thread->second;
    event["args"] = details;
    events.push_back(std::move(event));
  }
  return OrderedJson{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump() + "\n";
}

}  // namespace ganymede::exports

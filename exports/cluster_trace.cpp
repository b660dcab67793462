#include "exports/cluster_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "exports/chrome_trace.hpp"

namespace ganymede::exports {
namespace {
/// Adds a span on each node of a stay; "on" lists them as "3:0-3 4:1".
void add_stay(const Json& job, const Json& stay, std::vector<TimelineSpan>& spans) {
  std::istringstream places(stay.at("on").get<std::string>());
  for (std::string place; places >> place;) {
    const std::string node = place.substr(0, place.find(':'));
    spans.push_back({stay.at("pool").get<std::string>(),
                     std::stoi(node),
                     "node " + node,
                     job.at("job").get<std::string>(),
                     Seconds{stay.at("from_s").get<double>()},
                     Seconds{stay.at("to_s").get<double>()},
                     {{"owner", job.at("owner").get<std::string>()},
                      {"GPUs here", place.substr(place.find(':') + 1)},
                      {"GPUs in all", stay.at("gpus").dump()}}});
  }
}

/// Adds the times between a job's arrival, its stays and its end in which it held nothing.
void add_waits(const Json& job, int track, std::vector<TimelineSpan>& spans) {
  double free_since_s = job.at("ready_s").get<double>();
  const auto owner = job.at("owner").get<std::string>();
  for (const Json& stay : job.at("stays")) {
    const double from_s = stay.at("from_s").get<double>();
    if (from_s > free_since_s)
      spans.push_back({"queue",
                       track,
                       owner,
                       job.at("job").get<std::string>(),
                       Seconds{free_since_s},
                       Seconds{from_s},
                       {{"GPUs asked for", job.at("gpus").dump()}}});
    free_since_s = std::max(free_since_s, stay.at("to_s").get<double>());
  }
}

}  // namespace

std::string cluster_trace(const Json& result) {
  std::vector<TimelineSpan> spans;
  std::map<std::string, int> owners;
  for (const Json& job : result.at("jobs")) {
    const int track =
        owners.try_emplace(job.at("owner").get<std::string>(), static_cast<int>(owners.size())).first->second;
    for (const Json& stay : job.at("stays")) add_stay(job, stay, spans);
    add_waits(job, track, spans);
  }
  return chrome_trace(spans);
}

}  // namespace ganymede::exports

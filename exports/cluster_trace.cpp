#include "exports/cluster_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "common/units.hpp"
#include "exports/chrome_trace.hpp"

namespace ganymede::exports {
namespace {
/// Adds a span on each node of a stay; "on" lists them as "3:0-3 4:1".
void add_stay(const documents::JobLife& job, const documents::JobStay& stay, std::vector<TimelineSpan>& spans) {
  std::istringstream places(stay.on);
  for (std::string place; places >> place;) {
    const std::string node = place.substr(0, place.find(':'));
    spans.push_back({stay.pool,
                     std::stoi(node),
                     "node " + node,
                     job.job,
                     Seconds{stay.from_s},
                     Seconds{stay.to_s},
                     {{"owner", job.owner},
                      {"GPUs here", place.substr(place.find(':') + 1)},
                      {"GPUs in all", std::to_string(stay.gpus)}}});
  }
}

/// Adds the times between a job's arrival, its stays and its end in which it held nothing.
void add_waits(const documents::JobLife& job, int track, std::vector<TimelineSpan>& spans) {
  double free_since_s = job.ready_s;
  for (const documents::JobStay& stay : job.stays) {
    const double from_s = stay.from_s;
    if (from_s > free_since_s)
      spans.push_back({"queue",
                       track,
                       job.owner,
                       job.job,
                       Seconds{free_since_s},
                       Seconds{from_s},
                       {{"GPUs asked for", std::to_string(job.gpus)}}});
    free_since_s = std::max(free_since_s, stay.to_s);
  }
}

}  // namespace

std::string cluster_trace(const documents::ClusterResult& result) {
  std::vector<TimelineSpan> spans;
  std::map<std::string, int> owners;
  for (const documents::JobLife& job : result.jobs) {
    const int track = owners.try_emplace(job.owner, static_cast<int>(owners.size())).first->second;
    for (const documents::JobStay& stay : job.stays) add_stay(job, stay, spans);
    add_waits(job, track, spans);
  }
  return chrome_trace(spans);
}

}  // namespace ganymede::exports

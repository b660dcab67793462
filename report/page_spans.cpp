// A Gantt chart of more spans than anyone can see, with fewer.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/page_parts.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

/// Kinds of step_spans are below this.
constexpr std::size_t kKinds = 16;
/// Of a worker: its own course, its collectives, its input pipeline; as the kinds "communication" and "input" say.
constexpr int kCommunication = 2;
constexpr int kInput = 5;

int track_of(int kind) { return kind == kCommunication ? 1 : kind == kInput ? 2 : 0; }

}  // namespace

nlohmann::ordered_json capped_spans(const Json& spans, std::vector<std::string>& names, std::size_t most) {
  const Json& rows = spans.at("rows");
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  if (rows.size() <= most) {
    for (const Json& row : rows) out.push_back(nlohmann::ordered_json(row));
    return out;
  }
  struct Bin {
    std::array<double, kKinds> seconds{};
    std::size_t spans = 0;
  };
  double end = 0;
  std::map<std::pair<std::size_t, int>, std::map<std::size_t, Bin>> tracks;
  for (const Json& row : rows) {
    end = std::max(end, row.at(3).get<double>() + row.at(4).get<double>());
    tracks[{row.at(0).get<std::size_t>(), track_of(row.at(1).get<int>())}];
  }
  const std::size_t bins = std::max<std::size_t>(1, most / tracks.size());
  const double width = end / static_cast<double>(bins);
  for (const Json& row : rows) {
    const double start = row.at(3).get<double>();
    const double stop = start + row.at(4).get<double>();
    const auto kind = std::min<std::size_t>(kKinds - 1, row.at(1).get<std::size_t>());
    auto& track = tracks[{row.at(0).get<std::size_t>(), track_of(row.at(1).get<int>())}];
    for (auto bin = static_cast<std::size_t>(start / width); bin < bins; ++bin) {
      const double left = static_cast<double>(bin) * width;
      const double inside = std::min(stop, left + width) - std::max(start, left);
      if (inside <= 0) break;
      track[bin].seconds[kind] += inside;
      ++track[bin].spans;
    }
  }
  const std::size_t name = names.size();
  names.emplace_back("several, drawn together");
  for (const auto& [where, content] : tracks)
    for (const auto& [bin, of] : content) {
      const auto largest = std::max_element(of.seconds.begin(), of.seconds.end());
      double filled = 0;
      for (const double seconds : of.seconds) filled += seconds;
      out.push_back(
          {where.first, largest - of.seconds.begin(), name, static_cast<double>(bin) * width, std::min(width, filled)});
    }
  return out;
}

}  // namespace ganymede

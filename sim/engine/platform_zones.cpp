#include "sim/engine/platform_zones.hpp"

namespace ganymede::sim {

void PlatformZones::open(const std::string& id, const std::string& routing) {
  const int place = add(id);
  zones_.push_back({routing, place, inside_});
  inside_ = static_cast<int>(zones_.size()) - 1;
}

int PlatformZones::add(const std::string& id, bool bare) {
  if (bare) bare_.insert(id);
  const int place = static_cast<int>(places_.size());
  places_.emplace_back(id, inside_);
  numbers_.emplace(id, place);
  return place;
}

void PlatformZones::add_route(const Route& route) {
  Zone& zone = zones_[index(inside_)];
  const auto add = [&](const std::string& from, const std::string& to, const std::string& start,
                       const std::string& end) {
    zone.routes.emplace(std::pair(from, to), std::pair(start, end));
    zone.next[from].insert(to);
    zone.ends.insert({from, to});
  };
  add(route.from, route.to, route.from_gateway, route.to_gateway);
  if (route.both_ways) add(route.to, route.from, route.to_gateway, route.from_gateway);
}

int PlatformZones::place_of(const std::string& id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? -1 : found->second;
}

/// The place, and those of the zones around it.
std::vector<int> PlatformZones::around(int place) const {
  std::vector<int> out;
  for (; place >= 0; place = zones_[index(places_[index(place)].second)].place) out.push_back(place);
  return out;
}

const std::set<std::string>& PlatformZones::reached(const Zone& zone, const std::string& from) {
  const auto [at, added] = zone.reached.emplace(from, std::set<std::string>{from});
  if (added) {
    std::vector<std::string> open = {from};
    while (!open.empty()) {
      const auto next = zone.next.find(open.back());
      open.pop_back();
      if (next == zone.next.end()) continue;
      for (const std::string& place : next->second)
        if (at->second.insert(place).second) open.push_back(place);
    }
  }
  return at->second;
}

bool PlatformZones::joined(int from, int to, int depth) const {
  constexpr int kMaxDepth = 8;  // of zones; gateways that stand elsewhere would lead in circles
  if (depth > kMaxDepth) return false;
  std::vector<int> froms = around(from), tos = around(to);
  while (!froms.empty() && !tos.empty() && froms.back() == tos.back()) {
    froms.pop_back();
    tos.pop_back();
  }
  if (froms.empty() || tos.empty()) return true;  // the same, or one around the other
  const auto name = [&](int place) -> const std::string& { return places_[index(place)].first; };
  if (!bypasses_.empty())
    for (const int start : froms)
      for (const int end : tos)
        if (bypasses_.count({name(start), name(end)}) > 0) return true;
  const Zone& zone = zones_[index(places_[index(froms.back())].second)];
  const std::string &start = name(froms.back()), &end = name(tos.back());
  if (zone.routing == "None") return false;
  if (zone.routing == "Floyd") return reached(zone, start).count(end) > 0;
  // SimGrid's search ends the process unless all that have routes reach each other.
  if (zone.routing.starts_with("Dijkstra"))
    return reached(zone, start).size() == zone.ends.size() && reached(zone, end).size() == zone.ends.size();
  if (zone.routing == "Vivaldi" && (bare_.count(name(from)) > 0 || bare_.count(name(to)) > 0)) return false;
  if (zone.routing != "Full") return true;
  const auto route = zone.routes.find({start, end});
  if (route == zone.routes.end()) return false;
  // A gateway that is unknown here is the router of a cluster, which reaches all hosts of its cluster.
  const int leave = place_of(route->second.first), enter = place_of(route->second.second);
  return (leave < 0 || leave == from || joined(from, leave, depth + 1)) &&
         (enter < 0 || enter == to || joined(enter, to, depth + 1));
}

}  // namespace ganymede::sim

#pragma once
// The zones of a SimGrid platform, to tell between which of its hosts routes lead: SimGrid 3.32 ends the process where
// it is asked for a route that is not there.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::sim {

class PlatformZones {
 public:
  /// All that follows until close() is inside this zone. `routing` is "Cluster" for a cluster.
  void open(const std::string& id, const std::string& routing);
  void close() { inside_ = zones_[index(inside_)].parent; }

  const std::string& routing() const { return zones_[index(inside_)].routing; }

  /// Adds a host or a router and returns its place. A host that is `bare` has no link of its own until set_link(),
  /// which it needs in a zone of coordinates.
  int add(const std::string& id, bool bare = false);
  void set_link(const std::string& host) { bare_.erase(host); }

  struct Route {
    std::string from, to;
    std::string from_gateway = {}, to_gateway = {};  ///< for routes between zones
    bool both_ways = true;
  };
  void add_route(const Route& route);
  /// A route that comes before those of the zones; its ends are hosts or zones.
  void add_bypass(const std::string& from, const std::string& to) { bypasses_.emplace(from, to); }

  /// True if a route leads from one host to the other, as far as the file says. In zones of shortest paths, gateways
  /// are taken to reach the hosts of their own zone.
  bool joined(int from, int to) const { return joined(from, to, 0); }

 private:
  struct Zone {
    std::string routing;
    int place = -1, parent = 0;
    std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>> routes = {};
    std::map<std::string, std::set<std::string>> next = {};             // by the routes
    std::set<std::string> ends = {};                                    // of the routes
    mutable std::map<std::string, std::set<std::string>> reached = {};  // by paths of routes, where they were asked for
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  bool joined(int from, int to, int depth) const;
  std::vector<int> around(int place) const;
  int place_of(const std::string& id) const;
  static const std::set<std::string>& reached(const Zone& zone, const std::string& from);

  std::vector<Zone> zones_ = {Zone{"None"}};  // the first is around all
  int inside_ = 0;
  std::vector<std::pair<std::string, int>> places_;  // their names, and the zones that they are in
  std::map<std::string, int> numbers_;
  std::set<std::string> bare_;
  std::set<std::pair<std::string, std::string>> bypasses_;
};

}  // namespace ganymede::sim

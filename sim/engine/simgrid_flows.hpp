#pragma once
// A fabric in SimGrid: flows of bytes over links. Nothing here has a latency (communication_engine.hpp says why).

#include <functional>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/engine/network.hpp"

namespace ganymede::sim {

/// The part of a message that takes one path.
struct SimGridFlow {
  int source, destination;  ///< endpoints
  int path_index;           ///< in Network::paths()
  double bytes;
  double limit;  ///< bytes per second; infinite: no limit
};

/// The hosts, links and routes of a fabric. A route is made when it is first needed, since most pairs never need one.
///
/// SimGrid has one route for a pair of hosts. So an endpoint has a host for each path that its messages may take, and
/// for each rate to which a protocol limits a flow: SimGrid 3.32 ignores the rate of a message between hosts, but a
/// link of kind FATPIPE in the route gives every flow that bandwidth and no more.
class SimGridFlows {
 public:
  /// `limits` is the largest number of different limits of flows, infinity included; `disks` is the number of disks,
  /// each of which does one unit of work in a nanosecond. A process may construct only one object; a second one throws
  /// Failure.
  SimGridFlows(const Network& fabric, int limits, std::size_t disks = 0);

  /// Starts a flow now; `done` runs when its last byte has arrived.
  void start(const SimGridFlow& flow, std::function<void()> done);
  /// A host of this endpoint, of one operation a second.
  simgrid::s4u::Host* host(int endpoint) const {
    const int first = endpoint * paths_per_pair_ * limits_;
    return hosts_[static_cast<std::size_t>(first)];
  }
  simgrid::s4u::Disk* disk(std::size_t index) const { return disks_[index]; }
  /// Runs until no process, no timer and no flow is left. Throws Failure if some flows never end.
  void run();

 private:
  struct Active {
    simgrid::s4u::CommPtr flow;
    std::function<void()> done;
  };

  std::size_t host_index(int endpoint, const SimGridFlow& flow);
  simgrid::s4u::Link* limiter(double limit);
  void finish(const simgrid::s4u::Activity& activity);

  const Network& fabric_;
  int paths_per_pair_;
  int limits_;
  std::vector<double> limit_values_;                // in the order of their first use
  std::map<double, simgrid::s4u::Link*> limiters_;  // by limit, bytes per second
  std::vector<simgrid::s4u::Link*> unused_limiters_;
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  simgrid::s4u::NetZone* zone_ = nullptr;
  std::vector<simgrid::s4u::Link*> links_;
  std::vector<simgrid::s4u::Host*> hosts_;
  std::vector<simgrid::s4u::Disk*> disks_;
  std::vector<std::unordered_set<int>> routed_;  // the endpoints to which each host has a route
  std::vector<Path> paths_;
  std::unordered_map<const simgrid::s4u::Activity*, Active> active_;
  std::vector<simgrid::s4u::CommPtr> finished_;  // kept while SimGrid may still use them
};

}  // namespace ganymede::sim

#pragma once
// The SimGrid side of a fabric: flows of bytes over its links, and nothing with a latency.

#include <functional>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/engine/fabric_graph.hpp"

namespace ganymede {

/// One message over one of its ways.
struct SimGridFlow {
  int source, destination, way;
  double bytes, limit;
};

/// Hosts, links and routes, which are made when they are first needed: most pairs never are.
///
/// A pair of hosts has one route, so an endpoint has a host for each of the ways that its messages may be split over,
/// and for each rate to which a protocol limits a flow: SimGrid 3.32 ignores the rate of a message between hosts, but a
/// link of kind FATPIPE in the route gives every flow that much and no more.
class SimGridFlows {
 public:
  /// `limits`: rates of protocols that there may be, infinity included. One engine a process.
  SimGridFlows(const FabricGraph& fabric, int limits);

  /// Starts a flow now; `done` runs when its last byte has arrived.
  void start(const SimGridFlow& flow, std::function<void()> done);
  /// Until no timer and no flow is left.
  void run();

 private:
  struct Active {
    simgrid::s4u::CommPtr flow;
    std::function<void()> done;
  };

  std::size_t host(int endpoint, const SimGridFlow& flow);
  simgrid::s4u::Link* limiter(double limit);
  void finish(const simgrid::s4u::Activity& activity);

  const FabricGraph& fabric_;
  int ways_;
  int limits_;
  std::vector<double> limit_values_;
  std::map<double, simgrid::s4u::Link*> limiters_;
  std::vector<simgrid::s4u::Link*> spare_limiters_;
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  simgrid::s4u::NetZone* zone_ = nullptr;
  std::vector<simgrid::s4u::Link*> links_;
  std::vector<simgrid::s4u::Host*> hosts_;
  std::vector<std::unordered_set<int>> known_;  // by host: where it has a route to
  std::vector<Path> paths_;
  std::unordered_map<const simgrid::s4u::Activity*, Active> active_;
  std::vector<simgrid::s4u::CommPtr> finished_;
};

}  // namespace ganymede

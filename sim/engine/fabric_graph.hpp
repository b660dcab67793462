#pragma once
// The links between the GPUs of an allocation, as a graph that knows the way of every pair. No SimGrid here: the
// communication engines walk it, and so can a test.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"
#include "sim/engine/node_wiring.hpp"

namespace ganymede {

/// A way from one endpoint to another. Latencies add along it; a flow's rate is its max-min fair share of all of the
/// links, and at most `flow_limit`.
struct Path {
  std::vector<int> links;  ///< indices into FabricGraph::links(); each counts once, whatever the path
  Seconds latency;
  BytesPerSecond flow_limit{std::numeric_limits<double>::infinity()};  ///< of one flow, as of a TCP connection
  double share = 1;  ///< of a message's bytes; the paths of a pair sum to 1
  bool between_nodes = false;
};

/// Of a message that pays what a protocol adds, or is spared what it takes away; never below zero.
inline Seconds latency_of(const Path& path, const ProtocolCost& cost) {
  return std::max(Seconds{0}, path.latency + (path.between_nodes ? cost.between : cost.inside));
}

/// What an endpoint contributes to a collective besides its links. A switch adds in passing and launches nothing.
struct Endpoint {
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};  ///< moves 3 bytes a reduced byte
  Seconds launch{0};  ///< of the collective's kernel, once a rank and collective
};

/// Ranks come in the order of groups, nodes and GPUs; behind them come the switches that can reduce (topology.hpp).
class FabricGraph {
 public:
  /// ConfigError when an instance lacks a link that the allocation needs, or when endpoints stay without a way to each
  /// other.
  FabricGraph(const Platform& platform, const std::vector<NodeGroup>& groups);
  FabricGraph(const Platform& platform, const Instance& instance, int nodes, int gpus_per_node)
      : FabricGraph(platform, {NodeGroup{&instance, nodes, gpus_per_node}}) {}

  int ranks() const { return topology_.ranks; }
  const Topology& topology() const { return topology_; }
  const std::vector<DirectedLink>& links() const { return links_; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }  ///< topology().endpoints() of them

  /// The most ways that any pair has.
  int most_ways() const;

  /// Replaces `paths`, whose memory is reused, by the ways from one endpoint to another (at least one, two where
  /// unlike links are used together). O(length) time; precondition: two different endpoints.
  void paths(int source, int destination, std::vector<Path>& paths) const;

 private:
  class Builder;
  struct Node {
    int wiring = 0;
    int first_rank = 0;
    int first_link = 0;  ///< of its inside
    int first_nic = 0;   ///< of its NICs, which several nodes may share
  };

  int rail_of(const Wiring& wiring, int gpu) const;
  Duplex nic_of(const Node& node, int rail) const;
  void append_inside(int node, int from, int to, std::vector<Path>& paths) const;
  void append_across(int from_node, int to_node, Path& path) const;
  void append_torus(int source, int destination, Path& path) const;
  void switch_paths(int source, int destination, std::vector<Path>& paths) const;

  Topology topology_;
  std::vector<DirectedLink> links_;
  std::vector<Endpoint> endpoints_;
  std::vector<Wiring> wirings_;
  std::vector<Node> nodes_;
  std::vector<int> node_of_;  // by rank
  Fabric fabric_;
  int core_ = -1;                             // an oversubscribed switch's inside
  std::vector<std::vector<Duplex>> uplinks_;  // by level of a fat tree and group
  std::vector<Duplex> zones_;
  std::vector<int> torus_first_;  // by dimension: the first of its links, 2 a rank, forward and backward
};

}  // namespace ganymede

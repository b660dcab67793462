#pragma once
// The links between the GPUs of an allocation, as a graph that knows the paths of every pair of endpoints. No SimGrid
// here: both engines use the graph, and tests can.

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

namespace ganymede::sim {

/// What paths over different links may have in common.
struct PathKind {
  Seconds latency;  ///< the sum along the path
  BytesPerSecond flow_limit{
      std::numeric_limits<double>::infinity()};  ///< highest rate of one flow, such as a TCP connection
  /// Highest rate of one of the connections over which a protocol splits a message (ProtocolCost::connections).
  BytesPerSecond connection_limit{std::numeric_limits<double>::infinity()};
  double share = 1;  ///< part of a message's bytes; the paths of a pair sum to 1
  bool between_nodes = false;

  /// The highest rate of one message.
  BytesPerSecond limit(int connections = 1) const { return std::min(flow_limit, connections * connection_limit); }
};

/// A path from one endpoint to another. The rate of a flow on it is the flow's max-min fair share of all its links, and
/// at most limit().
struct Path : PathKind {
  std::vector<int> links;  ///< indices into FabricGraph::links()
};

/// The latency of a message on a path, including the latency that the protocol adds (negative: takes away); at least
/// zero.
inline Seconds latency_of(const PathKind& path, const ProtocolCost& cost) {
  return std::max(Seconds{0}, path.latency + (path.between_nodes ? cost.between : cost.inside));
}

/// The costs of an endpoint in a collective, besides its links. Switches add in passing and launch nothing.
struct Endpoint {
  BytesPerSecond memory_bandwidth{std::numeric_limits<double>::infinity()};  ///< a reduced byte moves 3 bytes
  Seconds launch{0};  ///< time to launch the collective's kernel, once for each rank and collective
};

/// Endpoints are the ranks, in the order of groups, nodes and GPUs, followed by the switches that can reduce
/// (topology.hpp).
class FabricGraph {
 public:
  /// Throws ConfigError if an instance lacks a link that the allocation needs, or if two endpoints have no path.
  FabricGraph(const platforms::Platform& platform, const std::vector<NodeGroup>& groups);
  FabricGraph(const platforms::Platform& platform, const platforms::Instance& instance, int nodes, int gpus_per_node)
      : FabricGraph(platform, {NodeGroup{&instance, nodes, gpus_per_node}}) {}

  int ranks() const { return topology_.ranks; }
  const Topology& topology() const { return topology_; }
  const std::vector<DirectedLink>& links() const { return links_; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }  ///< as many as topology().endpoints()

  /// The largest number of paths between two endpoints.
  int max_paths() const;

  /// The different limits of connections that paths may have.
  std::vector<BytesPerSecond> connection_limits() const;

  /// Replaces `paths` by those from one endpoint to another, which must differ; reuses its memory. There are several
  /// paths, which share a message, if links of different kinds are used together. Takes O(length) time.
  void paths(int source, int destination, std::vector<Path>& paths) const;

 private:
  class Builder;  // fabric_builder.cpp
  struct Node {
    int wiring = 0;
    int first_rank = 0;
    int first_link = 0;  ///< the first link inside the node
    int first_nic = 0;   ///< the first link of its NICs, which several nodes may share
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
  platforms::Fabric fabric_;
  int core_ = -1;                             // link inside an oversubscribed switch; -1: none
  std::vector<std::vector<Duplex>> uplinks_;  // links of a fat tree, by level and group of nodes
  std::vector<Duplex> zones_;                 // by zone
  std::vector<int> torus_first_;              // first link of each dimension; each rank has two, forward and backward
};

}  // namespace ganymede::sim

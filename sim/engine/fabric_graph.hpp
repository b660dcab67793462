#pragma once
// The links between the GPUs of an allocation, as a graph that knows the paths of every pair of endpoints. No SimGrid
// here: both engines use the graph, and tests can.

#include <optional>
#include <vector>

#include "platforms/platform.hpp"
#include "sim/collectives/topology.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/node_wiring.hpp"

namespace ganymede::sim {

/// Endpoints are the ranks, in the order of groups, nodes and GPUs, followed by the switches that can reduce
/// (topology.hpp).
class FabricGraph : public Network {
 public:
  /// Throws ConfigError if an instance lacks a link that the allocation needs, or if two endpoints have no path.
  FabricGraph(const platforms::Platform& platform, const std::vector<NodeGroup>& groups);
  FabricGraph(const platforms::Platform& platform, const platforms::Instance& instance, int nodes, int gpus_per_node)
      : FabricGraph(platform, {NodeGroup{&instance, nodes, gpus_per_node}}) {}

  int ranks() const { return topology_.ranks; }
  const Topology& topology() const { return topology_; }
  /// The curve that was measured on nodes of this kind, if all are of one kind.
  const std::optional<platforms::MeasuredCollective>& measured() const { return measured_; }
  const std::vector<DirectedLink>& links() const override { return links_; }
  const std::vector<Endpoint>& endpoints() const override { return endpoints_; }  ///< topology().endpoints() of them

  /// Appends all links that belong to a rank's place: those inside its node, its node's NICs, and those of the groups
  /// of nodes around it. False on a fabric without such groups, a torus or given routes.
  bool append_links_of(int rank, std::vector<int>& links) const;
  /// A number that two ranks share if they are at the same place in nodes of the same kind.
  int place_of(int rank) const;

  int max_paths() const override;
  std::vector<BytesPerSecond> connection_limits() const override;
  void paths(int source, int destination, std::vector<Path>& paths) const override;

 private:
  class Builder;  // fabric_builder.cpp
  struct Node {
    int wiring = 0;
    int first_rank = 0;
    int first_link = 0;  ///< the first link inside the node
    int first_nic = 0;   ///< the first link of its NICs, which several nodes may share
  };

  std::size_t pair(int source, int destination) const {
    return static_cast<std::size_t>(source) * node_of_.size() + static_cast<std::size_t>(destination);
  }
  int rail_of(const Wiring& wiring, int gpu) const;
  Duplex nic_of(const Node& node, int rail) const;
  void append_inside(int node, int from, int to, std::vector<Path>& paths) const;
  void append_across(int from_node, int to_node, Path& path) const;
  void append_torus(int source, int destination, Path& path) const;
  void append_route(int source, int destination, Path& path) const;
  void switch_paths(int source, int destination, std::vector<Path>& paths) const;

  Topology topology_;
  std::optional<platforms::MeasuredCollective> measured_;
  std::vector<DirectedLink> links_;
  std::vector<Endpoint> endpoints_;
  std::vector<Wiring> wirings_;
  std::vector<Node> nodes_;
  std::vector<int> node_of_;  // by rank
  platforms::Fabric fabric_;
  int core_ = -1;                             // link inside an oversubscribed switch; -1: none
  std::vector<std::vector<Duplex>> uplinks_;  // links of a fat tree, by level and group of nodes
  std::vector<Duplex> zones_;                 // by zone
  std::vector<int> route_of_;                 // by pair(): index in the platform's routes; empty: no routed fabric
  std::vector<int> torus_first_;              // first link of each dimension; each rank has two, forward and backward
};

}  // namespace ganymede::sim

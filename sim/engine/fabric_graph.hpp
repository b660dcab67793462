#pragma once
// The links between the GPUs of an allocation, as a graph that knows the route of every pair. No SimGrid here: the
// communication engine turns it into a platform, and a test can walk it.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede {

/// One direction of a full-duplex link: flows that cross it share its bandwidth max-min fairly.
struct DirectedLink {
  std::string name;
  BytesPerSecond bandwidth;
};

/// Latencies add along a route; its bandwidth is the fair share of its narrowest link.
struct Route {
  std::vector<int> links;  ///< indices into FabricGraph::links()
  Seconds latency;
};

/// `nodes` instances of one type, of each the first `gpus_per_node` GPUs; rank r is GPU r % gpus_per_node of node r /
/// gpus_per_node.
///
/// Inside a node a message crosses the sender's and the receiver's GPU link and pays that link's latency once; without
/// GPU links it goes up and down the host links and pays both. Between nodes it crosses NIC, fabric and NIC; the host
/// links too where the NIC says gpu_direct: false. GPUs of a node share its NIC. A switch at oversubscription k > 1
/// gives all nodes together 1/k of the sum of their NICs.
class FabricGraph {
 public:
  /// ConfigError when the instance lacks a link that the allocation needs.
  FabricGraph(const Platform& platform, const Instance& instance, int nodes, int gpus_per_node);

  int ranks() const { return topology_.ranks; }
  const Topology& topology() const { return topology_; }
  const std::vector<DirectedLink>& links() const { return links_; }
  Route route(int source, int destination) const;  ///< precondition: two different ranks

 private:
  /// The two directions of one link.
  struct Duplex {
    int up = -1;
    int down = -1;
  };
  Duplex add_duplex(const std::string& name, BytesPerSecond bandwidth);

  Topology topology_;
  std::vector<DirectedLink> links_;
  std::vector<Duplex> gpu_;   // by rank: its GPU link or, where there is none, its host link
  std::vector<Duplex> host_;  // by rank; only where messages between nodes are staged through the host
  std::vector<Duplex> nic_;   // by node
  int core_ = -1;             // an oversubscribed switch's inside
  Seconds inside_latency_;
  Seconds between_latency_;
};

}  // namespace ganymede

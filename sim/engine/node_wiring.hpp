#pragma once
// The links inside a node: ports of a switch, PCIe trees, meshes.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede::sim {

/// One direction of a full-duplex link, or a resource that both directions share. Flows that cross it share its
/// bandwidth max-min fairly.
struct DirectedLink {
  std::string name;  ///< such as "nic.3.up" or "gpu_link.0.down@3": the number of the node follows the '@'
  BytesPerSecond bandwidth;
};

/// Nodes of one instance type; the first `gpus_per_node` GPUs of each are used.
struct NodeGroup {
  const platforms::Instance* instance = nullptr;
  int nodes = 1;
  int gpus_per_node = 1;
};

/// The two directions of one link, as indices of links; -1: none.
struct Duplex {
  int up = -1;
  int down = -1;
};

/// A path between two GPUs of a node. Links are numbered from the node's first link.
struct LocalPath {
  std::vector<int> links;
  Seconds latency;
  double share = 1;  ///< part of a message's bytes; the paths of a pair sum to 1
};

/// The links and paths of one node; all nodes of a group have the same ones.
struct Wiring {
  const platforms::Instance* instance = nullptr;
  int gpus = 0;
  std::vector<DirectedLink> links;            ///< inside one node
  std::vector<std::vector<int>> rings;        ///< link-disjoint cycles of the GPUs, for a mesh
  std::vector<std::vector<LocalPath>> paths;  ///< by pair(source, destination)
  std::vector<int> gpu_up, gpu_down;          ///< the port of each GPU, numbered from the node's first link
  std::vector<int> host_up, host_down;        ///< the host link of each GPU; empty: no message crosses the host
  std::vector<int> nic_up, nic_down;          ///< by NIC, numbered from the node's first NIC link
  Seconds to_switch;                          ///< latency from a GPU to the switch inside the node

  /// The index in `paths` of a pair of GPUs.
  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(gpus) + static_cast<std::size_t>(to);
  }
};

/// Lays out the inside of a node. With `leaves_node`, messages to other nodes cross the host links if the NIC says
/// gpu_direct: false. Throws ConfigError if a mesh does not join all of its GPUs.
Wiring wire_node(const platforms::Platform& platform, const NodeGroup& group, bool leaves_node);

}  // namespace ganymede::sim

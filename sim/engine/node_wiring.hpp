#pragma once
// The inside of a node: ports, PCIe trees, meshes.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede {

/// One direction of a full-duplex link, or a resource that both directions share: flows that cross it share its
/// bandwidth max-min fairly.
struct DirectedLink {
  std::string name;
  BytesPerSecond bandwidth;
};

/// Nodes of one instance type, of each the first `gpus_per_node` GPUs.
struct NodeGroup {
  const Instance* instance = nullptr;
  int nodes = 1;
  int gpus_per_node = 1;
};

/// The two directions of one link.
struct Duplex {
  int up = -1;
  int down = -1;
};

/// A way inside a node between two of its GPUs, in links counted from the node's first.
struct InsideWay {
  std::vector<int> links;
  Seconds latency;
  double share = 1;
};

/// What nodes of one group have in common.
struct Wiring {
  const Instance* instance = nullptr;
  int gpus = 0;
  std::vector<DirectedLink> links;           ///< of the inside of one node
  std::vector<std::vector<int>> rings;       ///< of a mesh: link-disjoint cycles of its GPUs
  std::vector<std::vector<InsideWay>> ways;  ///< by pair(source, destination)
  std::vector<int> gpu_up, gpu_down;         ///< the port of each GPU, from the node's first link
  std::vector<int> host_up, host_down;       ///< empty: no message leaves through the host
  std::vector<int> nic_up, nic_down;         ///< by rail; from the node's first NIC link
  Seconds to_switch;                         ///< from a GPU to the switch inside the node

  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(gpus) + static_cast<std::size_t>(to);
  }
};

/// `leaves_node`: messages to other nodes cross the host links where the NIC says gpu_direct: false. ConfigError where
/// a mesh does not join all of its GPUs.
Wiring wire_node(const Platform& platform, const NodeGroup& group, bool leaves_node);

}  // namespace ganymede

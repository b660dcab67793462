#include "sim/collectives/host_paths.hpp"

#include <algorithm>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

// Fitted to the plateau of an nccl-tests all-reduce on two RTX 2080 Ti without peer access, PCIe 3
// (Anthony-Hoo/Anthony-Hoo.github.io, AutoDL_Multi-GPU_Interconnection_Test.md @37e805e8e56f): 4.00 GB/s from 128 MiB
// on, where PCIe itself copies 12 GB/s. Not used for that, two A40 on PCIe 4 with NCCL_P2P_DISABLE=1 reach 3.6 to 4.0,
// and each of two pairs of RTX 3090 3.9 (eth-easl/sailor, intra_node_bandwidths.json @cf2c8e3cc53c): the kernels that
// read host memory are the limit, and not the bus.
BytesPerSecond nccl_rate_through_host() { return BytesPerSecond{4.0e9}; }

// kOneSocket and kGrowth are fitted to the 2.06, 2.77, 3.28 and 3.75 GB/s of NCCL 2.3.7 with 1, 2, 4 and 8 sockets,
// each with a thread of its own (NVIDIA/nccl issue 209, comment of 2019-04-20); each of them is predicted from the
// other three within 4 to 16 %. NCCL 2.4.2, with one thread for all rings, stays at 1.45 to 1.95. V100 VMs with one GPU
// and 8 sockets, which were not used, reach 3.9 GB/s and are predicted at 3.9 (the same issue, 2019-06-04). kSharedHost
// is the mean quotient of that comment's VMs with eight GPUs to the prediction: 1.85 to 3.2 GB/s with 4 sockets, 2.8
// to 4.4 with 12; each is predicted from the other within 11 %.
BytesPerSecond nccl_socket_rate(const NcclMachine& machine, bool several_gpus) {
  constexpr BytesPerSecond kOneSocket{2.16e9};
  constexpr double kGrowth = 0.284, kSharedHost = 0.61;
  const double growth = portable_exp(kGrowth * portable_log(machine.socket_connections));
  return (several_gpus ? kSharedHost : 1) * growth * kOneSocket;
}

ProtocolCost with_host_limits(const Topology& topology, int lanes, ProtocolCost cost, double rate_between,
                              bool one_connection) {
  NcclMachine machine = topology.nccl;
  if (one_connection) machine.socket_connections = std::min(machine.socket_connections, 1);
  if (!machine.peer_to_peer && !machine.inside_measured && topology.gpus_per_node > 1) {
    // Over several nodes each NIC's lanes pass through every GPU of a node; inside one node all lanes do.
    const int sharing = topology.nodes() == 1 ? lanes : std::max(1, lanes / topology.rails);
    cost.flow_inside = std::min(cost.flow_inside, nccl_rate_through_host() / sharing);
  }
  if (topology.nodes() > 1 && machine.sockets && machine.socket_connections > 0) {
    const double nics_of_rail = static_cast<double>(machine.nics) / std::max(1, topology.rails);
    const int sharing = std::max(1, lanes / topology.rails);
    const BytesPerSecond rate = std::max(1.0, nics_of_rail) * nccl_socket_rate(machine, topology.gpus_per_node > 1);
    cost.flow_between = std::min(cost.flow_between, rate_between * rate / sharing);
    cost.connections = machine.socket_connections;
  }
  return cost;
}

}  // namespace ganymede::sim

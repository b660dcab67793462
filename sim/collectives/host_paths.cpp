#include "sim/collectives/host_paths.hpp"

#include <algorithm>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

// Two GPUs: 4.0 GB/s on RTX 2080 Ti (Anthony-Hoo/Anthony-Hoo.github.io, AutoDL_Multi-GPU_Interconnection_Test.md), 3.8
// on A40 with NCCL_P2P_DISABLE=1 (hardware notes of a blog), 3.9 on pairs of RTX 3090 (eth-easl/sailor,
// intra_node_bandwidths.json), 2.9 on RTX 4090 (kalavai-net/kalavai-client, scripts/README.md: 2.2 below one
// bridge, 3.9 across sockets; 2.6 on four), 3.9 on PCIe 3 (NVIDIA/nccl issue 384), 3.9 on a pair without its NVLink
// and 1.4 on four such GPUs across sockets (a page on multi-GPU topologies). Four A100 of a DGX with
// NCCL_P2P_DISABLE=1 5.2 (the same page), four K80 of an Azure VM 2.55 (a job of Azure ML), eight RTX 4090 beside two
// EPYC 7542 with memory of their own 14.5 (blog.chlc.cc, 2025-02-07): kOlder is the geometric mean of these nine, each
// counted once, and 3.4 to 4.3 where one is left out; it is 7 % off in the median then, and 4.2 times on the eight RTX
// 4090. More GPUs are not slower: hosts differ more than numbers. On PCIe 5, four RTX 5090 reach 27.3 beside an EPYC
// Genoa (NVIDIA/nccl-tests issue 287) and eight 28 beside Xeon 8480 (NVIDIA/nccl issue 1639): kPcie5 is their mean.
BytesPerSecond nccl_rate_through_host(BytesPerSecond pcie) {
  constexpr BytesPerSecond kOlder{4.0e9}, kPcie5{27.6e9}, kFromPcie5{40e9};
  return pcie >= kFromPcie5 ? kPcie5 : kOlder;
}

// kOneSocket and kGrowth are fitted to the 2.06, 2.77, 3.28 and 3.75 GB/s of NCCL 2.3.7 with 1, 2, 4 and 8 sockets,
// each with a thread of its own (NVIDIA/nccl issue 209, comment of 2019-04-20); each of them is predicted from the
// other three within 4 to 16 %. Not used for that, V100 VMs with one GPU and 8 sockets reach 3.9 GB/s and are predicted
// at 3.9 (the same issue, 2019-06-04), and two nodes with NCCL's one socket 2.0 (eks_2_tcp in bench/nccl_logs.py).
// Nodes of several GPUs are limited by the host, whatever the sockets, in each direction of a NIC: 2.3 GB/s (VMs of
// issue 209 with 4 and 12 sockets, 1.85 and 2.8), 1.7 to 3.15, by the algorithm (Azure/aks-rdma-infiniband, sockets
// over InfiniBand), 4 to 6 with one (issue 450), and 2 to 3.5 (Polaris): kSharedHost is the geometric mean of the
// middles of the four sources, and 2.4 to 3.1 where one is left out.
BytesPerSecond nccl_socket_rate(const NcclMachine& machine, bool several_gpus) {
  constexpr BytesPerSecond kOneSocket{2.16e9}, kSharedHost{2.9e9};
  constexpr double kGrowth = 0.284;
  return several_gpus ? kSharedHost : portable_exp(kGrowth * portable_log(machine.socket_connections)) * kOneSocket;
}

ProtocolCost with_host_limits(const Topology& topology, int lanes, ProtocolCost cost, double rate_between,
                              bool one_connection) {
  NcclMachine machine = topology.nccl;
  if (one_connection) machine.socket_connections = std::min(machine.socket_connections, 1);
  if (!machine.peer_to_peer && !machine.inside_measured && topology.gpus_per_node > 1) {
    // Over several nodes each NIC's lanes pass through every GPU of a node; inside one node all lanes do.
    const int sharing = topology.nodes() == 1 ? lanes : std::max(1, lanes / topology.rails);
    cost.flow_inside = std::min(cost.flow_inside, nccl_rate_through_host(machine.inside_bandwidth) / sharing);
  }
  // Without GPUDirect one GPU and its proxy stage 3.1 GB/s over EFA, of 6 and 12 GB/s of NICs (g4dn_2_efa in
  // bench/nccl_logs.py); eks_2_efa, whose NIC has 3.1, is as fast as that.
  constexpr BytesPerSecond kStagedOverEfa{3.13e9};
  if (topology.nodes() > 1 && topology.gpus_per_node == 1 && machine.efa && !machine.gpu_direct)
    cost.flow_between = std::min(cost.flow_between, rate_between * kStagedOverEfa / lanes);
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

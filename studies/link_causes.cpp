#include "studies/link_causes.hpp"

#include <algorithm>
#include <array>

#include "sim/engine/collective_machine.hpp"

namespace ganymede::studies {
namespace {

using platforms::GpuLinks;
using platforms::Nic;

constexpr double kGbit = 1e9 / 8;

bool is_network(const CheckedMachine& machine) { return machine.nodes > 1 && machine.instance.nic; }
bool has_tcp(const CheckedMachine& machine) { return machine.instance.nic->transport == Nic::Transport::tcp; }
bool has_nvlink(const CheckedMachine& machine) {
  return machine.instance.gpu_links && machine.instance.gpu_links->kind != GpuLinks::Kind::pcie;
}

bool fewer_nics(CheckedMachine& machine, double share) {
  if (!is_network(machine)) return false;
  Nic& nic = *machine.instance.nic;
  const int left = std::max(1, static_cast<int>(nic.count * share));
  if (left == nic.count) return false;
  nic.count = left;
  return true;
}

/// Messages cross the host links of both ends. With `share` below 1 several GPUs and NICs share one, which each message
/// takes twice: a quarter is left where two GPUs and two NICs are below a PCIe switch, as in a DGX A100.
bool no_gpu_direct(CheckedMachine& machine, double share) {
  if (!is_network(machine) || !machine.instance.nic->gpu_direct || !machine.instance.host_link) return false;
  machine.instance.nic->gpu_direct = false;
  machine.instance.host_link->bandwidth = share * machine.instance.host_link->bandwidth;
  return true;
}

/// TCP over one interface of `gbit`, or over one of the NICs if it is 0.
bool tcp_fallback(CheckedMachine& machine, double gbit) {
  if (!is_network(machine) || has_tcp(machine)) return false;
  Nic& nic = *machine.instance.nic;
  const BytesPerSecond all = nic.count * nic.bandwidth;
  if (gbit > 0) nic.bandwidth = BytesPerSecond{gbit * kGbit};
  if (nic.bandwidth > 0.7 * all) return false;
  sim::use_tcp(machine.instance);
  nic.count = 1;
  return true;
}

bool slow_interface(CheckedMachine& machine, double gbit) {
  if (!is_network(machine) || !has_tcp(machine)) return false;
  Nic& nic = *machine.instance.nic;
  if (BytesPerSecond{gbit * kGbit} > 0.7 * (nic.count * nic.bandwidth)) return false;
  nic.bandwidth = BytesPerSecond{gbit * kGbit};
  nic.count = 1;
  return true;
}

/// GPUs reach each other through their host links, of which `share` is left to each; where it is 1 those with NVLink do
/// so without the host's memory, peer to peer.
bool no_peer_to_peer(CheckedMachine& machine, double share) {
  if (machine.gpus_per_node < 2 || !machine.instance.host_link) return false;
  platforms::Link& host = *machine.instance.host_link;
  if (!machine.instance.gpu_links) {  // the description has none already, and their way through the host may be slower
    host.bandwidth = share * host.bandwidth;
    return share < 1;
  }
  const bool direct = share >= 1 && has_nvlink(machine);
  machine.instance.gpu_links.reset();
  if (direct) {
    machine.instance.gpu_links.emplace();
    machine.instance.gpu_links->kind = GpuLinks::Kind::pcie;
    machine.instance.gpu_links->bandwidth = host.bandwidth, machine.instance.gpu_links->latency = 2 * host.latency;
  } else {
    host.bandwidth = 2 * share * host.bandwidth;
  }
  return true;
}

/// Half of the GPUs on each socket, with `share` of a slot between them.
bool crosses_sockets(CheckedMachine& machine, double share) {
  if (machine.gpus_per_node < 2 || has_nvlink(machine) || !machine.instance.host_link) return false;
  const platforms::Link& host = *machine.instance.host_link;
  GpuLinks links = machine.instance.gpu_links.value_or(GpuLinks{});
  if (!machine.instance.gpu_links) links.bandwidth = host.bandwidth, links.latency = 2 * host.latency;
  links.kind = GpuLinks::Kind::pcie;
  links.numa = {{}, {}};
  for (int gpu = 0; gpu < machine.gpus_per_node; ++gpu)
    links.numa[2 * gpu < machine.gpus_per_node ? 0 : 1].push_back(gpu);
  links.numa_bandwidth = share * links.bandwidth;
  machine.instance.gpu_links = links;
  return true;
}

/// GPUs below one PCIe switch share its uplink, and messages go through it.
bool shares_switch(CheckedMachine& machine, double share) {
  if (machine.gpus_per_node < 3 || has_nvlink(machine) || !machine.instance.host_link) return false;
  machine.instance.gpu_links.reset();
  machine.instance.host_link->bandwidth = share * machine.instance.host_link->bandwidth;
  return true;
}

/// The last node's NICs, or the slots of a machine, have `share` of their bandwidth left.
bool slow_rank(CheckedMachine& machine, double share) {
  if (is_network(machine)) {
    machine.last_node = machine.instance;
    machine.last_node->nic->bandwidth = share * machine.last_node->nic->bandwidth;
    return true;
  }
  if (has_nvlink(machine) || !machine.instance.host_link) return false;
  machine.instance.host_link->bandwidth = share * machine.instance.host_link->bandwidth;
  if (machine.instance.gpu_links) machine.instance.gpu_links->bandwidth = share * machine.instance.gpu_links->bandwidth;
  return true;
}

template <std::size_t kCount>
bool force(CheckedMachine& machine, const std::array<std::string_view, kCount>& names, double index) {
  machine.forced = names[static_cast<std::size_t>(index)];
  return true;
}
bool forced_algorithm(CheckedMachine& machine, double index) {
  return force(machine, std::array<std::string_view, 4>{"ring", "tree", "nvls", "nvls-tree"}, index);
}
bool forced_protocol(CheckedMachine& machine, double index) {
  return force(machine, std::array<std::string_view, 3>{"ll", "ll128", "simple"}, index);
}

// What NCCL prints: NVIDIA/nccl src/transport/*.cc, src/init.cc and src/misc/param.cc. What shows a cause: the
// troubleshooting page of NVIDIA's NCCL user guide (GPU Direct, PCI Access Control Services, shared memory).

// How often a cause is the answer where the log's words do not say it, counted in the first 44 situations of
// tests/studies/situations.json: GPUDirect five times, one NIC once, some NICs never.

std::vector<LinkCause> causes_between_nodes() {
  return {
      {.name = "one-nic",
       .says = "one NIC of a node carries what all should",
       .shows =
           "NCCL_DEBUG=INFO lists the NICs after \"NET/IB : Using\" or \"NET/OFI\"; NCCL_IB_HCA and containers hide "
           "NICs; nvidia-smi topo -m",
       .change = fewer_nics,
       .degrees = {0},
       .counts_nics = true},
      {.name = "some-nics",
       .says = "only a half or a quarter of a node's NICs carries traffic",
       .shows = "NCCL_DEBUG=INFO lists the NICs that are used; NCCL_IB_HCA, NCCL_CROSS_NIC and PXN (NCCL_PXN_DISABLE) "
                "say which GPU may use which; ibstat shows ports that are down",
       .change = fewer_nics,
       .degrees = {0.5, 0.25},
       .weight = 0.5,
       .counts_nics = true,
       .signs = {"NCCL_PXN_DISABLE set by environment to 1", "NCCL_PXN_DISABLE=1"}},
      {.name = "no-gpu-direct",
       .says = "without GPUDirect RDMA messages between nodes pass through host memory or the root complex",
       .shows = "NCCL_DEBUG=INFO prints \"via NET/IB/0/GDRDMA\" where it works; lsmod | grep nvidia_peermem; ACS on "
                "(lspci -vvv | grep ACSCtl shows SrcValid+) or an IOMMU sends traffic through the root complex",
       .change = no_gpu_direct,
       .degrees = {1, 0.5, 0.25},
       .weight = 3,
       .signs = {"GPU Direct RDMA Disabled", "NCCL_NET_GDR_LEVEL set by environment to 0", "NCCL_NET_GDR_LEVEL=0",
                 "NCCL_IB_CUDA_SUPPORT=0", "NCCL_NET_GDR_LEVEL=LOC"},
       .against = {"/GDRDMA"},
       .lacks = {"via NET/IB", "GDRDMA"}},
      {.name = "tcp-fallback",
       .says = "NCCL fell back to TCP sockets",
       .shows =
           "NCCL_DEBUG=INFO prints \"NET/Socket\" in place of \"NET/IB\" or \"NET/OFI\"; NCCL_IB_DISABLE, a missing "
           "network plugin or RDMA devices that the container does not see",
       .change = tcp_fallback,
       .degrees = {0, 100, 25, 10, 1},
       .signs = {"via NET/Socket", "Using network Socket", "Using internal Network Socket", "NET/Socket : Using",
                 "No device found", "NCCL_IB_DISABLE set by environment to 1", "NCCL_IB_DISABLE=1", "NCCL_NET=Socket",
                 "FI_PROVIDER=tcp", "Failed to open libibverbs"},
       .against = {"via NET/IB", "via NET/AWS", "via NET/OFI", "Using network IB", "Selected Provider is efa",
                   "Selected provider is efa", "Using network AWS", "Using internal Network IB", "FasTrak"}},
      {.name = "slow-interface",
       .says = "traffic takes a slower interface than the machine's fastest",
       .shows = "NCCL_DEBUG=INFO names it after \"NET/Socket : Using\"; NCCL_SOCKET_IFNAME chooses; iperf3 measures it",
       .change = slow_interface,
       .degrees = {50, 25, 10, 1}}};
}

std::vector<LinkCause> other_causes() {
  return {
      {.name = "no-p2p",
       .says = "GPUs of a node do not reach each other directly: neither NVLink nor peer-to-peer over PCIe",
       .shows =
           "NCCL_DEBUG=INFO prints \"via SHM\" in place of \"via P2P\"; nvidia-smi topo -p2p r; NCCL_P2P_DISABLE, ACS "
           "or an IOMMU, a fabric manager that does not run, a container without the other GPUs",
       .change = no_peer_to_peer,
       .degrees = {1, 0.5, 0.25},
       .within_node = true,
       .signs = {"via SHM", "NCCL_P2P_DISABLE set by environment to 1", "NCCL_P2P_DISABLE=1",
                 "P2P is disabled between connected GPUs", "NCCL_P2P_LEVEL=LOC",
                 "NCCL_P2P_LEVEL set by environment to LOC"},
       .against = {"via P2P", "NVLS multicast support is available"}},
      {.name = "socket-crossing",
       .says = "messages cross between the sockets of the node",
       .shows = "nvidia-smi topo -m shows SYS between GPUs; on one socket (CUDA_VISIBLE_DEVICES) it is faster",
       .change = crosses_sockets,
       .degrees = {0.5, 0.25},
       .within_node = true},
      {.name = "pcie-switch",
       .says = "GPUs share the uplink of a PCIe switch",
       .shows = "nvidia-smi topo -m shows PIX or PXB; with one GPU for each switch it is faster; ACS sends what could "
                "stay below the switch through its uplink",
       .change = shares_switch,
       .degrees = {0.5, 0.25},
       .within_node = true},
      {.name = "slow-rank",
       .says = "one rank is slower than the others: its slot, its cable or its NIC",
       .shows = "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv under load; ibstat; "
                "the same test without one node after the other",
       .change = slow_rank,
       .degrees = {0.5, 0.25, 0.125},
       .weight = 0.3},
      {.name = "forced-algorithm",
       .says = "an algorithm is forced that is slow here",
       .shows = "NCCL_DEBUG=INFO prints \"NCCL_ALGO set by environment\"; env | grep NCCL_; /etc/nccl.conf",
       .change = forced_algorithm,
       .degrees = {0, 1, 2, 3},
       .weight = 0.3,
       .settings = {{"NCCL_ALGO"},
                    {"NCCL_NVLS_ENABLE=0", "^nvls,nvlstree"},
                    {"NCCL_NVLS_ENABLE set by environment to 0", "^nvls,nvlstree"},
                    {"NCCL_TREE_THRESHOLD=0", "ring"},
                    {"NCCL_TREE_THRESHOLD set by environment to 0", "ring"}},
       .values = {"ring", "tree", "nvls", "nvlstree", "collnet", "collnetdirect", "collnetchain", "pat"}},
      {.name = "forced-protocol",
       .says = "LL or LL128 is used at large sizes, or another protocol is forced",
       .shows = "NCCL_DEBUG=INFO prints \"NCCL_PROTO set by environment\"; env | grep NCCL_; unset NCCL_PROTO",
       .change = forced_protocol,
       .degrees = {0, 1, 2},
       .weight = 0.3,
       .settings = {{"NCCL_PROTO"}},
       .values = {"ll", "ll128", "simple"}}};
}

}  // namespace

std::span<const LinkCause> link_causes() {
  static const std::vector<LinkCause> table = [] {
    std::vector<LinkCause> all = causes_between_nodes();
    for (LinkCause& cause : other_causes()) all.push_back(std::move(cause));
    return all;
  }();
  return table;
}

}  // namespace ganymede::studies

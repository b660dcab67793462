#pragma once
// Which algorithm and protocol NCCL takes for a size on a machine: its own cost model, which it uses to rank choices.
// Its times are estimates; the schedule that is planned from a choice gives the time (nccl.cpp).
//
// Source of all constants: NVIDIA/nccl src/graph/tuning.cc and topo.h at 5067397c2676 (June 2026), and for earlier
// versions the same file of theirs.

#include <optional>
#include <string>

#include "sim/collectives/topology.hpp"

namespace ganymede {

struct NcclVersion {
  int major = 2, minor = 28;
  bool operator==(const NcclVersion&) const = default;
};

enum class NcclAlgorithm { ring, tree, nvls };
enum class NcclProtocol { ll, ll128, simple };
std::string_view to_string(NcclAlgorithm algorithm);  ///< "ring", "tree", "nvls"
std::string_view to_string(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// What a user forces, as NCCL_ALGO and NCCL_PROTO do; and which NCCL.
struct NcclOptions {
  NcclVersion version;
  std::optional<NcclAlgorithm> algorithm;
  std::optional<NcclProtocol> protocol;
  bool any_protocol = false;  ///< also those that the network's plugin forbids by itself
};

/// "", "2.18.3", "2.9.9/ring", "ring/simple", "any": parts in any order, separated by '/'. Nullopt: not understood.
std::optional<NcclOptions> parse_nccl_options(const std::string& variant);

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  Seconds estimate;  ///< the tuner's own
};

/// The choice with the least estimate among those that are enabled; nullopt where what was forced is not enabled.
std::optional<NcclChoice> choose_nccl(const Topology& topology, std::int64_t bytes, const NcclOptions& options);

/// Not empty where the constants of that version were not read.
std::string nccl_version_note(NcclVersion version);

// What the schedule needs of the same tables.

/// Of a kernel: 6.6, 14.0 and 8.4 us for a ring with LL, LL128 and Simple.
Seconds nccl_base_latency(NcclAlgorithm algorithm, NcclProtocol protocol);
/// Of one hop inside a node.
Seconds nccl_inside_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol);
/// Of one hop between nodes, the NIC's own latency included, which Simple pays twice: its receiver grants the buffer.
Seconds nccl_between_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol);
/// By how much all latencies of a ring with Simple count more between several nodes, where the size fills its channels.
double nccl_plateau(const Topology& topology, std::int64_t bytes, NcclAlgorithm algorithm, NcclProtocol protocol);
/// Channels that NCCL opens, roughly: its logs say 24 on a DGX A100 and 12 on a DGX-1, one for each 10 GB/s of a GPU's
/// links; two on PCIe and for each NIC.
int nccl_channels(const Topology& topology);
/// Bus bandwidth of the protocol as a share of Simple's.
double nccl_bandwidth_share(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol,
                            NcclVersion version);

}  // namespace ganymede

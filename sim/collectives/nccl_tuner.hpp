#pragma once
// The cost model by which NCCL chooses an algorithm and a protocol for a size on a machine. The model's times only rank
// the choices; the schedule that is planned from a choice gives the time (schemes/nccl.cpp).
//
// Source of all constants: NVIDIA/nccl src/graph/tuning.cc and topo.h at 5067397c2676 (June 2026); for earlier versions
// the same files of those versions.

#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/topology.hpp"

namespace ganymede::sim {

struct NcclVersion {
  int major = 2, minor = 28;
  bool is_known() const { return major == 2 && 4 <= minor && minor <= 28; }
  /// The minor number of this or the nearest version 2.x.
  int known_minor() const { return major < 2 ? 0 : major > 2 ? 28 : minor; }
  bool operator==(const NcclVersion&) const = default;
};

enum class NcclAlgorithm { ring, tree, nvls, nvls_tree };
enum class NcclProtocol { ll, ll128, simple };
std::string_view to_string(NcclAlgorithm algorithm);  ///< "ring", "tree", "nvls", "nvls-tree"
std::string_view to_string(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// The version of NCCL, and what a user forces as with NCCL_ALGO and NCCL_PROTO.
struct NcclOptions {
  NcclVersion version;
  std::optional<NcclAlgorithm> algorithm;
  std::optional<NcclProtocol> protocol;
  bool any_protocol = false;  ///< true: allows protocols that the network's plugin forbids by default too
  std::string month;          ///< names the version, as the newest in it, if not empty
};

/// Parses parts in any order that are separated by '/': "", "2.18.3", "2021-03", "2.9.9/ring", "ring/simple", "any".
/// Nullopt for bad input, and for two versions, algorithms or protocols. A month from 2019 on names the newest version
/// in it.
/// Without a version it is 2.`minor`.
std::optional<NcclOptions> parse_nccl_options(const std::string& variant, int minor = NcclVersion().minor);
/// The same on a machine, whose platform may state a version.
std::optional<NcclOptions> parse_nccl_options(const std::string& variant, const NcclMachine& machine);

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  Seconds estimate;  ///< by the tuner's cost model
};

/// All choices that are enabled on the machine and not excluded by `options`.
std::vector<NcclChoice> nccl_choices(const Topology& topology, std::int64_t bytes, const NcclOptions& options);
/// Returns the choice of the network's plugin (nccl_plugin.hpp), else the enabled one with the least estimate; nullopt
/// if the forced algorithm or protocol is not enabled on the machine.
std::optional<NcclChoice> choose_nccl(const Topology& topology, std::int64_t bytes, const NcclOptions& options);

/// Why no version is taken for the month, in which there will be newer ones than are known; else "".
std::string why_no_version(const NcclOptions& options);

/// A note for results if the version is that of a month, or if its constants are not known; else "".
std::string nccl_version_note(const NcclOptions& options);

// The functions below give costs from the same tables to the schedule that follows a choice.

/// True if NVLinks join the GPUs of a node.
bool has_nvlink(const NcclMachine& machine);

/// The latency of starting a kernel: 6.6, 14.0 and 8.4 us for a ring with LL, LL128 and Simple.
Seconds nccl_base_latency(NcclAlgorithm algorithm, NcclProtocol protocol);
/// The latency of one hop inside a node.
Seconds nccl_inside_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol);
/// The latency of one hop between nodes, including the NIC's. Simple adds the network's rendezvous, or, over sockets,
/// the NIC's latency once more.
Seconds nccl_between_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol);
/// The factor by which the tuner multiplies all latencies of a ring with Simple over several nodes, for sizes that fill
/// its channels; else 1.
double nccl_plateau(const Topology& topology, std::int64_t bytes, NcclAlgorithm algorithm, NcclProtocol protocol);
/// The number of channels that NCCL opens, roughly: one for each 10 GB/s of a GPU's NVLinks (its logs say 24 on a DGX
/// A100 and 12 on a DGX-1), two on PCIe, and at most two for each NIC. Eight H100 have 24 too (a log of p5.48xlarge in
/// aws-samples/awsome-distributed-training: "24 coll channels, 16 nvls channels").
int nccl_channels(const Topology& topology);
/// The bytes of each rank that a reduction in the switches of a node (NVLS) sums in a second, before losses by
/// pipelining. A GPU sends its bytes to the switch and multicasts its part of the sum, and receives the same: 1 + 1/n
/// times the bytes in each direction, at a share of its NVLinks' rate.
BytesPerSecond nccl_switch_rate(const Topology& topology);
/// The highest bus bandwidth of LL that the tuner counts on, by generation inside a node.
BytesPerSecond nccl_ll_rate(const Topology& topology);
/// The bus bandwidth of an algorithm and a protocol, as a share of a ring's with Simple. Reductions in switches have a
/// rate of their own (nccl_switch_rate); their share is 1.
double nccl_bandwidth_share(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol,
                            NcclVersion version);

}  // namespace ganymede::sim

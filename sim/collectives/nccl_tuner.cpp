#include "sim/collectives/nccl_tuner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "common/units.hpp"
#include "sim/collectives/nccl_plugin.hpp"

namespace ganymede::sim {
namespace {

using PerProtocol = std::array<double, 3>;  // LL, LL128, Simple

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr PerProtocol kBaseTree{6.8, 14.0, 8.4}, kBaseRing{6.6, 14.0, 8.4};
constexpr PerProtocol kNvlinkTree{0.6, 1.25, 4.0}, kNvlinkRing{0.6, 1.9, 3.4};
constexpr PerProtocol kPcieTree{1.0, 1.9, 4.0}, kPcieRing{1.0, 2.5, 5.7};
constexpr PerProtocol kNetTree{5.0, 8.5, 14.0}, kNetRing{2.7, 4.0, 14.0};
constexpr double kNvlsHop = 25, kNetNvlsTree = 20.9;

/// The share of a GPU's NVLink rate that reductions in the switches reach. Hopper's is fitted to all-reduces of 8 GiB
/// on 5, 6, 7 and 8 of eight H200 (stas00/ml-engineering network/README.md: 311, 305, 307 and 304 GB/s of 370.8 in each
/// direction). Blackwell's is that of 32 GiB on eight GB200 of a rack (oracle-quickstart/oci-hpc-oke, README: 484 GB/s
/// of 721.8). The tuner assumes 0.85 and 0.74.
constexpr double kSwitchShareHopper = 0.827, kSwitchShareBlackwell = 0.754;

/// The share of its bandwidth that a tree reaches at 2^(6 + i) bytes; a row for each protocol.
constexpr std::array<std::array<double, 24>, 3> kTreeBySize{
    {{1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
      0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
      0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
      0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9}}};

/// The logarithm to base 2, rounded down, as NCCL calculates it. Requires a number above zero.
int log2_below(std::int64_t number) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(number))) - 1; }

std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

bool is_reduced_by_switches(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
}

/// The highest bandwidth of LL, in GB/s. Rows: generations of GPUs; columns: 1, 2 and more nodes.
double ll_ceiling(const Topology& topology) {
  constexpr std::array<std::array<double, 3>, 4> kCeiling{
      {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
  const int generation = std::max(static_cast<int>(topology.nccl.generation) - 1, 0);
  const std::size_t column = topology.nodes() == 1 ? 0 : topology.nodes() < 4 ? 1 : 2;
  // Over several nodes NCCL takes the second row for AMD and mixed processors, which platforms do not state, and the
  // first row for all others, whatever the GPU.
  return kCeiling[topology.nodes() == 1 ? static_cast<std::size_t>(generation) : 0][column];
}

/// The latency of one hop between nodes that the tuner's tables state.
Seconds table_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (algorithm == NcclAlgorithm::nvls_tree) return Seconds{kMicro * kNetNvlsTree};
  const auto& hops = algorithm == NcclAlgorithm::tree || topology.gpus_per_node == 1 ? kNetTree : kNetRing;
  return Seconds{kMicro * hops[index(protocol)]};
}

/// What a network's latency adds to the hops of the tables. A platform states the latency of a small message, which
/// NCCL sends by a ring with LL.
Seconds beyond_short_hop(const Topology& topology) {
  return std::max(Seconds{0},
                  topology.nccl.network_latency - table_hop(topology, NcclAlgorithm::ring, NcclProtocol::ll));
}

/// The bandwidth of the graph that NCCL finds: the lower of the bandwidths inside a node and between nodes.
double graph_bandwidth(const Topology& topology) {
  const NcclMachine& machine = topology.nccl;
  const double inside = machine.inside_bandwidth.si, between = machine.between_bandwidth.si;
  if (topology.nodes() == 1) return inside;
  return topology.gpus_per_node == 1 || inside == 0 ? between : std::min(inside, between);
}

/// The bandwidth that the tuner gives to a tree. Its graph may use links inside the node at up to twice the rate of the
/// NICs; over two nodes the tuner takes that rate (src/graph/search.cc and tuning.cc since 2.5), so it prefers trees
/// there. Channels have limits, before 2.14 all of them together (tuning.cc of 2.8).
double tree_bandwidth(const Topology& topology, NcclProtocol protocol, NcclVersion version) {
  using Generation = NcclMachine::Generation;
  constexpr double kTree = 0.92, kTreePattern = 0.85;
  constexpr int kLimitsByChannelSinceMinor = 14;
  constexpr std::array<std::array<double, 3>, 4> kOfChannel{
      {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
  const NcclMachine& machine = topology.nccl;
  const int nodes = topology.nodes();
  double bandwidth = graph_bandwidth(topology);
  if (nodes == 2 && topology.gpus_per_node > 1)
    bandwidth = std::min(machine.inside_bandwidth.si, 2 * machine.between_bandwidth.si);
  bandwidth *= kTree;
  const bool ampere = machine.generation == Generation::ampere;
  if (version.known_minor() < kLimitsByChannelSinceMinor && machine.generation < Generation::hopper) {
    const bool wide = ampere && protocol == NcclProtocol::ll128;
    if (topology.nodes() > 1)
      bandwidth = std::min(bandwidth, kGiga * (nodes == 2 ? (wide ? 130 : 110) : wide ? 105 : 80));
  } else {
    const auto row = static_cast<std::size_t>(std::max(static_cast<int>(machine.generation) - 1, 0));
    const std::size_t column = nodes == 1 ? 0 : nodes < 4 ? 1 : 2;
    bandwidth = std::min(bandwidth, nccl_channels(topology) * kGiga * kOfChannel[row][column]);
  }
  if (protocol == NcclProtocol::ll) bandwidth = std::min(bandwidth / 3.8, kGiga * ll_ceiling(topology));
  if (protocol == NcclProtocol::ll128) bandwidth *= nodes == 1 ? 7.0 / 9 : 120.0 / 128;
  return bandwidth * (machine.generation >= Generation::hopper ? kTreePattern : 1);
}

/// The bandwidth of NVLSTree: the switches' or the NICs', which carry the bytes once between two nodes, else twice.
double nvls_tree_bandwidth(const Topology& topology) {
  return std::min(nccl_switch_rate(topology).si, topology.nccl.between_bandwidth.si / (topology.nodes() == 2 ? 1 : 2));
}

/// False for protocols that the network's plugin forbids by default. EFA does not keep the order that LL and LL128 rely
/// on. Its plugin forbids them on instances before Hopper's; before it did, users were advised to do so
/// (aws/aws-ofi-nccl issue 76, pull requests 280 and 850; doc/efa-env-var.md).
bool allowed_by_plugin(const NcclMachine& machine, NcclProtocol protocol, const NcclOptions& options) {
  constexpr int kAdvisedSinceMinor = 8;  // the advice came with GPUDirect on p4d
  return protocol == NcclProtocol::simple || !machine.efa || options.any_protocol ||
         options.version.known_minor() < kAdvisedSinceMinor || machine.generation >= NcclMachine::Generation::hopper;
}

/// True if NCCL of that version can run the algorithm with the protocol on the machine.
bool enabled(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol, NcclVersion version) {
  const NcclMachine& machine = topology.nccl;
  if (protocol == NcclProtocol::ll128) {
    const bool volta = machine.generation >= NcclMachine::Generation::volta;
    const bool inside = topology.gpus_per_node == 1 || has_nvlink(machine);
    // A network whose messages wait for their receiver keeps no order of 128 bytes either (Google's
    // GPUDirect-TCPX and FasTrak).
    const bool between =
        topology.nodes() == 1 || (machine.gpu_direct && !machine.sockets && machine.rendezvous.si == 0);
    if (version.known_minor() < 5 || !volta || !inside || !between || is_reduced_by_switches(algorithm)) return false;
  }
  if (algorithm == NcclAlgorithm::tree) return version.known_minor() >= 4;
  // A tuner that comes with the network lets LL go by trees only: h100_a3mega_16 takes 123 us for 8 bytes and 174 us
  // for 512 KiB, and a ring of 16 GPUs crosses the network almost four times, at some 50 us each.
  const bool ring_with_lines = algorithm == NcclAlgorithm::ring && protocol == NcclProtocol::ll;
  if (ring_with_lines && machine.rendezvous_in_tuner && topology.nodes() > 1 && topology.gpus_per_node > 1)
    return false;
  if (!is_reduced_by_switches(algorithm)) return true;
  const bool whole_nodes = topology.node_sizes.empty() && topology.ranks % topology.gpus_per_node == 0;
  const bool switches = topology.node_switch && whole_nodes && protocol == NcclProtocol::simple &&
                        machine.generation >= NcclMachine::Generation::hopper;
  if (algorithm == NcclAlgorithm::nvls_tree) return switches && topology.nodes() > 1 && version.known_minor() >= 18;
  return switches && (topology.nodes() == 1 || topology.fabric_switch) && version.known_minor() >= 17;
}

Seconds estimate(const Topology& topology, std::int64_t bytes, NcclAlgorithm algorithm, NcclProtocol protocol,
                 NcclVersion version) {
  const double n = topology.ranks, nodes = topology.nodes();
  const int levels = log2_below(topology.nodes());
  const double inside = nccl_inside_hop(topology, algorithm, protocol).si;
  // NCCL uses the latency that a network's plugin reports. Its own for InfiniBand and sockets report none
  // (src/transport/net_ib.cc and net_socket.cc); EFA's reports 75 us for P4d and later, 150 us for others
  // (aws/aws-ofi-nccl src/platform-aws.c).
  Topology reported = topology;
  if (!topology.nccl.rendezvous_in_tuner) reported.nccl.rendezvous = reported.nccl.network_latency = Seconds{0};
  if (topology.nccl.efa) reported.nccl.network_latency = Seconds{kMicro * (topology.nccl.gpu_direct ? 75 : 150)};
  reported.nccl.sockets = false;  // the tuner counts on the same shares for them
  // For Simple the tuner counts the reported latency once more, for a flush (src/graph/tuning.cc); no log shows it.
  const Seconds beyond = beyond_short_hop(reported), rendezvous = reported.nccl.rendezvous;
  const bool simple = protocol == NcclProtocol::simple;
  const double between = (table_hop(topology, algorithm, protocol) + beyond +
                          (!simple             ? Seconds{0}
                           : rendezvous.si > 0 ? rendezvous
                                               : beyond))
                             .si;
  double bandwidth = graph_bandwidth(topology) * nccl_bandwidth_share(reported, algorithm, protocol, version);
  double latency = nccl_base_latency(algorithm, protocol).si;
  if (algorithm == NcclAlgorithm::tree) {
    bandwidth = tree_bandwidth(topology, protocol, version);
    const int step = bytes < 64 ? -1 : log2_below(bytes / 64);
    if (0 <= step && step < 24) bandwidth *= kTreeBySize[index(protocol)][static_cast<std::size_t>(step)];
    latency += 2 * ((n / nodes - 1) * inside + levels * between);
    bandwidth *= 0.5;
  } else if (algorithm == NcclAlgorithm::ring) {
    const double overhead = topology.nodes() == 1 ? 0 : kMicro * (protocol == NcclProtocol::simple ? 3 : 1);
    latency += (2 * (n - 1) - 2 * (nodes - 1)) * std::max(inside, overhead) + 2 * (nodes - 1) * between;
    latency *= nccl_plateau(topology, bytes, algorithm, protocol);
    bandwidth *= n / (2 * (n - 1));
  } else if (algorithm == NcclAlgorithm::nvls_tree) {
    latency += inside + 2 * levels * between;
    bandwidth = nvls_tree_bandwidth(topology);
  } else {
    latency += inside + (nodes > 1 ? between : 0);
    bandwidth = nccl_switch_rate(topology).si;
    if (nodes > 1) bandwidth = std::min(bandwidth, topology.nccl.between_bandwidth.si);
  }
  return Seconds{latency + static_cast<double>(bytes) / bandwidth};
}

}  // namespace

std::string_view to_string(NcclAlgorithm algorithm) {
  constexpr std::string_view kNames[] = {"ring", "tree", "nvls", "nvls-tree"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(NcclProtocol protocol) {
  constexpr std::string_view kNames[] = {"LL", "LL128", "Simple"};
  return kNames[index(protocol)];
}

bool has_nvlink(const NcclMachine& machine) {
  return machine.inside == NcclMachine::Inside::nvlink_mesh || machine.inside == NcclMachine::Inside::nvlink_switch;
}

Seconds nccl_base_latency(NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (is_reduced_by_switches(algorithm)) return Seconds{0};
  return Seconds{kMicro * (algorithm == NcclAlgorithm::tree ? kBaseTree : kBaseRing)[index(protocol)]};
}

Seconds nccl_inside_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (is_reduced_by_switches(algorithm)) return Seconds{kMicro * kNvlsHop};
  const bool tree = algorithm == NcclAlgorithm::tree;
  const auto& hops = has_nvlink(topology.nccl) ? (tree ? kNvlinkTree : kNvlinkRing) : (tree ? kPcieTree : kPcieRing);
  return Seconds{kMicro * hops[index(protocol)]};
}

Seconds nccl_between_hop(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const Seconds nic = beyond_short_hop(topology), hop = table_hop(topology, algorithm, protocol);
  if (protocol != NcclProtocol::simple) return hop + nic;
  // Over sockets the size of a message goes ahead of its bytes; elsewhere the receiver's buffers are announced before
  // the first bytes arrive, and only a network with a rendezvous waits for them.
  const Seconds rendezvous = topology.nccl.rendezvous;
  if (topology.nccl.sockets && rendezvous.si == 0) return hop + 2 * nic;
  // What the table adds for Simple to a hop with LL is hidden where the network is slower than InfiniBand: between two
  // g4dn over EFA a hop with Simple takes 28 us at 4 bytes, between two nodes with LL 32 us.
  return std::max(hop, table_hop(topology, NcclAlgorithm::ring, NcclProtocol::ll) + nic) + rendezvous;
}

double nccl_plateau(const Topology& topology, std::int64_t bytes, NcclAlgorithm algorithm, NcclProtocol protocol) {
  constexpr int kFullBytes = 64;  // for each channel and rank
  const bool ring = algorithm == NcclAlgorithm::ring && protocol == NcclProtocol::simple && topology.nodes() > 1;
  if (!ring || bytes / nccl_channels(topology) / topology.ranks < kFullBytes) return 1;
  return topology.nccl.generation < NcclMachine::Generation::ampere ? 1.9 : 1.4;
}

int nccl_channels(const Topology& topology) {
  constexpr int kMaxChannels = 32, kMaxInside = 24;
  const double nvlink = has_nvlink(topology.nccl) ? topology.nccl.inside_bandwidth.si / (10 * kGiga) : 0;
  // On p3dn EFA's plugin showed NCCL four devices for the one NIC (the log of p3dn_16_efa says so).
  const NcclMachine& machine = topology.nccl;
  const bool four_devices = machine.efa && machine.generation == NcclMachine::Generation::volta && nvlink > 0;
  // No device of NCCL is faster than 400 Gbit/s; a platform may state several as one.
  const int devices = std::max(machine.nics, static_cast<int>(machine.between_bandwidth.si / (50 * kGiga)));
  const int inside = machine.generation <= NcclMachine::Generation::hopper ? kMaxInside : kMaxChannels;
  int between = topology.nodes() > 1 ? 2 * (four_devices ? 4 : devices) : inside;
  // From Hopper on, fewer than 16 channels over NICs of 400 Gbit/s are doubled (src/graph/connect.cc since 2.18: ring
  // graphs with more than 45 GB/s a channel).
  constexpr int kEnough = 16;
  constexpr double kFastNic = 45 * kGiga;
  const bool doubled = machine.generation >= NcclMachine::Generation::hopper && topology.nodes() > 1 &&
                       between < kEnough && machine.between_bandwidth.si > kFastNic * devices;
  if (doubled) between *= 2;
  return std::clamp(nvlink > 0 ? static_cast<int>(nvlink) : 2, 2, std::min(kMaxChannels, std::max(between, 2)));
}

BytesPerSecond nccl_switch_rate(const Topology& topology) {
  const bool blackwell = topology.nccl.generation >= NcclMachine::Generation::blackwell;
  return (blackwell ? kSwitchShareBlackwell : kSwitchShareHopper) / (1 + 1.0 / topology.gpus_per_node) *
         topology.nccl.inside_bandwidth;
}

double nccl_bandwidth_share(const Topology& topology, NcclAlgorithm algorithm, NcclProtocol protocol,
                            NcclVersion version) {
  const double graph = graph_bandwidth(topology);
  const double ceiling = graph > 0 ? ll_ceiling(topology) * kGiga / graph : 1;
  if (is_reduced_by_switches(algorithm)) return 1;
  // Half of the bytes that LL sends are flags. Over TCP messages of up to 64 KiB take only one of the sockets that
  // large messages are split over (src/transport/net_socket.cc, MIN_CHUNKSIZE), whose rate host_paths.cpp limits. The
  // number of sockets of a link that was measured is not known; a quarter stands for both there.
  constexpr double kFlags = 0.5;
  const bool one_socket = topology.nccl.sockets && topology.nccl.socket_connections > 0;
  if (algorithm == NcclAlgorithm::tree) {
    constexpr double kTree = 0.92;
    if (protocol == NcclProtocol::ll) return std::min(one_socket ? kFlags : kTree / 3.8, ceiling);
    if (protocol == NcclProtocol::ll128) return kTree * (topology.nodes() == 1 ? 7.0 / 9 : 120.0 / 128);
    return kTree;
  }
  // Before 2.18 the tuner counted a quarter.
  if (protocol == NcclProtocol::ll)
    return std::min(!one_socket && (version.known_minor() < 18 || topology.nccl.sockets) ? 0.25 : kFlags, ceiling);
  return protocol == NcclProtocol::ll128 ? 0.92 : 1;
}

BytesPerSecond nccl_ll_rate(const Topology& topology) { return BytesPerSecond{kGiga * ll_ceiling(topology)}; }

std::vector<NcclChoice> nccl_choices(const Topology& topology, std::int64_t bytes, const NcclOptions& options) {
  std::vector<NcclChoice> choices;
  for (const auto algorithm :
       {NcclAlgorithm::ring, NcclAlgorithm::tree, NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree}) {
    for (const auto protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
      if (options.algorithm && *options.algorithm != algorithm) continue;
      if (options.protocol ? *options.protocol != protocol : !allowed_by_plugin(topology.nccl, protocol, options))
        continue;
      if (!enabled(topology, algorithm, protocol, options.version)) continue;
      choices.push_back({algorithm, protocol, estimate(topology, bytes, algorithm, protocol, options.version)});
    }
  }
  return choices;
}

std::optional<NcclChoice> choose_nccl(const Topology& topology, std::int64_t bytes, const NcclOptions& options) {
  const std::vector<NcclChoice> choices = nccl_choices(topology, bytes, options);
  if (const auto plugins = nccl_plugin_choice(topology, bytes, options.version)) {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const NcclChoice& choice) {
      return choice.algorithm == plugins->first && choice.protocol == plugins->second;
    });
    if (!options.algorithm && !options.protocol && found != choices.end()) return *found;
  }
  const auto best = std::min_element(choices.begin(), choices.end(),
                                     [](const NcclChoice& a, const NcclChoice& b) { return a.estimate < b.estimate; });
  return best == choices.end() ? std::nullopt : std::optional(*best);
}

}  // namespace ganymede::sim

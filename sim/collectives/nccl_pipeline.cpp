#include "sim/collectives/nccl_pipeline.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// More chunks cost time to simulate and change nothing: latencies and bytes are scaled to those of the real chunks.
constexpr std::int64_t kMaxPlannedChunks = 16;
constexpr std::int64_t kLineChunk = 4096;  ///< planned for protocols that forward each line as it comes
constexpr int kSwitchChannels = 16;        ///< enough for NVLS at its peak (NVIDIA/nccl src/graph/search.cc)

/// The hops between nodes from a leaf to the root: those of a tree, or the one to the fabric's switch.
int levels_between(const Topology& topology, NcclAlgorithm algorithm) {
  if (topology.nodes() == 1) return 0;
  return algorithm == NcclAlgorithm::nvls ? 1 : std::bit_width(static_cast<unsigned>(topology.nodes() - 1));
}

/// NcclPipeline::first_crossing. Over more than three nodes, all levels but the first one have nodes with two children.
double first_crossing(const Topology& topology, NcclAlgorithm algorithm, int levels) {
  if (algorithm == NcclAlgorithm::nvls) return 2;
  return topology.nodes() == 3 ? 2 : std::max(1, 2 * levels - 1);
}

/// What copies of a tree's chunk add to a hop where GPUDirect is missing: into the host's memory before it leaves, and
/// out of it after it has come. LL's lines are written to the host's memory in any case. (g4dn_2_efa in
/// bench/nccl_logs.py, to which nothing of this is fitted, is 3 % off from 16 to 512 KiB with it and 20 % without it.)
Seconds staging_of_chunk(const Topology& topology, const NcclChoice& choice, Bytes chunk) {
  const bool staged = topology.nodes() > 1 && topology.nccl.staging_bandwidth.si > 0 &&
                      choice.algorithm == NcclAlgorithm::tree && choice.protocol == NcclProtocol::simple;
  return staged ? 2 * (chunk / topology.nccl.staging_bandwidth) : Seconds{0};
}

/// The bytes of one chunk of a tree with Simple: an eighth of the buffer, halved while too few chunks would fill the
/// depth of the tree (NVIDIA/nccl src/enqueue.cc, computeColl). Later versions are taken to do the same.
double tree_chunk(double bytes_of_channel, int depth) {
  double chunk = 512.0 * 1024;
  while (bytes_of_channel / chunk < 8 * depth && chunk > 128.0 * 1024) chunk /= 2;
  while (bytes_of_channel / chunk < 4 * depth && chunk > 64.0 * 1024) chunk /= 2;
  while (bytes_of_channel / chunk < depth && chunk > 32.0 * 1024) chunk /= 2;
  return chunk;
}

/// The bytes of one message between nodes of a tree with LL or LL128: lines are forwarded inside a node as they come,
/// but a proxy sends whole steps of its buffer. LL's has 32 KiB of payload; LL128's starts at an eighth of its buffer,
/// 120 x 640 words of 8 bytes, and is halved while too few would fill the tree (the same source).
double line_message(const Topology& topology, double bytes_of_channel, NcclProtocol protocol) {
  constexpr double kKiB = 1024, kPayload = 15.0 / 16;
  if (protocol == NcclProtocol::ll) return 32 * kKiB;
  const double per_node = topology.gpus_per_node;
  const double steps = 1 + std::bit_width(static_cast<unsigned>(topology.nodes())) - 1 + 0.1 * per_node;
  double chunk = 120.0 * 640 * 8;
  while (bytes_of_channel / chunk < steps * 64 / per_node && chunk > 128 * kKiB) chunk /= 2;
  while (bytes_of_channel / chunk < steps * 16 / per_node && chunk > 32 * kKiB) chunk /= 2;
  return kPayload * chunk;
}

/// The bytes that all channels and heads of NVLS or NVLSTree send as one chunk (the same source).
double switch_chunks(const Topology& topology, double bytes, NcclAlgorithm algorithm) {
  const double heads = kSwitchChannels * static_cast<double>(topology.gpus_per_node);
  constexpr double kKiB = 1024;
  double chunk = 128 * kKiB;
  if (algorithm == NcclAlgorithm::nvls) {
    if (bytes < 64 * heads * chunk) chunk = 64 * kKiB;
    if (bytes < 8 * heads * chunk) chunk = std::min(chunk, 32 * kKiB);
    if (bytes < 2 * heads * chunk) chunk = std::min(chunk, 16 * kKiB);
  } else {
    if (topology.nodes() >= 4) chunk = 64 * kKiB;
    if (bytes < 4 * heads * chunk) chunk = std::min(chunk, 64 * kKiB);
    if (bytes < heads * chunk) chunk = std::min(chunk, 32 * kKiB);
  }
  return heads * chunk;
}

/// The latency of a hop inside a node: the platform's for a ring with Simple, and what the tables add for the choice.
Seconds inside_hop(const Topology& topology, const NcclChoice& choice) {
  return std::max(Seconds{0}, topology.nccl.inside_latency +
                                  nccl_inside_hop(topology, choice.algorithm, choice.protocol) -
                                  nccl_inside_hop(topology, NcclAlgorithm::ring, NcclProtocol::simple));
}

}  // namespace

double NcclPipeline::byte_factor() const {
  return (1 + filling / real_chunks) / (1 + filling / static_cast<double>(chunks));
}

double NcclPipeline::rate_between(double inside_over_between) const {
  const double planned_chunks = static_cast<double>(chunks), planned = 1 + filling_between / planned_chunks;
  const double real = crossings + (first_crossing - crossings) / chunks_between;
  const double more = (filling - filling_between) * (byte_factor() / planned_chunks - 1 / real_chunks);
  return byte_factor() * planned / std::max(0.1 * real, real - more / inside_over_between);
}

// Fitted to h100_a3mega_16 from 1 to 16 MiB, where each MiB takes 49 us: all sizes from 64 KiB to 1 MiB go from 30.8 to
// 8 % off and those from 1 MiB from 7.0 to 4 %. Two DGX A100 over InfiniBand and two nodes over Slingshot, which were
// not used, go from 100 to 77 % and from 266 to 132 % below 1 MiB, the latter from 24.7 to 9 % above: their hosts are
// slower. A host with one GPU has one proxy, and eks_2_efa shows no such limit.
BytesPerSecond nccl_line_rate(const Topology& topology, NcclProtocol protocol) {
  const bool limited = topology.nodes() > 1 && topology.gpus_per_node > 1 && protocol == NcclProtocol::ll;
  return BytesPerSecond{limited && !topology.nccl.sockets ? 7e9 : std::numeric_limits<double>::infinity()};
}

Seconds nccl_step_of_lines(const PlanRequest& request, const NcclChoice& choice) {
  constexpr double kChannelBytes = 512 * 8, kStep = 32 * 1024, kFlags = 2;
  const Topology& topology = request.topology;
  const double parts = choice.algorithm == NcclAlgorithm::ring ? topology.ranks : 1;
  const double bytes = static_cast<double>(request.bytes) / parts;
  const double channels = std::clamp(std::floor(bytes / kChannelBytes), 1.0, 1.0 * nccl_channels(topology));
  const double of_nic = std::max(1.0, channels / std::max(1, topology.nccl.nics));
  return Bytes{kFlags * of_nic * std::min(bytes / channels, kStep)} / nccl_line_rate(topology, choice.protocol);
}

NcclPipeline nccl_pipeline(const PlanRequest& request, const NcclChoice& choice) {
  const Topology& topology = request.topology;
  const auto bytes = static_cast<double>(request.bytes);
  const int levels = levels_between(topology, choice.algorithm);
  NcclPipeline pipeline;
  int hops = 0;  // inside a node, from a leaf to the root
  if (choice.algorithm == NcclAlgorithm::tree) {
    hops = topology.gpus_per_node - 1;
    const double of_channel = bytes / nccl_channels(topology);
    pipeline.real_chunks = choice.protocol == NcclProtocol::simple
                               ? of_channel / tree_chunk(of_channel, std::max(1, hops + levels))
                               : std::numeric_limits<double>::infinity();
  } else {
    // A GPU hands its bytes to the switch of its node, and, between nodes, the switch hands the sum to the GPU that
    // sends it on. The table's latency is that of the way up and down.
    hops = choice.algorithm == NcclAlgorithm::nvls ? 1 : 2;
    pipeline.real_chunks = bytes / switch_chunks(topology, bytes, choice.algorithm);
  }
  const bool switches = choice.algorithm != NcclAlgorithm::tree;
  if (choice.algorithm != NcclAlgorithm::nvls) pipeline.crossings = std::clamp(topology.nodes() / 2.0, 1.0, 2.0);
  const bool lines = std::isinf(pipeline.real_chunks);
  pipeline.real_chunks = std::max(1.0, pipeline.real_chunks);
  pipeline.chunks_between = pipeline.real_chunks;
  if (lines) {
    const double of_channel = bytes / nccl_channels(topology);
    pipeline.chunks_between = std::max(1.0, of_channel / line_message(topology, of_channel, choice.protocol));
  }
  const double planned = lines ? bytes / kLineChunk : pipeline.real_chunks;
  pipeline.chunks = static_cast<std::int64_t>(std::clamp(std::ceil(planned), 1.0, double{kMaxPlannedChunks}));
  pipeline.inside = (switches ? 0.5 / hops : 1) * inside_hop(topology, choice);
  pipeline.between = nccl_between_hop(topology, choice.algorithm, choice.protocol) +
                     staging_of_chunk(topology, choice, Bytes{bytes / pipeline.real_chunks}) +
                     nccl_step_of_lines(request, choice);
  pipeline.filling = std::max(0, 2 * (hops + levels) - 1);
  pipeline.filling_between = std::max(0, 2 * levels - 1);
  pipeline.first_crossing = first_crossing(topology, choice.algorithm, levels);
  const Seconds way = 2 * (hops * pipeline.inside + levels * pipeline.between);
  const Seconds slowest = levels > 0 ? std::max(pipeline.inside, pipeline.between) : pipeline.inside;
  // Chunks pass the hop below the root in pairs, one up while the other one comes down: the second of a pair pays
  // nothing, and each further pair the way over that hop and back.
  const Seconds rounds = way + static_cast<double>((pipeline.chunks - 1) / 2 * 2) * slowest;
  pipeline.way = way;
  pipeline.latency_share = rounds.si > 0 ? way / rounds : 1;
  return pipeline;
}

}  // namespace ganymede::sim

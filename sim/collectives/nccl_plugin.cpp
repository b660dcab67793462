#include "sim/collectives/nccl_plugin.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "common/random.hpp"

namespace ganymede::sim {
namespace {

/// A corner of a region: up to that size for that number of ranks.
struct Corner {
  double ranks, bytes;
};

/// A region of sizes and ranks with one choice. It ends on the line through its corners, in logarithms.
struct Region {
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  std::span<const Corner> ends;
};

constexpr double kMaxBytes = 100.0 * 1024 * 1024 * 1024;

// Source of all corners: aws/aws-ofi-nccl src/tuner/nccl_ofi_regions.cpp at 228fa0eafb41 (P5 and P5e; P5en).
constexpr Corner kTreeLl128P5[] = {{16, 31457280}, {32, 37748736}, {64, 117440512}, {128, 301989888}};
constexpr Corner kNvlsTreeP5[] = {{16, kMaxBytes}, {16.5, 0}};  // between two nodes only
constexpr Corner kRingLl128P5[] = {{17, 1073741824}, {64, 2147483648}, {128, 2147483648}};
constexpr Corner kTreeLlP5en[] = {{16, 196608}, {128, 196608}};
constexpr Corner kTreeLl128P5en[] = {{16, 13107200}, {127, 129499136}, {128, 129499136}};
constexpr Corner kRingLl128P5en[] = {{16, 29884416}, {32, 293601280}, {64, 589299712}, {128, 549453824}};
constexpr Corner kNvlsTreeP5en[] = {{16, kMaxBytes}, {32, 509607936}, {256, 7516192768}};
constexpr Corner kEverything[] = {{16, kMaxBytes}, {128, kMaxBytes}};

constexpr Region kP5[] = {{NcclAlgorithm::tree, NcclProtocol::ll128, kTreeLl128P5},
                          {NcclAlgorithm::nvls_tree, NcclProtocol::simple, kNvlsTreeP5},
                          {NcclAlgorithm::ring, NcclProtocol::ll128, kRingLl128P5},
                          {NcclAlgorithm::ring, NcclProtocol::simple, kEverything}};
constexpr Region kP5en[] = {{NcclAlgorithm::tree, NcclProtocol::ll, kTreeLlP5en},
                            {NcclAlgorithm::tree, NcclProtocol::ll128, kTreeLl128P5en},
                            {NcclAlgorithm::ring, NcclProtocol::ll128, kRingLl128P5en},
                            {NcclAlgorithm::nvls_tree, NcclProtocol::simple, kNvlsTreeP5en},
                            {NcclAlgorithm::ring, NcclProtocol::simple, kEverything}};

/// The size at which a region ends; 0 for fewer ranks than its first corner has.
double end_of(std::span<const Corner> ends, double ranks) {
  const auto next = std::find_if(ends.begin(), ends.end(), [&](const Corner& end) { return ranks <= end.ranks; });
  if (next == ends.end() || (next == ends.begin() && ranks < next->ranks)) return 0;
  if (ranks == next->ranks || next->bytes == 0) return ranks == next->ranks ? next->bytes : 0;
  const Corner &low = *(next - 1), &high = *next;
  const double share = portable_log(ranks / low.ranks) / portable_log(high.ranks / low.ranks);
  return low.bytes * portable_exp(share * portable_log(high.bytes / low.bytes));
}

}  // namespace

std::optional<std::pair<NcclAlgorithm, NcclProtocol>> nccl_plugin_choice(const Topology& topology, std::int64_t bytes,
                                                                         NcclVersion version) {
  constexpr int kTunersSinceMinor = 19, kMaxRanks = 128, kGpus = 8, kNicsOfP5 = 32, kNicsOfP5en = 16;
  const NcclMachine& machine = topology.nccl;
  const bool p5 = machine.nics == kNicsOfP5, p5en = machine.nics == kNicsOfP5en;
  const bool whole_nodes = topology.node_sizes.empty() && topology.ranks == kGpus * topology.nodes();
  if (!machine.efa || machine.generation != NcclMachine::Generation::hopper || !whole_nodes || topology.nodes() == 1 ||
      topology.ranks > kMaxRanks || version.known_minor() < kTunersSinceMinor || !(p5 || p5en))
    return std::nullopt;
  for (const Region& region : p5 ? std::span<const Region>(kP5) : std::span<const Region>(kP5en))
    if (static_cast<double>(bytes) <= end_of(region.ends, topology.ranks))
      return std::pair{region.algorithm, region.protocol};
  return std::nullopt;
}

}  // namespace ganymede::sim

// NCCL's all-reduce: the tuner chooses algorithm and protocol (nccl_tuner.hpp); the schedule is that of parallel rings,
// a double tree for each channel, or a reduction in the switches, with the costs of the protocol (nccl_cost.hpp).
//
// Variants name a version, or its month, and what is forced, as "2.9.9/ring/simple"; "any" also lets the tuner choose
// the protocols that EFA's plugin forbids.

#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/host_paths.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/collectives/nccl_cost.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

/// Collectives that nccl-tests make of ncclSend and ncclRecv in one group (src/alltoall.cu, sendrecv.cu, gather.cu,
/// scatter.cu): all messages are under way at once, each straight to its destination.
bool is_point_to_point(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::send_receive ||
         collective == Collective::gather || collective == Collective::scatter;
}

std::optional<std::string> refuse_nccl(const PlanRequest& request) {
  const auto options = parse_nccl_options(request.variant, request.topology.nccl);
  if (!options)
    return fmt::format(
        "found \"{}\", expected at most one version or month from 2019-01 on, algorithm (ring, tree, nvls, nvls-tree) "
        "and protocol (LL, LL128, Simple, any) each, as in nccl:2.18.3/ring/simple",
        request.variant);
  if (std::string why = why_no_version(*options); !why.empty()) return why;
  if (is_point_to_point(request.collective)) return std::nullopt;
  if (request.collective != Collective::all_reduce &&
      options->algorithm.value_or(NcclAlgorithm::ring) != NcclAlgorithm::ring)
    return fmt::format("knows a {} by ring only", to_string(request.collective));
  if (!choose_nccl(request.topology, request.bytes, *options))
    return fmt::format("NCCL {}.{} does not use {} on this machine", options->version.major, options->version.minor,
                       request.variant);
  return std::nullopt;
}

/// The schedule of a ring, with its costs.
Schedule ring_of(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  const Schedule plan =
      parallel_rings(request, parallel_ring_orders(request.topology, true, 0), true, nccl_passes(request, choice));
  Schedule schedule(
      plan.ranks(), plan.endpoints(), plan.bytes(), plan.stages(),
      with_host_limits(request.topology, plan.lanes(), nccl_ring_cost(request, choice, version, plan.lanes()), 1,
                       choice.protocol == NcclProtocol::ll));
  schedule.set_lanes(plan.lanes());
  return schedule;
}

/// The schedule of a tree or of a reduction in the switches, with its costs.
Schedule tree_of(PlanRequest request, const NcclChoice& choice, NcclVersion version) {
  const NcclPipeline pipeline = nccl_pipeline(request, choice);
  request.variant = std::to_string(pipeline.chunks);  // the builders know no other variant
  const Schedule plan = choice.algorithm == NcclAlgorithm::tree   ? channel_trees(request)
                        : choice.algorithm == NcclAlgorithm::nvls ? switch_tree(request)
                                                                  : switch_channel_trees(request);
  Schedule schedule(
      plan.ranks(), plan.endpoints(), plan.bytes(), plan.stages(),
      with_host_limits(request.topology, plan.lanes(), nccl_tree_cost(request, choice, version, pipeline, plan.lanes()),
                       pipeline.rate_between(), choice.protocol == NcclProtocol::ll));
  schedule.set_lanes(plan.lanes());
  return schedule;
}

/// A broadcast goes along the rings from the root, a reduce to it, in chunks. Their size is fitted to a broadcast on 8
/// A100 of a Standard_ND96asr_v4 (nccl-tests of before 2021): beyond latency and bandwidth, 8 and 64 MiB take what six
/// hops with 46 and 95 KiB of each of 24 channels do. Small sizes make eight chunks, an assumption.
Schedule chains_of(PlanRequest request, const NcclChoice& choice, NcclVersion version) {
  constexpr std::int64_t kChunk = 64 * 1024, kFewest = 8, kMost = 65536;
  std::vector<Tree> chains;
  for (const std::vector<int>& order : parallel_ring_orders(request.topology, true, 0)) {
    Tree chain{std::vector<int>(static_cast<std::size_t>(request.topology.endpoints()), Tree::kNotInTree)};
    const auto root = static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin());
    for (std::size_t i = 0; i < order.size(); ++i)
      chain.parent[static_cast<std::size_t>(order[(root + i) % order.size()])] =
          i == 0 ? Tree::kRoot : order[(root + i - 1) % order.size()];
    chain.lane = static_cast<int>(chains.size());
    chains.push_back(std::move(chain));
  }
  const int lanes = static_cast<int>(chains.size());
  const std::int64_t step = kChunk * std::max(1, nccl_channels(request.topology));
  const ProtocolCost cost = nccl_ring_cost(request, choice, version, lanes);
  request.variant = std::to_string(
      std::clamp(request.bytes / step, std::min(kFewest, request.bytes), kMost));  // the builder knows no other
  Schedule schedule = pipelined_trees(request, std::move(chains));
  schedule.set_cost(with_host_limits(request.topology, lanes, cost, 1, choice.protocol == NcclProtocol::ll));
  schedule.set_lanes(lanes);
  return schedule;
}

/// Offsets are those of the source's part: times do not depend on where bytes go.
Schedule messages_of(const PlanRequest& request) {
  const int ranks = request.topology.ranks;
  const std::int64_t whole = padded(request.bytes, ranks), part = whole / ranks;
  Stage stage{1, [=, collective = request.collective, bytes = request.bytes](std::int64_t /*round*/,
                                                                             std::vector<Transfer>& out) {
                for (int rank = 0; rank < ranks; ++rank) {
                  if (collective == Collective::send_receive)
                    out.push_back({rank, (rank + 1) % ranks, 0, bytes, false});
                  if (collective == Collective::gather && rank > 0) out.push_back({rank, 0, rank * part, part, false});
                  if (collective == Collective::scatter && rank > 0) out.push_back({0, rank, rank * part, part, false});
                  for (int to = 0; to < ranks && collective == Collective::all_to_all; ++to)
                    if (to != rank) out.push_back({rank, to, rank * part, part, false});
                }
              }};
  if (request.collective == Collective::all_to_all) {
    stage.transfers = std::int64_t{ranks} * (ranks - 1);
    if (request.topology.endpoints() == ranks) stage.all_pairs = AllPairs{part, false};
  }
  return Schedule(ranks, request.topology.endpoints(), whole, {std::move(stage)});
}

/// Sends between GPUs are Simple's; what they cost beside the links is taken to be what a ring with Simple costs.
Schedule point_to_point(const PlanRequest& request, NcclVersion version) {
  ProtocolCost cost;
  cost.reduction_is_free = true, cost.eager = true;
  cost.start = nccl_base_latency(NcclAlgorithm::ring, NcclProtocol::simple);
  cost.wire = 1 / nccl_bandwidth_share(request.topology, NcclAlgorithm::ring, NcclProtocol::simple, version);
  Schedule schedule = messages_of(request);
  schedule.set_cost(with_host_limits(request.topology, 1, cost));
  schedule.set_note("sends and receives, Simple");
  return schedule;
}

Schedule plan_nccl(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  if (is_point_to_point(request.collective))
    return point_to_point(request, parse_nccl_options(request.variant, request.topology.nccl)->version);
  NcclOptions options = *parse_nccl_options(request.variant, request.topology.nccl);
  if (request.collective != Collective::all_reduce) options.algorithm = NcclAlgorithm::ring;
  const NcclChoice choice = *bounded_nccl_choice(request, options);
  const bool is_chain = request.collective == Collective::broadcast || request.collective == Collective::reduce;
  Schedule schedule = is_chain                                  ? chains_of(request, choice, options.version)
                      : choice.algorithm == NcclAlgorithm::ring ? ring_of(request, choice, options.version)
                                                                : tree_of(request, choice, options.version);
  const std::string note = nccl_version_note(options);
  schedule.set_note(fmt::format("{}, {}{}", to_string(choice.algorithm), to_string(choice.protocol),
                                note.empty() ? "" : "; " + note));
  return schedule;
}

}  // namespace

extern const AllReduceScheme nccl_scheme{
    .name = "nccl",
    .summary = "NCCL's choice: ring, tree, NVLS or NVLSTree with LL, LL128 or Simple",
    .variants = "version/algorithm/protocol, as 2.18.3/ring; 2021-03: the newest version then",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                    Collective::reduce, Collective::all_to_all, Collective::send_receive, Collective::gather,
                    Collective::scatter},
    .by_kernels = true,
    .plan = plan_nccl,
    .refusal = refuse_nccl,
};

}  // namespace ganymede::sim

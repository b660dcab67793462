// NCCL's all-reduce: the tuner chooses algorithm and protocol (nccl_tuner.hpp); the schedule is that of parallel rings,
// a double tree for each channel, or a reduction in the switches, with the costs of the protocol (nccl_cost.hpp).
//
// Variants name a version, or its month, and what is forced, as "2.9.9/ring/simple"; "any" also lets the tuner choose
// the protocols that EFA's plugin forbids.

#include <fmt/format.h>

#include "sim/collectives/host_paths.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/collectives/nccl_cost.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

std::optional<std::string> refuse_nccl(const PlanRequest& request) {
  const auto options = parse_nccl_options(request.variant);
  if (!options)
    return fmt::format(
        "found \"{}\", expected at most one version or month from 2019-01 on, algorithm (ring, tree, nvls, nvls-tree) "
        "and protocol (LL, LL128, Simple, any) each, as in nccl:2.18.3/ring/simple",
        request.variant);
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

Schedule plan_nccl(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  NcclOptions options = *parse_nccl_options(request.variant);
  if (request.collective != Collective::all_reduce) options.algorithm = NcclAlgorithm::ring;
  const NcclChoice choice = *bounded_nccl_choice(request, options);
  Schedule schedule = choice.algorithm == NcclAlgorithm::ring ? ring_of(request, choice, options.version)
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
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .by_kernels = true,
    .plan = plan_nccl,
    .refusal = refuse_nccl,
};

}  // namespace ganymede::sim

// NCCL's all-reduce: the tuner chooses algorithm and protocol (nccl_tuner.hpp); the schedule is that of our rings,
// double tree or in-network reduction, and the protocol's costs go with it.
//
// A platform's latencies are taken as those of the hops that were measured or read for it: inside a node with Simple
// (the catalogs' come from the same tables), between nodes with LL. A protocol adds, or takes away, what the tables say
// it differs by; Simple between nodes pays the network's latency twice, as the receiver grants its buffer first.
//
// Variants: a version and what is forced, as "2.9.9/ring/simple".

#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/nccl_tuner.hpp"
#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

/// Several nodes and bytes / (channels x ranks) of at least 64: Simple's latency counts so much more (the tuner's).
constexpr double kPlateau = 1.4;

ProtocolCost cost_of(const Topology& topology, const NcclChoice& choice, NcclVersion version) {
  const auto [algorithm, protocol, estimate] = choice;
  ProtocolCost cost;
  cost.start = nccl_base_latency(algorithm, protocol);
  cost.wire = 1 / nccl_bandwidth_share(topology, algorithm, protocol, version);
  cost.inside = nccl_inside_hop(topology, algorithm, protocol) -
                nccl_inside_hop(topology, NcclAlgorithm::ring, NcclProtocol::simple);
  cost.between = nccl_between_hop(algorithm, protocol) - nccl_between_hop(NcclAlgorithm::ring, NcclProtocol::ll);
  if (protocol == NcclProtocol::simple) {
    cost.between += (kPlateau - 1) * nccl_between_hop(algorithm, protocol);
    cost.between += 2 * topology.nccl.nic_latency;
  }
  cost.reduction_is_free = true;  // the kernel adds while it forwards, which its bandwidth includes
  return cost;
}

}  // namespace

WhyNot nccl_why_not(const PlanRequest& request) {
  const auto options = parse_nccl_options(request.variant);
  if (!options)
    return fmt::format(
        "found \"{}\", expected a version, an algorithm (ring, tree, nvls) and a protocol (LL, LL128, "
        "Simple), as in nccl:2.18.3/ring/simple",
        request.variant);
  if (request.collective != Collective::all_reduce &&
      options->algorithm.value_or(NcclAlgorithm::ring) != NcclAlgorithm::ring)
    return fmt::format("knows a {} by ring only", to_string(request.collective));
  if (!choose_nccl(request.topology, request.bytes, *options))
    return fmt::format("NCCL {}.{} does not use {} on this machine", options->version.major, options->version.minor,
                       request.variant);
  return only(request, {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather});
}

Schedule plan_nccl(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  NcclOptions options = *parse_nccl_options(request.variant);
  if (request.collective != Collective::all_reduce) options.algorithm = NcclAlgorithm::ring;
  const NcclChoice choice = *choose_nccl(request.topology, request.bytes, options);
  PlanRequest part = request;
  part.variant = "";
  const Schedule plan = choice.algorithm == NcclAlgorithm::ring   ? plan_multi_ring(part)
                        : choice.algorithm == NcclAlgorithm::tree ? plan_double_binary_tree(part)
                                                                  : plan_in_network(part);
  Schedule schedule(plan.ranks(), plan.endpoints(), plan.bytes(), plan.stages(),
                    cost_of(request.topology, choice, options.version));
  const std::string note = nccl_version_note(options.version);
  schedule.set_note(fmt::format("{}, {}{}", to_string(choice.algorithm), to_string(choice.protocol),
                                note.empty() ? "" : "; " + note));
  return schedule;
}

}  // namespace ganymede

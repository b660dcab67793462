// NCCL's all-reduce: the tuner chooses algorithm and protocol (nccl_tuner.hpp); the schedule is that of our rings,
// double tree or in-network reduction, and the protocol's costs go with it.
//
// A platform's latencies are taken as those of the hops that were measured or read for it: inside a node with Simple
// (the catalogs' come from the same tables), between nodes with LL. A protocol adds, or takes away, what the tables say
// it differs by.
//
// Variants: a version and what is forced, as "2.9.9/ring/simple"; "any" lets the tuner choose what EFA's plugin
// forbids.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/collectives/nccl_tuner.hpp"
#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

/// Simple cuts each channel's part into chunks of half its buffer: NCCL_BUFFSIZE's default over NCCL_STEPS, times
/// ALLREDUCE_CHUNKSTEPS (NVIDIA/nccl src/init.cc, src/include/collectives.h).
constexpr double kMostChunk = 4.0 * 1024 * 1024 / 2;

/// Share of a chunk's time on NVLink that its last copy, out of the buffer, adds once: SMs copy hardly faster than
/// NVLink. On PCIe they do, and nothing shows. Fitted to the excess over bandwidth of an nccl-tests all-reduce on 8 x
/// A100-SXM4-80GB (one process a GPU, 2 x 16 MiB .. 4 GiB: 88 us at 16 MiB, 177 us at 128 MiB, 220 us from 256 MiB
/// on), published in a note of "thanos": a100_8_mpi in bench/nccl_logs.py, which counts it as used for that.
constexpr double kLastCopy = 0.65;

/// LL's buffer takes 32 KiB of a channel and rank (NCCL_LL_LINES_PER_THREAD x NCCL_LL_MAX_NTHREADS lines of 8 bytes);
/// more goes in passes, each of which pays the latencies: 128 KiB at a time between two GPUs over EFA, as a log over it
/// shows (aws-samples/aws-do-eks: 185, 363, 719 us for 128, 256, 512 KiB).
std::int64_t passes_of(const PlanRequest& request, const NcclChoice& choice) {
  constexpr std::int64_t kChunk = 32'768, kMost = 64;
  if (choice.protocol != NcclProtocol::ll) return 1;
  const std::int64_t pass = kChunk * request.topology.ranks * nccl_channels(request.topology);
  return std::clamp<std::int64_t>((request.bytes + pass - 1) / pass, 1, kMost);
}

bool is_ring_with_simple(const NcclChoice& choice) {
  return choice.algorithm == NcclAlgorithm::ring && choice.protocol == NcclProtocol::simple;
}

Seconds last_copy(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  const bool nvlink =
      machine.inside == NcclMachine::Inside::nvlink_mesh || machine.inside == NcclMachine::Inside::nvlink_switch;
  if (!nvlink || !is_ring_with_simple(choice)) return Seconds{0};
  const Bytes chunk{std::min(static_cast<double>(bytes) / topology.ranks, kMostChunk * nccl_channels(topology))};
  return kLastCopy * (chunk / machine.inside_bandwidth);
}

/// The channels of a ring over one NIC.
int channels_of_ring(const Topology& topology) {
  return std::max(1, nccl_channels(topology) / std::max(1, topology.rails));
}

/// Simple sends a chunk in two slices (ALLREDUCE_SLICESTEPS): those of all channels of one ring.
Bytes slices_of_ring(const Topology& topology, std::int64_t bytes) {
  const double chunk = static_cast<double>(bytes) / topology.ranks / std::max(1, topology.rails);
  return Bytes{std::min(chunk, kMostChunk * channels_of_ring(topology)) / 2};
}

/// Where slices are staged through host memory, the first is copied there before anything leaves, and the last into the
/// GPU after all has come.
Seconds staging(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  if (machine.staging_bandwidth.si <= 0 || !is_ring_with_simple(choice)) return Seconds{0};
  return 2 * (slices_of_ring(topology, bytes) / machine.staging_bandwidth);
}

/// EFA's provider has a NIC of p4d read messages from 1 MiB up (FI_EFA_INTER_MIN_READ_MESSAGE_SIZE, ofiwg/libfabric
/// pull request 6048). Shorter ones a CPU posts packet by packet: 1.78, 10.59 and 152 us for 4 KiB, 64 KiB and 1 MiB
/// through one endpoint (ofiwg/libfabric issue 5694: fi_rdm_tagged_bw between two c5n.18xlarge), of which a ring has
/// one a NIC.
BytesPerSecond most_of_endpoint(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  constexpr Bytes kLeast{480 * 8}, kRead{1024 * 1024};  // the least is a chunk of 8 bytes a thread (prims_simple.h)
  constexpr Seconds kMessage{1.2e-6};
  constexpr BytesPerSecond kPackets{6.9e9}, kNoLimit{std::numeric_limits<double>::infinity()};
  const NcclMachine& machine = topology.nccl;
  const Bytes message = std::max(kLeast, slices_of_ring(topology, bytes) / channels_of_ring(topology));
  const bool in_packets = machine.efa && machine.gpu_direct && machine.generation == NcclMachine::Generation::ampere &&
                          is_ring_with_simple(choice) && message < kRead;
  return in_packets ? message / (kMessage + message / kPackets) : kNoLimit;
}

ProtocolCost cost_of(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  const Topology& topology = request.topology;
  const auto [algorithm, protocol, estimate] = choice;
  // The tuner's factor stands for rings through nodes of several GPUs. With one GPU a node nothing of it shows in logs
  // over TCP (aws-samples/aws-do-eks) and EFA (2 x g4dn.8xlarge, terraform-aws-eks-blueprints).
  const double plateau = topology.gpus_per_node > 1 ? nccl_plateau(topology, request.bytes, algorithm, protocol) : 1;
  ProtocolCost cost;
  cost.start = plateau * nccl_base_latency(algorithm, protocol) + last_copy(topology, request.bytes, choice);
  cost.wire = 1 / nccl_bandwidth_share(topology, algorithm, protocol, version);
  cost.inside = plateau * nccl_inside_hop(topology, algorithm, protocol) -
                nccl_inside_hop(topology, NcclAlgorithm::ring, NcclProtocol::simple);
  cost.between = plateau * nccl_between_hop(topology, algorithm, protocol) - topology.nccl.network_latency;
  cost.between += staging(topology, request.bytes, choice);
  cost.flow_between = most_of_endpoint(topology, request.bytes, choice);
  cost.reduction_is_free = true;  // the kernel adds while it forwards, which its bandwidth includes
  cost.eager = true;              // the kernel, or the proxy of a NIC, writes into the next GPU's buffer
  return cost;
}

}  // namespace

WhyNot nccl_why_not(const PlanRequest& request) {
  const auto options = parse_nccl_options(request.variant);
  if (!options)
    return fmt::format(
        "found \"{}\", expected a version, an algorithm (ring, tree, nvls) and a protocol (LL, LL128, "
        "Simple, any), as in nccl:2.18.3/ring/simple",
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
  const Schedule plan = choice.algorithm == NcclAlgorithm::ring   ? plan_rings(part, true, passes_of(request, choice))
                        : choice.algorithm == NcclAlgorithm::tree ? plan_channel_trees(part)
                                                                  : plan_in_network(part);
  Schedule schedule(plan.ranks(), plan.endpoints(), plan.bytes(), plan.stages(),
                    cost_of(request, choice, options.version));
  schedule.set_lanes(plan.lanes());
  const std::string note = nccl_version_note(options.version);
  schedule.set_note(fmt::format("{}, {}{}", to_string(choice.algorithm), to_string(choice.protocol),
                                note.empty() ? "" : "; " + note));
  return schedule;
}

}  // namespace ganymede

// NCCL's all-reduce: the tuner chooses algorithm and protocol (nccl_tuner.hpp); the schedule is that of parallel rings,
// a double tree for each channel, or a reduction in the switches, with the costs of the protocol.
//
// A platform's latencies are taken as those of a hop with Simple inside a node (the catalogs' come from the same
// tables) and with LL between nodes. Another protocol adds, or takes away, the difference that the tables state.
//
// Variants name a version and what is forced, as "2.9.9/ring/simple"; "any" also lets the tuner choose the protocols
// that EFA's plugin forbids.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/collectives/host_paths.hpp"
#include "sim/collectives/nccl_tuner.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

/// Simple cuts each channel's part into chunks of half its buffer: NCCL_BUFFSIZE's default over NCCL_STEPS, times
/// ALLREDUCE_CHUNKSTEPS (NVIDIA/nccl src/init.cc, src/include/collectives.h).
constexpr double kMaxChunkBytesSimple = 4.0 * 1024 * 1024 / 2;

/// Share of a chunk's time on NVLink that its last copy, out of the buffer, adds once: SMs copy hardly faster than
/// NVLink. On PCIe they do, and nothing shows. Fitted to the excess over bandwidth of an nccl-tests all-reduce on 8 x
/// A100-SXM4-80GB (one process a GPU, 2 x 16 MiB .. 4 GiB: 88 us at 16 MiB, 177 us at 128 MiB, 220 us from 256 MiB
/// on), published in a note of "thanos": a100_8_mpi in bench/nccl_logs.py, which counts it as used for that.
constexpr double kLastCopy = 0.65;

/// The number of passes in which LL sends the bytes. Its buffer takes 32 KiB of a channel and rank
/// (NCCL_LL_LINES_PER_THREAD x NCCL_LL_MAX_NTHREADS lines of 8 bytes); more goes in passes, each of which pays the
/// latencies. Between two GPUs over EFA a pass is 128 KiB, as a log shows (aws-samples/aws-do-eks: 185, 363, 719 us for
/// 128, 256, 512 KiB).
std::int64_t passes_of(const PlanRequest& request, const NcclChoice& choice) {
  constexpr std::int64_t kLlBuffer = 32'768, kMaxPasses = 64;
  if (choice.protocol != NcclProtocol::ll) return 1;
  const std::int64_t pass = kLlBuffer * request.topology.ranks * nccl_channels(request.topology);
  return std::clamp<std::int64_t>((request.bytes + pass - 1) / pass, 1, kMaxPasses);
}

bool is_ring_with_simple(const NcclChoice& choice) {
  return choice.algorithm == NcclAlgorithm::ring && choice.protocol == NcclProtocol::simple;
}

/// The time that the last copy out of the buffer adds to the start of a collective; kLastCopy has the measurement.
Seconds last_copy(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  const bool nvlink =
      machine.inside == NcclMachine::Inside::nvlink_mesh || machine.inside == NcclMachine::Inside::nvlink_switch;
  if (!nvlink || !is_ring_with_simple(choice)) return Seconds{0};
  const Bytes chunk{
      std::min(static_cast<double>(bytes) / topology.ranks, kMaxChunkBytesSimple * nccl_channels(topology))};
  return kLastCopy * (chunk / machine.inside_bandwidth);
}

/// The number of channels that share a ring over one NIC.
int channels_of_ring(const Topology& topology) {
  return std::max(1, nccl_channels(topology) / std::max(1, topology.rails));
}

/// The bytes of one slice of all channels of a ring: Simple sends a chunk in two slices (ALLREDUCE_SLICESTEPS).
Bytes slices_of_ring(const Topology& topology, std::int64_t bytes) {
  const double chunk = static_cast<double>(bytes) / topology.ranks / std::max(1, topology.rails);
  return Bytes{std::min(chunk, kMaxChunkBytesSimple * channels_of_ring(topology)) / 2};
}

/// The latency that staging through host memory adds: the first slice is copied there before anything leaves, and the
/// last slice into the GPU after everything has come.
Seconds staging(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  if (machine.staging_bandwidth.si <= 0 || !is_ring_with_simple(choice)) return Seconds{0};
  return 2 * (slices_of_ring(topology, bytes) / machine.staging_bandwidth);
}

/// The rate that one EFA endpoint reaches on p4d; infinite elsewhere. The NIC itself reads messages from 1 MiB up
/// (FI_EFA_INTER_MIN_READ_MESSAGE_SIZE, ofiwg/libfabric pull request 6048); a CPU posts shorter ones packet by packet:
/// 1.78, 10.59 and 152 us for 4 KiB, 64 KiB and 1 MiB through one endpoint (ofiwg/libfabric issue 5694:
/// fi_rdm_tagged_bw between two c5n.18xlarge). A ring has one endpoint a NIC.
BytesPerSecond endpoint_rate(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  constexpr Bytes kMinMessage{480 * 8}, kReadFrom{1024 * 1024};  // at least 8 bytes a thread (prims_simple.h)
  constexpr Seconds kPerMessage{1.2e-6};
  constexpr BytesPerSecond kPacketRate{6.9e9}, kNoLimit{std::numeric_limits<double>::infinity()};
  const NcclMachine& machine = topology.nccl;
  const Bytes message = std::max(kMinMessage, slices_of_ring(topology, bytes) / channels_of_ring(topology));
  const bool in_packets = machine.efa && machine.gpu_direct && machine.generation == NcclMachine::Generation::ampere &&
                          is_ring_with_simple(choice) && message < kReadFrom;
  return in_packets ? message / (kPerMessage + message / kPacketRate) : kNoLimit;
}

ProtocolCost protocol_cost(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  const Topology& topology = request.topology;
  const auto [algorithm, protocol, estimate] = choice;
  // The tuner's factor applies to rings through nodes of several GPUs. With one GPU a node it does not show in logs
  // over TCP (aws-samples/aws-do-eks) and EFA (2 x g4dn.8xlarge, terraform-aws-eks-blueprints).
  const double plateau = topology.gpus_per_node > 1 ? nccl_plateau(topology, request.bytes, algorithm, protocol) : 1;
  ProtocolCost cost;
  cost.start = plateau * nccl_base_latency(algorithm, protocol) + last_copy(topology, request.bytes, choice);
  cost.wire = 1 / nccl_bandwidth_share(topology, algorithm, protocol, version);
  cost.inside = plateau * nccl_inside_hop(topology, algorithm, protocol) -
                nccl_inside_hop(topology, NcclAlgorithm::ring, NcclProtocol::simple);
  cost.between = plateau * nccl_between_hop(topology, algorithm, protocol) - topology.nccl.network_latency;
  cost.between += staging(topology, request.bytes, choice);
  cost.flow_between = endpoint_rate(topology, request.bytes, choice);
  cost.reduction_is_free = true;  // the kernel adds while it forwards; its bandwidth includes that
  cost.eager = true;              // the kernel, or the proxy of a NIC, writes into the next GPU's buffer
  return cost;
}

std::optional<std::string> refuse_nccl(const PlanRequest& request) {
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
  return std::nullopt;
}

/// The schedule of the chosen algorithm, without the protocol's costs.
Schedule schedule_of(PlanRequest request, const NcclChoice& choice) {
  request.variant = "";  // the builders do not know NCCL's variants
  switch (choice.algorithm) {
    case NcclAlgorithm::ring:
      return parallel_rings(request, parallel_ring_orders(request.topology, true, 0), true, passes_of(request, choice));
    case NcclAlgorithm::tree:
      return channel_trees(request);
    case NcclAlgorithm::nvls:
      break;
  }
  return switch_tree(request);
}

Schedule plan_nccl(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  NcclOptions options = *parse_nccl_options(request.variant);
  if (request.collective != Collective::all_reduce) options.algorithm = NcclAlgorithm::ring;
  const NcclChoice choice = *choose_nccl(request.topology, request.bytes, options);
  const Schedule plan = schedule_of(request, choice);
  Schedule schedule(plan.ranks(), plan.endpoints(), plan.bytes(), plan.stages(),
                    protocol_cost(request, choice, options.version));
  schedule.set_lanes(plan.lanes());
  schedule.set_cost(with_host_limits(request.topology, schedule.lanes(), schedule.cost()));
  const std::string note = nccl_version_note(options.version);
  schedule.set_note(fmt::format("{}, {}{}", to_string(choice.algorithm), to_string(choice.protocol),
                                note.empty() ? "" : "; " + note));
  return schedule;
}

}  // namespace

extern const AllReduceScheme nccl_scheme{
    .name = "nccl",
    .summary = "NCCL's choice: ring, tree or NVLS with LL, LL128 or Simple",
    .variants = "version/algorithm/protocol, as 2.18.3/ring",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .planned_by_default = true,
    .plan = plan_nccl,
    .refusal = refuse_nccl,
};

}  // namespace ganymede::sim

#include "sim/collectives/nccl_cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

constexpr BytesPerSecond kNoLimit{std::numeric_limits<double>::infinity()};

/// Simple cuts each channel's part into chunks of half its buffer: NCCL_BUFFSIZE's default over NCCL_STEPS, times
/// ALLREDUCE_CHUNKSTEPS (NVIDIA/nccl src/init.cc, src/include/collectives.h).
constexpr double kMaxChunkBytesSimple = 4.0 * 1024 * 1024 / 2;

/// What a ring with Simple takes beyond its bandwidth and the tuner's latencies behind an NVSwitch: the last copy, out
/// of the buffer, takes a chunk's time on NVLink once, and each hop takes longer where slices are full, for the threads
/// of a channel meet at each. On the links of a mesh neither shows (vTrain's all-reduces on 2 to 8 V100 of a DGX-1-like
/// machine). Both are fitted to vidur's all-reduces on 2, 4 and 8 A100 of a DGX from 4, 8 and 26 MiB on (a100_*_vidur
/// in bench/nccl_logs.py; the smallest slices there have 43 KiB): 24 to 27 % off without them, 4.6, 4.2 and 3.0 % with
/// them. Fitted to two of the three sizes the hop is 5.8 to 9.0 us and the copy 0.95 to 1.6, and the third is 4 to 11 %
/// off. Two logs of 8 A100 that were not used go from 9.5 to 2.4 % and from 6.3 to 4.0 % from 32 MiB on.
constexpr double kLastCopy = 1.05;
constexpr Seconds kFullSliceHop{7e-6};
constexpr Bytes kFullSlice{40.0 * 1024};

/// Share of the NVLinks' rate that a ring with LL128 reaches before Hopper; the tuner assumes 0.92. Fitted to the slope
/// of the middle sizes of a100_8_mpi (8 to 32 MiB: 178 of 235 GB/s of bus bandwidth) and of vTrain's V100 (63 of 85
/// GB/s on 4 GPUs, 67 of 87 on 7, 83 of 134 on 8).
constexpr double kLl128Inside = 0.74;

/// The same for trees with LL128, whose threads send up and down at once, in payload. Slopes from 4 to 32 MiB on two
/// nodes say 0.45 and 0.50 (two pages on Azure's A100), 0.46 (two of p5.48xlarge) and 0.52 (a4-highgpu-8g); sizes from
/// 64 MiB on, for which the tuner takes LL128 too, say 0.74 and more. It lies halfway between, in logarithms.
constexpr double kLl128Tree = 0.6;

/// What NVLSTree reaches of the rate of NVLS, where GPUs hand sums to NICs meanwhile: 0.95 (p5.48xlarge), 0.91 (Nebius)
/// and 0.92 (OCI, BM.GPU.H100.8) at 8 and 16 GiB on two nodes of eight H100; left out in turn, 0.92 to 0.94.
constexpr double kNvlsTreeShare = 0.93;

/// Shares of the NICs' rate that payload reaches in large messages: EFA 87.6 of 100 Gbit/s (p4d_16_efa at 4 GiB),
/// InfiniBand 188.5 of 200 GB/s (dgxa100_16_ib at 4 GiB), both by nccl-tests on two nodes of eight GPUs.
constexpr double kEfaPayload = 0.88, kRdmaPayload = 0.94;

bool is_ring_with_simple(const NcclChoice& choice) {
  return choice.algorithm == NcclAlgorithm::ring && choice.protocol == NcclProtocol::simple;
}

/// How much of what slices and the last copy take on A100 (kFullSliceHop, kLastCopy) a machine shows, behind switches
/// and on meshes (two pages on four A100 of a mesh). Two H100 (microsoft/vidur) lie between all and none of it, V100
/// show none.
double share_of_slices(const NcclMachine& machine) {
  if (!has_nvlink(machine)) return 0;
  if (machine.generation == NcclMachine::Generation::ampere) return 1;
  return machine.generation == NcclMachine::Generation::hopper ? 0.5 : 0;
}

/// The time that the last copy out of the buffer adds to the start of a collective; kLastCopy has the measurement.
Seconds last_copy(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  if (!is_ring_with_simple(choice)) return Seconds{0};
  const Bytes chunk{
      std::min(static_cast<double>(bytes) / topology.ranks, kMaxChunkBytesSimple * nccl_channels(topology))};
  return machine.inside_bandwidth.si > 0 ? share_of_slices(machine) * kLastCopy * (chunk / machine.inside_bandwidth)
                                         : Seconds{0};
}

/// The number of channels that share a ring over one NIC.
int channels_of_ring(const Topology& topology) {
  return std::max(1, nccl_channels(topology) / std::max(1, topology.rails));
}

/// The bytes of one slice of all channels of a ring: Simple sends a chunk in two slices (ALLREDUCE_SLICESTEPS), of
/// which the first has at least 32 KiB if the chunk has (NVIDIA/nccl src/device/prims_simple.h: a 32nd of two steps).
Bytes slices_of_ring(const Topology& topology, std::int64_t bytes) {
  constexpr double kMinSlice = 32.0 * 1024;
  const double channels = channels_of_ring(topology);
  const double part = static_cast<double>(bytes) / topology.ranks / std::max(1, topology.rails) / channels;
  const double chunk = std::min(part, kMaxChunkBytesSimple);
  return Bytes{channels * std::min(chunk, std::max(chunk / 2, kMinSlice))};
}

/// The latency that staging through host memory adds: the first slice is copied there before anything leaves, and the
/// last slice into the GPU after everything has come.
Seconds staging(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  if (machine.staging_bandwidth.si <= 0 || !is_ring_with_simple(choice)) return Seconds{0};
  return 2 * (slices_of_ring(topology, bytes) / machine.staging_bandwidth);
}

/// The share of a hop's latency over PCIe that remains where the bytes of a slice hide the rest of it. Simple sends a
/// chunk in two slices, so the second one is under way while the latency of the first one passes. Fitted to an
/// all-reduce of 1 to 64 MiB on 4 V100 with NCCL 2.4.2 (v100_4_pcie_242 in bench/nccl_logs.py), which goes from 4.0 to
/// 0.4 % off. Those of NCCL 2.8.3 and 2.26.2 on 4 V100 go from 10.8 to 7.7 % and from 2.9 to 1.1 %, those of two GTX
/// 1080 and two RTX 2080 Ti from 2.2 to 2.5 % and from 0.5 to 0.2 %. Fitted to any four of the five logs, it lies
/// between 0 and 0.2 and predicts the fifth one 0.1 to 7.1 % off.
constexpr double kKeptOverPcie = 1.0 / 3;

/// What a full slice adds to each hop. That shorter ones add less in proportion is an assumption:
/// the tuner chooses Simple for none. Between nodes the NICs are slower, and hide it.
Seconds slice_hop(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  if (topology.nodes() > 1 || !is_ring_with_simple(choice)) return Seconds{0};
  const Bytes slice = slices_of_ring(topology, bytes) / channels_of_ring(topology);
  return share_of_slices(topology.nccl) * std::min(1.0, slice / kFullSlice) * kFullSliceHop;
}

/// The time of a hop of a ring on PCIe that its bytes hide.
Seconds hidden(const Topology& topology, std::int64_t bytes, const NcclChoice& choice) {
  const NcclMachine& machine = topology.nccl;
  if (machine.inside != NcclMachine::Inside::pcie || topology.nodes() > 1 || !is_ring_with_simple(choice))
    return Seconds{0};
  return std::min((1 - kKeptOverPcie) * machine.inside_latency,
                  slices_of_ring(topology, bytes) / machine.inside_bandwidth);
}

/// The rate that one EFA endpoint reaches before Hopper's instances; infinite elsewhere. The NIC itself reads messages
/// from 1 MiB up (FI_EFA_INTER_MIN_READ_MESSAGE_SIZE, ofiwg/libfabric pull request 6048); a CPU posts shorter ones
/// packet by packet: 1.78, 10.59 and 152 us for 4 KiB, 64 KiB and 1 MiB through one endpoint (ofiwg/libfabric issue
/// 5694: fi_rdm_tagged_bw between two c5n.18xlarge). That is 1.2 us and 6.9 GB/s; slopes of other instances are 7.3
/// (p4d_16_efa, 32 to 64 MiB) and 7.65 GB/s (p3dn_16_efa, 16 to 128 MiB), and the rate is their mean. With GPUDirect
/// NCCL's proxy also flushes each slice; the tuner counts 3 us for posting, completing and flushing
/// (src/graph/tuning.cc, getNetOverhead, Intel). A ring has one endpoint a NIC, and so have both trees over a NIC
/// together.
BytesPerSecond endpoint_rate(const NcclMachine& machine, Bytes message, NcclVersion version) {
  // Trees with chunks of 256 KiB fill the NICs of two p4de.24xlarge (awslabs/awsome-distributed-training, nccl-tests
  // README, without a version), where NCCL 2.8 and 2.9 did not on p4d: NICs read shorter messages since. That it was
  // with NCCL 2.18 is an assumption.
  constexpr int kReadsShorterSinceMinor = 18;
  const Bytes kReadFrom{(version.known_minor() < kReadsShorterSinceMinor ? 1024.0 : 256.0) * 1024};
  constexpr Bytes kMinMessage{480 * 8};  // at least 8 bytes a thread (prims_simple.h)
  constexpr Seconds kPerMessage{1.2e-6}, kProxy{3e-6};
  constexpr BytesPerSecond kPacketRate{7.5e9};
  message = std::max(kMinMessage, message);
  if (!machine.efa || machine.generation >= NcclMachine::Generation::hopper || message >= kReadFrom) return kNoLimit;
  const Seconds posting = kPerMessage + (machine.gpu_direct ? kProxy : Seconds{0});
  return message / (posting + message / kPacketRate);
}

/// The share of all NICs of a node that one of `lanes` lanes may fill with payload.
BytesPerSecond payload_rate(const Topology& topology, int lanes) {
  const NcclMachine& machine = topology.nccl;
  if (topology.nodes() == 1 || machine.sockets || machine.between_bandwidth.si <= 0) return kNoLimit;
  return (machine.efa ? kEfaPayload : kRdmaPayload) / lanes * machine.between_bandwidth;
}

/// True if lines of LL128 are slower than NVLinks.
bool lines_are_slow(const NcclMachine& machine, NcclProtocol protocol) {
  return protocol == NcclProtocol::ll128 && has_nvlink(machine) && machine.generation < NcclMachine::Generation::hopper;
}

/// The rate of a ring's lane with LL128 over NVLinks, in bytes on the wire.
BytesPerSecond line_rate(const Topology& topology, const NcclChoice& choice, double wire, int lanes) {
  const NcclMachine& machine = topology.nccl;
  return lines_are_slow(machine, choice.protocol) ? kLl128Inside * wire / lanes * machine.inside_bandwidth : kNoLimit;
}

/// The share of a GPU's port that a message of a tree gets while all trees are busy: a GPU in a chain sends each byte
/// up and down. The first GPU and the last one of a chain send it once; that counts where each GPU is at an end in
/// turn, because each or each second one has a NIC. The plan's pipeline is shorter than NCCL's and its bytes are scaled
/// down, so without this limit the ports would carry less than all bytes while it fills.
BytesPerSecond port_share(const Topology& topology, int lanes) {
  const NcclMachine& machine = topology.nccl;
  if (topology.gpus_per_node < 2 || machine.inside == NcclMachine::Inside::nvlink_mesh ||
      machine.inside_bandwidth.si <= 0)
    return kNoLimit;
  const bool in_turn = topology.nodes() > 1 && 2 * topology.rails >= topology.gpus_per_node;
  const double sends = in_turn ? 2 - 2.0 / topology.gpus_per_node : 2;
  return machine.inside_bandwidth / (sends * lanes);
}

/// What a hop between nodes of a ring takes if the tuner's factor applies. The network's rendezvous is no part of it.
Seconds ring_hop(const Topology& topology, const NcclChoice& choice, double plateau) {
  const Seconds rendezvous = choice.protocol == NcclProtocol::simple ? topology.nccl.rendezvous : Seconds{0};
  return plateau * (nccl_between_hop(topology, choice.algorithm, choice.protocol) - rendezvous) + rendezvous;
}

/// The passes of nccl_passes() with a fraction for the last one, which carries what is left.
double passes_of(const PlanRequest& request, const NcclChoice& choice) {
  constexpr double kLlBuffer = 32'768, kMaxPasses = 64;
  if (choice.protocol != NcclProtocol::ll) return 1;
  const double pass = kLlBuffer * request.topology.ranks * nccl_channels(request.topology);
  return std::clamp(static_cast<double>(request.bytes) / pass, 1.0, kMaxPasses);
}

/// The rate at which lines leave one of `lanes` lanes, for each of whose bytes `wire` bytes are counted.
BytesPerSecond line_flow(const Topology& topology, NcclProtocol protocol, double wire, int lanes) {
  constexpr double kPayload = 0.5;
  return kPayload * wire * topology.nccl.nics / lanes * nccl_line_rate(topology, protocol);
}

/// What a hop between nodes adds to the platform's latency.
Seconds beyond_network(const Topology& topology, Seconds hop) {
  return hop - topology.nccl.network_latency - topology.nccl.rendezvous;
}

/// What the latencies of a ring with Simple between nodes add to the time of its bytes, beyond what a schedule pays
/// whose messages overlap. Each of a ring's ranks forwards one chunk at a time, and a chunk takes almost as long inside
/// a node, in a channel's part of the links, as through a NIC: while it travels the NIC waits, and latencies and bytes
/// add up. (NCCL's tuner adds them too.) dgxa100_16_ib takes 240 to 262 us more than its bytes from 64 to 256 MiB.
/// Waiting for a receiver and copies through hosts are under way side by side; a network with a rendezvous hides the
/// rest behind it (a3high_16_tcpx is 5.2 % off without this and 6.5 % with it). p4d_16_efa goes from 8.1 to 6.6 % and
/// p4d_16_efa_283 from 8.8 to 7.1 %.
Seconds not_overlapped(const PlanRequest& request, const NcclChoice& choice, const ProtocolCost& cost, int lanes) {
  const Topology& topology = request.topology;
  const NcclMachine& machine = topology.nccl;
  if (topology.nodes() == 1 || !is_ring_with_simple(choice) || machine.sockets || machine.rendezvous.si > 0)
    return Seconds{0};
  const int ways = request.collective == Collective::all_reduce ? 2 : 1;
  const double ranks = topology.ranks, hops = ways * (ranks - 1), crossings = hops * topology.nodes() / ranks;
  const Bytes wire{cost.wire * hops / ranks * static_cast<double>(request.bytes)};
  const auto time_on = [&](BytesPerSecond rate, BytesPerSecond flow) {
    const BytesPerSecond all = std::min(rate, static_cast<double>(lanes) * flow);
    return all.si > 0 ? wire / all : Seconds{0};
  };
  const Seconds inside = time_on(machine.inside_bandwidth, cost.flow_inside),
                between = time_on(machine.between_bandwidth, cost.flow_between);
  const Seconds way = (hops - crossings) * std::max(Seconds{0}, machine.inside_latency + cost.inside) +
                      crossings * (machine.network_latency + cost.between);
  const double across = crossings / hops;
  const Seconds waiting = crossings * (machine.rendezvous + staging(topology, request.bytes, choice));
  const Seconds overlapped = std::max({inside, between, way + waiting + across * between + (1 - across) * inside});
  return std::max(Seconds{0}, way + std::max(inside, between) - overlapped);
}

/// What the threads of LL add to a ring behind an NVSwitch, beyond the time of its bytes. A thread forwards a word of 8
/// bytes, waits for its flag, and goes on to its next word. Small sizes take fewer channels (nccl_step_of_lines), so
/// that each thread has one word of each rank: up to the size that fills all channels they take one turn of the threads
/// at each hop. The tuner's highest rate of LL tells how long a turn is by generation: 4 KiB of each channel at 87.7
/// GB/s on A100, at 141 GB/s on H100. One word arrives sooner than those of all threads; in between the time grows with
/// the logarithm. The share is fitted to what p5_8 and a100_8_mpi take from 64 to 256 KiB more than for 8 bytes, 0.69
/// and 0.65 of the turns. Their sizes below 64 KiB go from 27.4 and 19.9 to 7.1 and 6.6 % off, those up to 1 MiB
/// from 26.3 and 25.0 to 3.9 and 7.5 %; h200_8, which was not used, goes there from 8.4 to 2.1 %, a100_8, whose program
/// waits for each launch, from 22.6 to 33.6 %. On the links of a mesh it does not show (v100_8_mesh).
Seconds turns_of_threads(const PlanRequest& request, const NcclChoice& choice) {
  constexpr double kShare = 0.65, kWord = 8, kThreads = 512;
  const Topology& topology = request.topology;
  const bool takes_turns =
      has_nvlink(topology.nccl) && topology.nccl.generation >= NcclMachine::Generation::ampere && topology.nodes() == 1;
  if (!takes_turns || choice.protocol != NcclProtocol::ll) return Seconds{0};
  const double words = std::max(1.0, static_cast<double>(request.bytes) / kWord), full = kThreads * topology.ranks;
  const double fill = std::min(1.0, portable_log(words) / portable_log(full));
  const Seconds turn = Bytes{kThreads * kWord * nccl_channels(topology)} / nccl_ll_rate(topology);
  const int ways = request.collective == Collective::all_reduce ? 2 : 1;
  const double hops = ways * (topology.ranks - 1);
  const Seconds of_bytes = Bytes{hops / topology.ranks * static_cast<double>(request.bytes)} / nccl_ll_rate(topology);
  return std::max(Seconds{0}, kShare * fill * hops * turn - of_bytes);
}

/// What a hop with LL takes less behind an NVSwitch from Hopper on than the tables say, which are the same for all
/// GPUs: its share is that of the tuner's highest rates of LL on A100 and H100, 87.7 and 141 GB/s. (p5_8 takes 0.75 of
/// the tables' time at 8 bytes, a100_8_mpi 1.6.)
Seconds sooner_on_hopper(const Topology& topology, const NcclChoice& choice) {
  constexpr double kShare = 87.7 / 141;
  const NcclMachine& machine = topology.nccl;
  const bool hopper = machine.generation >= NcclMachine::Generation::hopper && topology.nodes() == 1 &&
                      machine.inside == NcclMachine::Inside::nvlink_switch && choice.protocol == NcclProtocol::ll;
  return hopper ? (1 - kShare) * nccl_inside_hop(topology, choice.algorithm, choice.protocol) : Seconds{0};
}

ProtocolCost of_kernel() {
  ProtocolCost cost;
  cost.reduction_is_free = true;  // the kernel adds while it forwards; its bandwidth includes that
  cost.eager = true;              // the kernel, or the proxy of a NIC, writes into the next GPU's buffer
  return cost;
}

}  // namespace

// LL's buffer takes 32 KiB of a channel and rank (NCCL_LL_LINES_PER_THREAD x NCCL_LL_MAX_NTHREADS lines of 8 bytes);
// more goes in passes, each of which pays the latencies. Between two GPUs over EFA a pass is 128 KiB, as a log shows
// (aws-samples/aws-do-eks: 185, 363, 719 us for 128, 256, 512 KiB).
std::int64_t nccl_passes(const PlanRequest& request, const NcclChoice& choice) {
  return static_cast<std::int64_t>(std::ceil(passes_of(request, choice)));
}

ProtocolCost nccl_ring_cost(const PlanRequest& request, const NcclChoice& choice, NcclVersion version, int lanes) {
  const Topology& topology = request.topology;
  const auto [algorithm, protocol, estimate] = choice;
  // The tuner's factor applies to rings through nodes of several GPUs. With one GPU a node it does not show in logs
  // over TCP (aws-samples/aws-do-eks) and EFA (2 x g4dn.8xlarge, terraform-aws-eks-blueprints).
  const double plateau = topology.gpus_per_node > 1 ? nccl_plateau(topology, request.bytes, algorithm, protocol) : 1;
  ProtocolCost cost = of_kernel();
  cost.start = plateau * nccl_base_latency(algorithm, protocol) + last_copy(topology, request.bytes, choice) +
               turns_of_threads(request, choice);
  cost.wire = 1 / nccl_bandwidth_share(topology, algorithm, protocol, version);
  cost.inside = plateau * nccl_inside_hop(topology, algorithm, protocol) -
                nccl_inside_hop(topology, NcclAlgorithm::ring, NcclProtocol::simple);
  // The latencies of the last pass count in proportion to its bytes, so a byte more does not cost a pass more. This is
  // an assumption: the sizes of logs make whole passes.
  const double passes = passes_of(request, choice), share = passes / std::ceil(passes);
  cost.inside = share * (topology.nccl.inside_latency + cost.inside) - topology.nccl.inside_latency;
  const Seconds passing = hidden(topology, request.bytes, choice);
  cost.inside += slice_hop(topology, request.bytes, choice) - passing - sooner_on_hopper(topology, choice);
  cost.start += passing;  // nothing hides that of the last slice
  cost.between =
      beyond_network(topology, share * (ring_hop(topology, choice, plateau) + nccl_step_of_lines(request, choice)));
  cost.flow_inside = line_rate(topology, choice, cost.wire, lanes);
  cost.flow_between = std::min(payload_rate(topology, lanes), line_flow(topology, choice.protocol, cost.wire, lanes));
  if (is_ring_with_simple(choice)) {
    const Bytes slice = slices_of_ring(topology, request.bytes) / channels_of_ring(topology);
    cost.flow_between = std::min(cost.flow_between, endpoint_rate(topology.nccl, slice, version));
  }
  cost.start += not_overlapped(request, choice, cost, lanes);
  cost.between += staging(topology, request.bytes, choice);
  return cost;
}

ProtocolCost nccl_tree_cost(const PlanRequest& request, const NcclChoice& choice, NcclVersion version,
                            const NcclPipeline& pipeline, int lanes) {
  const Topology& topology = request.topology;
  const bool switches = choice.algorithm != NcclAlgorithm::tree;
  ProtocolCost cost = of_kernel();
  cost.start = nccl_base_latency(choice.algorithm, choice.protocol);
  const double share = nccl_bandwidth_share(topology, choice.algorithm, choice.protocol, version);
  cost.wire = pipeline.byte_factor() / share;
  // A hop to the switch of a node takes half of the latency between two GPUs.
  cost.inside = pipeline.latency_share * pipeline.inside - (switches ? 0.5 : 1) * topology.nccl.inside_latency;
  cost.between = beyond_network(topology, pipeline.latency_share * pipeline.between);
  // The factor on the bytes holds if all hops are as slow as the slowest. Where that is the network, only the hops
  // between nodes fill the pipeline, and all bytes must pass a NIC at its real rate.
  const NcclMachine& machine = topology.nccl;
  BytesPerSecond rate = machine.sockets ? machine.between_bandwidth / lanes : payload_rate(topology, lanes);
  rate = std::min(rate, line_flow(topology, choice.protocol, 1 / share, lanes));
  if (choice.protocol == NcclProtocol::simple) {
    const double chunk = static_cast<double>(request.bytes) / pipeline.real_chunks / nccl_channels(topology);
    rate = std::min(rate, 0.5 * endpoint_rate(topology.nccl, Bytes{chunk}, version));
  }
  if (!switches) {
    const bool lines = choice.protocol == NcclProtocol::ll128 && has_nvlink(machine);
    cost.flow_inside = (lines ? std::min(1.0, kLl128Tree / share) : 1) * port_share(topology, lanes);
  }
  BytesPerSecond rate_inside = nccl_switch_rate(topology);
  if (choice.algorithm == NcclAlgorithm::nvls_tree) rate_inside = kNvlsTreeShare * rate_inside;
  if (switches) cost.flow_inside = rate_inside / lanes;
  cost.flow_between = (switches ? pipeline.rate_between(cost.flow_inside / rate) : pipeline.rate_between()) * rate;
  if (switches) {
    // The first chunk is copied into a buffer that the switches know, and the last one out of it.
    cost.start += Bytes{static_cast<double>(request.bytes) / pipeline.real_chunks} / rate_inside;
  }
  return cost;
}

}  // namespace ganymede::sim

// What NCCL's messages between nodes cost: the first chunk of a tree, copies through hosts, sockets, and what the tuner
// does not know of it.

#include <gtest/gtest.h>

#include "common/units.hpp"
#include "sim/collectives/host_paths.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/collectives/nccl_pipeline.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;

/// Nodes of one GPU with one NIC.
Topology single_gpus(int nodes) {
  Topology topology = flat(nodes);
  topology.nccl = {NcclMachine::Generation::volta, NcclMachine::Inside::none, BytesPerSecond{0}, 5_GB_per_s, 1, 15_us};
  return topology;
}

NcclPipeline tree_of(const Topology& topology, std::int64_t bytes, NcclProtocol protocol) {
  return nccl_pipeline({topology, bytes, Collective::all_reduce, ""}, {NcclAlgorithm::tree, protocol, Seconds{0}});
}

// One chunk of each of two trees, halves of the bytes. Between two nodes each half goes up and down over one direction
// of the link: S/B together. In a chain of three nodes there are two such hops; the middle of a tree of four has two
// children, from which it receives both halves, and sends both back: 1 + 2 x 1. Eight nodes have one such level more.
TEST(NcclNetwork, TheFirstChunkPassesEachHopOfItsWay) {
  const auto crossing = [](int nodes) {
    return tree_of(single_gpus(nodes), 1 << 14, NcclProtocol::simple).first_crossing;
  };
  EXPECT_EQ(crossing(2), 1);
  EXPECT_EQ(crossing(3), 2);
  EXPECT_EQ(crossing(4), 3);
  EXPECT_EQ(crossing(5), 5);
  EXPECT_EQ(crossing(8), 5);
}

// 64 KiB between two nodes are one chunk of 32 KiB for each channel. The schedule's pipeline plans two hops, one after
// the other, so its messages must be twice as fast as the link for the first crossing to take S/B.
TEST(NcclNetwork, AShortTreeFillsBothDirectionsOfALink) {
  const NcclPipeline pipeline = tree_of(single_gpus(2), 1 << 16, NcclProtocol::simple);
  EXPECT_EQ(pipeline.real_chunks, 1);
  EXPECT_EQ(pipeline.rate_between(), 2);
}

// A tree's chunk is copied into the host's memory and out of it at each hop; two hops, up and down, at 12 GB/s. Lines
// of LL are written there in any case.
TEST(NcclNetwork, WithoutGpuDirectEachChunkIsStaged) {
  Topology topology = single_gpus(2);
  const Seconds simple = tree_of(topology, 1 << 16, NcclProtocol::simple).way,
                ll = tree_of(topology, 1 << 16, NcclProtocol::ll).way;
  topology.nccl.gpu_direct = false;
  topology.nccl.staging_bandwidth = 12_GB_per_s;
  EXPECT_NEAR((tree_of(topology, 1 << 16, NcclProtocol::simple).way - simple).si, 2 * 2 * 65536 / 12e9, 1e-12);
  EXPECT_EQ(tree_of(topology, 1 << 16, NcclProtocol::ll).way, ll);
}

TEST(NcclNetwork, WithoutGpuDirectTheFirstAndTheLastSliceAreStaged) {
  Topology topology = single_gpus(2);
  const auto between = [&](std::int64_t bytes, const char* variant) {
    return parse_scheme(std::string("nccl:") + variant)
        .plan({topology, bytes, Collective::all_reduce, ""})
        .cost()
        .between;
  };
  const Seconds direct = between(1 << 20, "ring/simple"), ll = between(1 << 20, "ring/ll");
  topology.nccl.gpu_direct = false;
  topology.nccl.staging_bandwidth = 12_GB_per_s;
  // A megabyte in chunks of a half, in slices of a quarter: two of them at 12 GB/s.
  EXPECT_NEAR((between(1 << 20, "ring/simple") - direct).si, 2 * (1 << 18) / 12e9, 1e-9);
  EXPECT_EQ(between(1 << 20, "ring/ll"), ll);
  EXPECT_EQ(between(std::int64_t{1} << 30, "ring/simple"), between(std::int64_t{1} << 32, "ring/simple"));
}

// Messages of LL are too short to be split over several sockets. Half of their bytes are flags.
TEST(NcclNetwork, LlTakesOneSocket) {
  Topology topology = single_gpus(2);
  topology.nccl.sockets = true;
  topology.nccl.socket_connections = 16;
  const ProtocolCost split = with_host_limits(topology, 1, {}), whole = with_host_limits(topology, 1, {}, 1, true);
  EXPECT_EQ(split.connections, 16);
  EXPECT_EQ(whole.connections, 1);
  EXPECT_GT(split.flow_between, 2 * whole.flow_between);
  for (const auto algorithm : {NcclAlgorithm::ring, NcclAlgorithm::tree})
    EXPECT_EQ(nccl_bandwidth_share(topology, algorithm, NcclProtocol::ll, NcclVersion{}), 0.5);
  topology.nccl.socket_connections = 0;  // a measured link: how many sockets there were is not known
  EXPECT_EQ(nccl_bandwidth_share(topology, NcclAlgorithm::ring, NcclProtocol::ll, NcclVersion{}), 0.25);
}

// NCCL's own plugins for InfiniBand and sockets report no latency, so the tuner's choices do not depend on it. A plugin
// that brings its own tuner knows it.
TEST(NcclNetwork, TheTunerDoesNotKnowTheNetworksLatency) {
  Topology near = single_gpus(4), far = single_gpus(4);
  far.nccl.network_latency = 500_us;
  const auto estimate = [](const Topology& topology) {
    return choose_nccl(topology, 1 << 16, *parse_nccl_options("ring/simple"))->estimate;
  };
  EXPECT_EQ(estimate(near), estimate(far));
  near.nccl.rendezvous_in_tuner = far.nccl.rendezvous_in_tuner = true;
  EXPECT_LT(estimate(near), estimate(far));
}

/// Two nodes of eight GPUs with a NIC each, so two channels a NIC.
Topology two_of_eight() {
  Topology topology = clustered(16, 8);
  topology.rails = 8;
  topology.nccl = {
      NcclMachine::Generation::ampere, NcclMachine::Inside::nvlink_switch, 240_GB_per_s, 200_GB_per_s, 8, 5_us};
  topology.nccl.inside_latency = 3.4_us;
  return topology;
}

// From Hopper on, few channels over NICs of 400 Gbit/s are doubled, so that two GPUs of a node fill theirs.
TEST(NcclNetwork, FewChannelsOverFastNicsAreDoubled) {
  Topology topology = clustered(4, 2);
  topology.rails = 2;
  topology.nccl = {
      NcclMachine::Generation::hopper, NcclMachine::Inside::nvlink_switch, 370_GB_per_s, 100_GB_per_s, 2, 5_us};
  EXPECT_EQ(nccl_channels(topology), 8);
  topology.nccl.between_bandwidth = 50_GB_per_s;  // 200 Gbit/s each
  EXPECT_EQ(nccl_channels(topology), 4);
  topology.nccl.between_bandwidth = 400_GB_per_s, topology.nccl.nics = 8;  // enough channels without it
  EXPECT_EQ(nccl_channels(topology), 16);
  topology.nccl.between_bandwidth = 100_GB_per_s, topology.nccl.nics = 2;
  topology.nccl.generation = NcclMachine::Generation::ampere;
  EXPECT_EQ(nccl_channels(topology), 4);
}

// A part of one step of one channel; one channel's 4 KiB; one on each NIC; two on each; and whole steps of 32 KiB of
// two channels. Each has as many flags, and a NIC's lines pass at 7 GB/s. A channel of a ring of 16 has 4 KiB of each
// rank.
TEST(NcclNetwork, LinesOfLlPassTheHostsByChannelsAndSteps) {
  const Topology topology = two_of_eight();
  ASSERT_EQ(nccl_channels(topology), 16);
  const auto step = [&](std::int64_t bytes, NcclAlgorithm algorithm, NcclProtocol protocol) {
    return nccl_step_of_lines({topology, bytes, Collective::all_reduce, ""}, {algorithm, protocol, Seconds{0}}).si;
  };
  const auto of_tree = [&](std::int64_t bytes) { return step(bytes, NcclAlgorithm::tree, NcclProtocol::ll); };
  EXPECT_DOUBLE_EQ(of_tree(1 << 10), 2 * 1024 / 7e9);
  EXPECT_DOUBLE_EQ(of_tree(4 << 10), 2 * 4096 / 7e9);
  EXPECT_DOUBLE_EQ(of_tree(32 << 10), 2 * 4096 / 7e9);
  EXPECT_DOUBLE_EQ(of_tree(64 << 10), 2 * 2 * 4096 / 7e9);
  EXPECT_DOUBLE_EQ(of_tree(512 << 10), 2 * 2 * 32768 / 7e9);
  EXPECT_DOUBLE_EQ(of_tree(64 << 20), of_tree(512 << 10));
  EXPECT_DOUBLE_EQ(step(64 << 10, NcclAlgorithm::ring, NcclProtocol::ll), 2 * 4096 / 7e9);
  EXPECT_EQ(step(512 << 10, NcclAlgorithm::tree, NcclProtocol::ll128), 0);
}

// Bytes at InfiniBand's payload, the latencies of 30 hops, of which 3.75 cross the network, and the last copy of a
// chunk of each channel: none hides another.
TEST(NcclNetwork, LatenciesOfARingAndItsBytesAddUp) {
  const Topology topology = two_of_eight();
  const NcclChoice choice{NcclAlgorithm::ring, NcclProtocol::simple, Seconds{0}};
  const auto expected = [&](std::int64_t bytes) {
    return nccl_expected_time({topology, bytes, Collective::all_reduce, ""}, choice, NcclVersion{}).si;
  };
  const double of_bytes = 2.0 * 15 / 16 * (512 << 20) / (0.94 * 200e9);
  const double latencies = 1.4 * (8.4 + 26.25 * 3.4 + 3.75 * 14) * 1e-6;
  EXPECT_NEAR(expected(512 << 20), of_bytes + latencies + 1.05 * (32 << 20) / 240e9, 1e-6);
}

// Behind a switch, a turn of all threads of 24 channels takes 24 x 4 KiB at the tuner's 87.7 GB/s on each of 14 hops; 8
// bytes are one word, 64 words of 4,096 half of the logarithm. At 512 KiB the bytes themselves take longer, and on
// Hopper a hop and a turn are shorter.
TEST(NcclNetwork, SmallSizesOfLlTakeOneTurnOfTheThreads) {
  Topology topology = clustered(8, 8);
  topology.nccl = {NcclMachine::Generation::ampere, NcclMachine::Inside::nvlink_switch, 240_GB_per_s};
  ASSERT_EQ(nccl_channels(topology), 24);
  const auto cost = [&](std::int64_t bytes, const char* variant = "nccl:ring/ll") {
    return parse_scheme(variant).plan({topology, bytes, Collective::all_reduce, ""}).cost();
  };
  const auto beyond = [&](std::int64_t bytes) {
    return cost(bytes).start.si - 6.6e-6 + 1.75 * static_cast<double>(bytes) / 87.7e9;
  };
  const double turns = 0.65 * 14 * 24 * 4096 / 87.7e9;
  EXPECT_NEAR(cost(8).start.si, 6.6e-6, 1e-12);
  EXPECT_NEAR(beyond(8 * 64), turns / 2, 1e-9);
  EXPECT_NEAR(beyond(8 * 4096), turns, 1e-9);
  EXPECT_NEAR(beyond(256 << 10), turns, 1e-9);
  EXPECT_NEAR(cost(512 << 10).start.si, 6.6e-6, 1e-12);
  const double inside = cost(8).inside.si;
  topology.nccl.generation = NcclMachine::Generation::hopper;
  EXPECT_NEAR(cost(8).inside.si, inside - (1 - 87.7 / 141) * 0.6e-6, 1e-12);
  EXPECT_LT(cost(8 * 4096).start.si, 6.6e-6 + turns * 0.63);
  topology.nccl.generation = NcclMachine::Generation::volta;  // a DGX-1 shows none
  EXPECT_NEAR(cost(8 * 4096).start.si, 6.6e-6, 1e-12);
}

}  // namespace
}  // namespace ganymede::sim

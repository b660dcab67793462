// What NCCL's messages between nodes cost: the first chunk of a tree, copies through hosts, sockets, and what the tuner
// does not know of it.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ganymede::sim

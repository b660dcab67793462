// NCCL's choices on machines for which they are known, and the effect of a choice on the schedule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/collectives/nccl_cost.hpp"
#include "sim/collectives/nccl_tuner.hpp"
#include "verify.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Eight A100 behind NVSwitch in each node, four NICs of 100 Gbit/s.
Topology a100(int nodes) {
  Topology topology = clustered(8 * nodes, 8);
  topology.rails = 4;
  topology.nccl = {
      NcclMachine::Generation::ampere, NcclMachine::Inside::nvlink_switch, 240_GB_per_s, 50_GB_per_s, 4, 15_us};
  return topology;
}

NcclChoice choice(const Topology& topology, std::int64_t bytes, const char* variant = "") {
  return choose_nccl(topology, bytes, *parse_nccl_options(variant)).value();
}

TEST(Nccl, TakesLowLatencyForSmallAndBandwidthForLarge) {
  for (const int nodes : {1, 2, 4}) {
    EXPECT_EQ(choice(a100(nodes), 8).protocol, NcclProtocol::ll);
    EXPECT_EQ(choice(a100(nodes), std::int64_t{1} << 32).protocol, NcclProtocol::simple);
    EXPECT_EQ(choice(a100(nodes), std::int64_t{1} << 32).algorithm,
              nodes == 2 ? NcclAlgorithm::tree : NcclAlgorithm::ring);
    EXPECT_EQ(choice(a100(nodes), 4 << 20).protocol, NcclProtocol::ll128);
  }
  EXPECT_EQ(choice(a100(64), 8).algorithm, NcclAlgorithm::tree);  // 1,024 hops against 20
}

// Calculated by hand for one node: ring LL takes 6.6 + 14 x 0.6 us and 8 bytes at min(87.7, half of 240) x 8/14 GB/s.
TEST(Nccl, EstimatesAsTheTunerDoes) {
  const Seconds estimate = choice(a100(1), 1 << 20, "ring/ll").estimate;
  EXPECT_NEAR(estimate.si, (6.6 + 14 * 0.6) * 1e-6 + (1 << 20) / (87.7e9 * 8 / 14), 1e-12);
  // Two nodes, Simple: 8.4 + 28 x 3.4 us + 2 hops of 14 us, for no latency is reported, at 50 GB/s.
  const Seconds two = choice(a100(2), 1 << 30, "ring/simple").estimate;
  EXPECT_NEAR(two.si, 1.4 * (8.4 + 28 * 3.4 + 2 * 14) * 1e-6 + (1 << 30) / (50e9 * 16 / 30), 1e-9);
}

TEST(Nccl, KnowsWhatAMachineCannotDo) {
  Topology pcie = clustered(4, 4);
  pcie.nccl = {NcclMachine::Generation::volta, NcclMachine::Inside::pcie, 12_GB_per_s};
  EXPECT_FALSE(choose_nccl(pcie, 1 << 20, *parse_nccl_options("ll128")));
  EXPECT_FALSE(choose_nccl(a100(1), 1 << 20, *parse_nccl_options("nvls")));
  Topology hopper = clustered(8, 8);
  hopper.node_switch = true;
  hopper.nccl = {NcclMachine::Generation::hopper, NcclMachine::Inside::nvlink_switch, 370_GB_per_s};
  EXPECT_EQ(choice(hopper, 1 << 30).algorithm, NcclAlgorithm::nvls);
  EXPECT_NE(choice(hopper, 1 << 30, "2.9.9").algorithm, NcclAlgorithm::nvls);
  EXPECT_THAT(
      [&] {
        parse_scheme("nccl:nvls").plan({pcie, 1024, Collective::all_reduce, ""});
      },
      ThrowsMessage<ConfigError>(HasSubstr("does not use nvls")));
}

TEST(Nccl, ConstantsGoWithTheVersion) {
  EXPECT_EQ(nccl_bandwidth_share(a100(2), NcclAlgorithm::ring, NcclProtocol::ll, {2, 28}), 0.5);
  EXPECT_EQ(nccl_bandwidth_share(a100(2), NcclAlgorithm::ring, NcclProtocol::ll, {2, 9}), 0.25);
  EXPECT_EQ(nccl_version_note(*parse_nccl_options("2.18")), "");
  EXPECT_THAT(nccl_version_note(*parse_nccl_options("3.1")), HasSubstr("3.1"));
  EXPECT_THAT(parse_scheme("nccl:3.1").plan({a100(1), 1024, Collective::all_reduce, ""}).note(),
              HasSubstr("not known"));
}

TEST(Nccl, WhatAnotherVersionWouldChangeIsSaid) {
  const std::string text = nccl_version_effect(a100(1), 64 << 20, "ring/ll");
  EXPECT_THAT(text, testing::AllOf(HasSubstr("NCCL 2.28 is assumed"), HasSubstr("the time with 2.8, 2.14")));
  EXPECT_EQ(nccl_version_effect(a100(2), 1 << 12, "2.18.3"), "");
  EXPECT_THAT(nccl_version_effect(a100(1), 1 << 30, "ring/simple"), HasSubstr("the same time with any version"));
  EXPECT_EQ(nccl_version_effect(a100(1), 1 << 30, "ring/simple", /*least=*/0.05), "");
}

TEST(Nccl, AVersionOfThePlatformIsThatOfSchemesWithoutOne) {
  Topology old = a100(2);
  old.nccl.minor = 8;
  const auto note = [&](const char* scheme) {
    return parse_scheme(scheme).plan({old, 1 << 28, Collective::all_reduce, ""}).note();
  };
  EXPECT_EQ(parse_nccl_options("2.18", old.nccl)->version, (NcclVersion{2, 18}));
  EXPECT_EQ(note("nccl"), note("nccl:2.8"));
  EXPECT_THAT(nccl_version_effect(old, 1 << 28, "", /*least=*/9), HasSubstr("NCCL 2.8 is the platform's; an all-red"));
}

TEST(Nccl, TheScheduleCarriesTheProtocolsCosts) {
  const auto cost = [](const char* variant) {
    return parse_scheme(std::string("nccl:") + variant).plan({a100(2), 1 << 20, Collective::all_reduce, ""}).cost();
  };
  EXPECT_DOUBLE_EQ(cost("ring/simple").wire, 1);
  EXPECT_DOUBLE_EQ(cost("ring/ll128").wire, 1 / 0.92);
  EXPECT_DOUBLE_EQ(cost("ring/ll").wire, 2);
  EXPECT_NEAR(cost("ring/ll").start.si, 6.6e-6, 1e-15);
  EXPECT_NEAR(cost("ring/ll").inside.si, (0.6 - 3.4) * 1e-6, 1e-15);
  // A channel's 4 KiB for each rank, and as many flags, at the rate of the hosts.
  EXPECT_NEAR(cost("ring/ll").between.si, 2 * 2 * 8192 / 7e9, 1e-12);
  // The table's 14 us or the network's latency, times the tuner's factor for full channels.
  const double latency = a100(2).nccl.network_latency.si;
  EXPECT_NEAR(cost("ring/simple").between.si, 1.4 * std::max(14e-6, latency) - latency, 1e-12);
}

// ---- what networks do to it ----

/// Two nodes of one GPU each, as g4dn or p3.2xlarge are.
Topology two_nodes(NcclMachine::Generation generation) {
  Topology topology = clustered(2, 1);
  topology.nccl.generation = generation;
  topology.nccl.between_bandwidth = 5_GB_per_s;
  topology.nccl.network_latency = 30_us;
  return topology;
}

Schedule planned(const Topology& topology, std::int64_t bytes, const std::string& variant) {
  return parse_scheme("nccl:" + variant).plan({topology, bytes, Collective::all_reduce, ""});
}

TEST(Nccl, EfasPluginKeepsToSimpleBeforeHopper) {
  Topology topology = a100(2);
  topology.nccl.efa = true;
  EXPECT_EQ(choice(topology, 8).protocol, NcclProtocol::simple);
  EXPECT_EQ(choice(topology, 8, "2.4.8").protocol, NcclProtocol::ll);  // from before the plugin's advice
  EXPECT_EQ(choice(topology, 8, "any").protocol, NcclProtocol::ll);
  EXPECT_EQ(choice(topology, 8, "ll").protocol, NcclProtocol::ll);  // NCCL_PROTO overrides the plugin
  topology.nccl.generation = NcclMachine::Generation::hopper;
  EXPECT_EQ(choice(topology, 8).protocol, NcclProtocol::ll);
}

// On p4d messages below 1 MiB leave in packets that a CPU posts; with two channels a NIC and sixteen ranks these are
// sizes below 256 MiB.
TEST(Nccl, EfaSendsShortMessagesInPackets) {
  Topology topology = a100(2);
  topology.nccl.efa = true;
  ASSERT_EQ(nccl_channels(topology), 8);
  const auto limit = [&](std::int64_t bytes) {
    return planned(topology, bytes, "2.9.9/ring/simple").cost().flow_between.si;
  };
  EXPECT_NEAR(limit(std::int64_t{256} << 20), 0.88 * 12.5e9, 1);  // the payload of one NIC
  // A message takes 1.2 us of libfabric, 3 us of NCCL's proxy, and its packets.
  EXPECT_NEAR(limit((std::int64_t{256} << 20) - 16), 1048576 / (4.2e-6 + 1048576 / 7.5e9), 1e6);
  EXPECT_NEAR(limit(16 << 20), 65536 / (4.2e-6 + 65536 / 7.5e9), 1e3);  // 16 MiB / 16 ranks / 8 channels / 2 slices
  EXPECT_NEAR(limit(4 << 20), 32768 / (4.2e-6 + 32768 / 7.5e9), 1e3);   // 32 KiB are one slice
  EXPECT_EQ(limit(8), limit(1024));
  topology.nccl.gpu_direct = false;  // nothing is flushed
  EXPECT_NEAR(limit(16 << 20), 65536 / (1.2e-6 + 65536 / 7.5e9), 1e3);
  // Other networks have no packets, and neither have Hopper's instances, which write by RDMA.
  for (const bool efa : {false, true}) {
    topology.nccl.efa = efa;
    if (efa) topology.nccl.generation = NcclMachine::Generation::hopper;
    EXPECT_NEAR(limit(16 << 20), (efa ? 0.88 : 0.94) * 12.5e9, 1);
  }
}

// ---- trees and switches ----

/// Eight Hopper GPUs behind reducing switches in each node.
Topology hopper(int nodes) {
  Topology topology = clustered(8 * nodes, 8);
  topology.rails = 8;
  topology.node_switch = true;
  topology.nccl = {
      NcclMachine::Generation::hopper, NcclMachine::Inside::nvlink_switch, 370.8_GB_per_s, 400_GB_per_s, 8, 15_us};
  topology.nccl.inside_latency = 3.4_us;
  return topology;
}

// A rank sends a chunk to the switch in each round, and gets one from it: chunks + 1 rounds. They pass in pairs, one up
// while the other one comes down, so an even number of rounds pays what remains of a hop's latency. Their sum must be
// the latency of one way up and down, 25 us by the tuner's table.
TEST(Nccl, LatencyIsPaidByDepthAndNotByChunk) {
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{64} << 20, std::int64_t{8} << 30}) {
    const Schedule nvls = planned(hopper(1), bytes, "nvls");
    const double hop = nvls.cost().inside.si + 3.4e-6 / 2;  // the platform's latency to the switch is half of a pair's
    EXPECT_NEAR(static_cast<double>(nvls.rounds() / 2 * 2) * hop, 25e-6, 1e-9) << bytes;
  }
  // Trees: the hops of the longest way up and down. Seven of 4 us (the platform's 3.4 and 0.6 of the table) on one
  // node.
  const Schedule tree = planned(a100(1), 64 << 20, "tree/simple");
  const double chunks = static_cast<double>(tree.rounds()) - 13;
  EXPECT_NEAR(tree.cost().inside.si * (14 + 2 * std::floor((chunks - 1) / 2)), 14 * 0.6e-6, 1e-9);
}

// Each GPU sends its bytes to the switch and an eighth to all others, and receives as much.
TEST(Nccl, SwitchesCarryTheBytesOnceAndAShareAgain) {
  for (const int gpus : {4, 8}) {
    Topology topology = hopper(1);
    topology.ranks = topology.gpus_per_node = gpus;
    EXPECT_NEAR(nccl_switch_rate(topology).si, 0.827 * 370.8e9 / (1 + 1.0 / gpus), 1);
  }
  EXPECT_NEAR(planned(hopper(1), 1 << 30, "nvls").cost().flow_inside.si, nccl_switch_rate(hopper(1)).si, 1);
  // What NCCL 2.27 chose for 8 GiB on 4 to 8 of eight H200 (stas00/ml-engineering network/README.md).
  for (int gpus = 4; gpus <= 8; ++gpus) {
    Topology topology = hopper(1);
    topology.ranks = topology.gpus_per_node = gpus;
    EXPECT_EQ(choice(topology, std::int64_t{8} << 30, "2.27.7").algorithm,
              gpus == 4 ? NcclAlgorithm::ring : NcclAlgorithm::nvls)
        << gpus;
  }
}

// NVLSTree: each GPU is the head of two trees on a sixteenth of the bytes, so all NICs work, and both of two nodes send
// all bytes once.
TEST(Nccl, TreesOverSwitchesUseTheNicOfEachGpu) {
  for (const int nodes : {2, 3, 4}) {
    const Schedule schedule = planned(hopper(nodes), 1 << 20, "nvls-tree");
    EXPECT_EQ(schedule.lanes(), 16);
    EXPECT_TRUE(is_complete(schedule, Collective::all_reduce)) << nodes;
  }
  const Topology two = hopper(2);
  const Schedule schedule = planned(two, 1 << 20, "nvls-tree");
  std::vector<std::int64_t> sent(16);
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& transfer : transfers)
      if (transfer.source < 16 && transfer.destination < 16)
        sent[static_cast<std::size_t>(transfer.source)] += transfer.length;
  }
  EXPECT_THAT(sent, testing::Each(schedule.bytes() / 8));
  EXPECT_EQ(choice(two, std::int64_t{8} << 30).algorithm, NcclAlgorithm::nvls_tree);
  EXPECT_FALSE(choose_nccl(two, 1 << 30, *parse_nccl_options("2.17.1/nvls-tree")));
  EXPECT_FALSE(choose_nccl(hopper(1), 1 << 30, *parse_nccl_options("nvls-tree")));
}

// Between two nodes a tree's NVLinks may carry twice what its NICs carry, so the tuner counts 0.92 x 100 / 2 GB/s, and
// 16/30 of 50 GB/s for a ring.
TEST(Nccl, TreesWinBetweenTwoNodes) {
  const Seconds tree = choice(a100(2), std::int64_t{1} << 36, "tree/simple").estimate;
  EXPECT_NEAR((std::int64_t{1} << 36) / tree.si, 0.92 * 100e9 / 2, 1e9);
  EXPECT_EQ(choice(a100(2), std::int64_t{1} << 36).algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(choice(a100(4), std::int64_t{1} << 36).algorithm, NcclAlgorithm::ring);
}

TEST(Nccl, LinesOf128BytesAreSlowerThanNvlinksBeforeHopper) {
  const double rate = planned(a100(1), 8 << 20, "ring/ll128").cost().flow_inside.si;
  EXPECT_NEAR(rate, 0.74 / 0.92 * 240e9 / 2, 1e3);  // payload times wire, on two lanes
  Topology topology = a100(1);
  topology.nccl.generation = NcclMachine::Generation::hopper;
  EXPECT_EQ(planned(topology, 8 << 20, "ring/ll128").cost().flow_inside.si, std::numeric_limits<double>::infinity());
  EXPECT_EQ(planned(a100(1), 8 << 20, "ring/simple").cost().flow_inside.si, std::numeric_limits<double>::infinity());
}

TEST(Nccl, OnlySimpleWaitsForTheReceiver) {
  Topology topology = hopper(2);
  const auto between = [&](const char* variant) { return planned(topology, 1 << 20, variant).cost().between; };
  const Seconds ll = between("ring/ll"), simple = between("ring/simple"), latency = topology.nccl.network_latency;
  topology.nccl.sockets = true;  // the size goes ahead
  EXPECT_NEAR((between("ring/simple") - simple).si,
              1.4 * (14e-6 + 2 * (latency.si - 2.7e-6) - std::max(14e-6, latency.si)), 1e-12);
  topology.nccl.sockets = false;
  topology.nccl.rendezvous = 400_us;  // which is part of the path
  EXPECT_NEAR((between("ring/ll") - ll).si, -400e-6, 1e-12);
  EXPECT_NEAR((between("ring/simple") - simple).si, 0, 1e-12);
  EXPECT_FALSE(choose_nccl(topology, 1 << 20, *parse_nccl_options("ll128")));
}

TEST(Nccl, TheTunerKnowsARendezvousOnlyWhereTheNetworkBringsATuner) {
  Topology topology = hopper(2);
  topology.nccl.rendezvous = 400_us;
  EXPECT_EQ(choice(topology, 8 << 20).protocol, NcclProtocol::simple);
  topology.nccl.rendezvous_in_tuner = true;
  EXPECT_EQ(choice(topology, 8 << 20).protocol, NcclProtocol::ll);
  EXPECT_EQ(choice(topology, 8 << 20).algorithm, NcclAlgorithm::tree);
  EXPECT_FALSE(choose_nccl(topology, 1 << 20, *parse_nccl_options("ring/ll")));
}

// Four GPUs on PCIe, two channels, 5.7 us a hop: a slice of 1 MiB / 4 ranks / 2 takes 10.9 us at 12 GB/s, which hides
// two thirds of the latency; the 64 KiB / 4 of a chunk that is one slice take 1.4 us, which they hide.
TEST(Nccl, OverPcieTheBytesOfASliceHideLatency) {
  Topology topology = clustered(4, 4);
  topology.nccl = {NcclMachine::Generation::volta, NcclMachine::Inside::pcie, 12_GB_per_s};
  topology.nccl.inside_latency = 5.7_us;
  const auto cost = [&](std::int64_t bytes) { return planned(topology, bytes, "ring/simple").cost(); };
  EXPECT_NEAR(cost(1 << 20).inside.si, -5.7e-6 * 2 / 3, 1e-12);
  EXPECT_NEAR(cost(1 << 20).start.si, (8.4 + 5.7 * 2 / 3) * 1e-6, 1e-12);
  EXPECT_NEAR(cost(64 << 10).inside.si, -(64 << 10) / 4 / 12e9, 1e-12);
  EXPECT_NEAR(planned(topology, 1 << 20, "ring/ll").cost().inside.si, (1.0 - 5.7) * 1e-6, 1e-12);
  topology.nccl.inside = NcclMachine::Inside::nvlink_mesh;
  EXPECT_NEAR(cost(1 << 20).inside.si, 0, 1e-12);
}

// Each further pass takes all latencies again, in proportion to its bytes.
TEST(Nccl, AByteMoreThanAPassCostsNoWholePass) {
  const Topology topology = two_nodes(NcclMachine::Generation::volta);
  const std::int64_t pass = std::int64_t{32768} * 2 * nccl_channels(topology);
  const auto hop = [&](std::int64_t bytes) {
    return (topology.nccl.network_latency + planned(topology, bytes, "ring/ll").cost().between).si;
  };
  EXPECT_NEAR(2 * hop(pass + 1) / hop(pass), 1, 1e-4);
  EXPECT_NEAR(hop(2 * pass) / hop(pass), 1, 1e-9);
}

TEST(Nccl, EfasPluginChoosesOnP5) {
  const auto chosen = [](int nodes, int nics, std::int64_t bytes, const char* variant = "") {
    Topology topology = hopper(nodes);
    topology.nccl.efa = true;
    topology.nccl.nics = nics;
    const NcclChoice made = choice(topology, bytes, variant);
    return std::string(to_string(made.algorithm)) + " " + std::string(to_string(made.protocol));
  };
  EXPECT_EQ(chosen(2, 32, 30 << 20), "tree LL128");
  EXPECT_EQ(chosen(2, 32, (30 << 20) + 1), "nvls-tree Simple");
  EXPECT_EQ(chosen(4, 32, 36 << 20), "tree LL128");
  EXPECT_EQ(chosen(4, 32, (36 << 20) + 1), "ring LL128");
  EXPECT_EQ(chosen(8, 32, std::int64_t{2} << 30), "ring LL128");
  EXPECT_EQ(chosen(8, 32, std::int64_t{4} << 30), "ring Simple");
  EXPECT_EQ(chosen(2, 16, 192 << 10), "tree LL");
  EXPECT_EQ(chosen(2, 16, 20 << 20), "ring LL128");
  EXPECT_EQ(chosen(2, 16, 1 << 30), "nvls-tree Simple");
  EXPECT_EQ(chosen(4, 16, 1 << 30), "ring Simple");
  // Between 36 MiB at 32 ranks and 112 MiB at 64 ranks, in logarithms: 51.9 MiB at 40 ranks.
  EXPECT_EQ(chosen(5, 32, 48 << 20), "tree LL128");
  EXPECT_EQ(chosen(5, 32, 60 << 20), "ring LL128");
  EXPECT_EQ(chosen(2, 32, 16 << 20, "ring/simple"), "ring Simple");
  EXPECT_EQ(chosen(2, 32, 16 << 20, "2.18"), chosen(2, 8, 16 << 20, "2.18"));
}

// The tuner knows nothing of a rendezvous, nor that EFA before Hopper's instances is slow in messages below 1 MiB.
TEST(Nccl, TreesSendNoMoreThanNicsCarry) {
  for (const int nodes : {2, 3, 4, 5, 16}) {
    const Topology topology = a100(nodes);
    const PlanRequest request{topology, std::int64_t{1} << 30, Collective::all_reduce, ""};
    const NcclChoice tree{NcclAlgorithm::tree, NcclProtocol::simple, Seconds{0}};
    const NcclPipeline pipeline = nccl_pipeline(request, tree);
    const int lanes = 2 * topology.rails;
    const ProtocolCost cost = nccl_tree_cost(request, tree, NcclVersion{}, pipeline, lanes);
    // An inner node of one tree is a leaf of the other one; it has two children from four nodes on.
    const double crossings = nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
    const double rounds = 1 + pipeline.filling_between / static_cast<double>(pipeline.chunks);
    const Seconds least = crossings * (Bytes{static_cast<double>(request.bytes)} / topology.nccl.between_bandwidth);
    EXPECT_GT(Bytes{rounds * cost.wire * static_cast<double>(request.bytes)} / (lanes * cost.flow_between), least);
  }
}

TEST(Nccl, NoChoiceIsSlowerThanAnotherOrForMoreBytesBeyondTheBounds) {
  Topology waiting = hopper(2);
  waiting.nccl.rendezvous = 5_ms;
  int bounded = 0;
  for (Topology topology :
       {a100(2), a100(5), a100(32), hopper(2), hopper(16), waiting, two_nodes(NcclMachine::Generation::volta)})
    for (const bool efa : {false, true}) {
      topology.nccl.efa = efa;
      for (std::int64_t bytes = 8; bytes <= std::int64_t{8} << 30; bytes *= 4) {
        const PlanRequest request{topology, bytes, Collective::all_reduce, ""};
        const NcclOptions options;
        const auto expected = [&](const NcclChoice& one) { return nccl_expected_time(request, one, options.version); };
        const NcclChoice tuners = *choose_nccl(topology, bytes, options),
                         taken = *bounded_nccl_choice(request, options);
        Seconds fastest = expected(tuners);
        for (const NcclChoice& other : nccl_choices(topology, bytes, options))
          fastest = std::min(fastest, expected(other));
        EXPECT_LE(expected(taken).si, 2.5 * fastest.si) << bytes;
        const PlanRequest twice{topology, 2 * bytes, Collective::all_reduce, ""};
        const Seconds of_twice = nccl_expected_time(twice, *bounded_nccl_choice(twice, options), options.version);
        EXPECT_LE(expected(taken).si, (topology.gpus_per_node > 1 ? 1.15 : 1.31) * of_twice.si) << bytes;
        const bool same = taken.algorithm == tuners.algorithm && taken.protocol == tuners.protocol;
        EXPECT_TRUE(same || expected(taken) == fastest) << bytes;
        bounded += !same;
      }
    }
  EXPECT_GT(bounded, 0);
}

TEST(Nccl, LlGoesInPassesOfItsBuffer) {
  const Topology topology = two_nodes(NcclMachine::Generation::volta);
  const std::int64_t pass = std::int64_t{32768} * 2 * nccl_channels(topology);
  const std::int64_t rounds = planned(topology, pass, "ring/ll").rounds();
  EXPECT_EQ(planned(topology, pass + 1, "ring/ll").rounds(), 2 * rounds);
  EXPECT_EQ(planned(topology, 10 * pass, "ring/ll").rounds(), 10 * rounds);
  EXPECT_EQ(planned(topology, 10 * pass, "ring/simple").rounds(), rounds);
}

TEST(Nccl, ChannelsAreLanesOverEveryNic) {
  const Schedule rings = planned(a100(2), 64 << 20, "ring/simple"), trees = planned(a100(2), 64 << 20, "tree/simple");
  EXPECT_EQ(rings.lanes(), 4);
  EXPECT_EQ(trees.lanes(), 8);  // a double tree, that is two lanes, for each channel
  for (const Schedule* schedule : {&rings, &trees}) {
    EXPECT_TRUE(schedule->cost().eager);
    EXPECT_TRUE(schedule->cost().reduction_is_free);
    EXPECT_TRUE(is_complete(*schedule, Collective::all_reduce));
  }
}

}  // namespace
}  // namespace ganymede::sim

#include "sim/engine/fabric_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "test_platform.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;

std::vector<Path> paths(const FabricGraph& graph, int from, int to) {
  std::vector<Path> found;
  graph.paths(from, to, found);
  return found;
}
Path path(const FabricGraph& graph, int from, int to) { return paths(graph, from, to).at(0); }

std::vector<std::string> names(const FabricGraph& graph, const Path& way) {
  std::vector<std::string> result;
  for (const int link : way.links) result.push_back(graph.links()[static_cast<std::size_t>(link)].name);
  return result;
}
std::vector<std::string> names(const FabricGraph& graph, int from, int to) {
  return names(graph, path(graph, from, to));
}
using Names = std::vector<std::string>;

TEST(FabricGraph, BetweenNodesLatenciesOfNicFabricAndNicAdd) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("one"), 4, 1);
  EXPECT_EQ(names(graph, 1, 3), (std::vector<std::string>{"nic.1.up", "nic.3.down"}));
  EXPECT_DOUBLE_EQ(path(graph, 1, 3).latency.si, (2 * 5_us + 1_us).si);
}

TEST(FabricGraph, WithoutGpuDirectTheHostLinksAreInThePath) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("staged"), 2, 1);
  EXPECT_EQ(names(graph, 0, 1),
            (std::vector<std::string>{"host_link.0.up@0", "nic.0.up", "nic.1.down", "host_link.0.down@1"}));
  const Seconds rendezvous = 3_us;
  EXPECT_DOUBLE_EQ(path(graph, 0, 1).latency.si, (2 * 5_us + 1_us + 2 * 2_us + rendezvous).si);
}

TEST(FabricGraph, InsideANodeTheGpuLinksAreUsedAndTheirLatencyIsPaidOnce) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("four"), 2, 4);
  EXPECT_EQ(graph.ranks(), 8);
  EXPECT_EQ(names(graph, 5, 6), (std::vector<std::string>{"gpu_link.1.up@1", "gpu_link.2.down@1"}));
  EXPECT_EQ(path(graph, 5, 6).latency, 1_us);
  EXPECT_EQ(names(graph, 3, 4), (std::vector<std::string>{"nic.0.up", "nic.1.down"}));
}

TEST(FabricGraph, WithoutGpuLinksMessagesGoUpAndDownTheHostLinks) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("pcie"), 1, 2);
  EXPECT_EQ(names(graph, 0, 1), (std::vector<std::string>{"host_link.0.up@0", "host_link.1.down@0"}));
  EXPECT_EQ(path(graph, 0, 1).latency, 2 * 2_us);
}

TEST(FabricGraph, AnOversubscribedSwitchSharesItsInside) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us", R"(, "oversubscription": 4)");
  const FabricGraph graph(platform, platform.instance("one"), 8, 1);
  const Path route = path(graph, 0, 1);
  ASSERT_EQ(route.links.size(), 3U);
  const DirectedLink& inside = graph.links()[static_cast<std::size_t>(route.links[1])];
  EXPECT_EQ(inside.name, "switch");
  EXPECT_DOUBLE_EQ(inside.bandwidth.si, 8 * 12.5e9 / 4);
}

TEST(FabricGraph, SeveralNodesNeedANic) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  try {
    const FabricGraph graph(platform, platform.instance("pcie"), 2, 1);
    FAIL() << "accepted two nodes without a NIC";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("star.json: /instances/pcie"));
    EXPECT_THAT(error.what(), HasSubstr("\"nic\""));
  }
}

constexpr const char* kNic = R"("nic": {"bandwidth": "10GB/s", "latency": "5us"})";

TEST(FabricGraph, APcieTreeCrossesWhatLiesBetween) {
  const platforms::Platform platform = platform_of(R"("gpus": 4, "gpu_links": {"kind": "pcie", "bandwidth": "12GB/s",
      "latency": "3us", "switches": [[0, 1], [2]], "numa": [[0, 1], [2, 3]], "numa_bandwidth": "20GB/s",
      "numa_latency": "1us"})");
  const FabricGraph graph(platform, platform.instance("node"), 1, 4);
  EXPECT_EQ(names(graph, 0, 1), (Names{"pcie_slot.0.up@0", "pcie_slot.1.down@0"}));
  EXPECT_EQ(names(graph, 0, 2), (Names{"pcie_slot.0.up@0", "pcie_switch.0.up@0", "numa.0.up@0", "numa.1.down@0",
                                       "pcie_switch.1.down@0", "pcie_slot.2.down@0"}));
  EXPECT_EQ(names(graph, 2, 3), (Names{"pcie_slot.2.up@0", "pcie_switch.1.up@0", "pcie_slot.3.down@0"}));
  EXPECT_EQ(path(graph, 0, 1).latency, 3_us);
  EXPECT_EQ(path(graph, 0, 3).latency, 4_us);
  EXPECT_TRUE(graph.topology().nccl.peer_to_peer);
}

TEST(FabricGraph, StatesTheVersionOfNcclOfItsPlatform) {
  platforms::Platform platform = platform_of(std::string(R"("gpus": 1, )") + kNic);
  const auto minor = [&](const char* nccl) {
    platform.fabric.nccl = nccl;
    return FabricGraph(platform, platform.instance("node"), 2, 1).topology().nccl.minor;
  };
  EXPECT_EQ(minor(""), 0);
  EXPECT_EQ(minor("2.18.3"), 18);
  EXPECT_EQ(minor("2020-12"), 8);
  for (const char* wrong : {"soon", "2.18/ring", "2018-01", "3.1", "2099-01"})
    EXPECT_THAT([&] { minor(wrong); },
                testing::ThrowsMessage<ConfigError>(testing::HasSubstr("/fabric/nccl: found \"" + std::string(wrong))));
}

TEST(FabricGraph, WithoutPeerToPeerMessagesAreStagedThroughHostMemory) {
  const platforms::Platform platform = platform_of(R"("gpus": 2, "gpu_links": {"kind": "pcie", "bandwidth": "12GB/s",
      "latency": "3us", "switches": [[0, 1]], "staging": {"bandwidth": "6GB/s", "latency": "10us"}})");
  const FabricGraph graph(platform, platform.instance("node"), 1, 2);
  EXPECT_EQ(names(graph, 0, 1), (Names{"pcie_slot.0.up@0", "pcie_switch.0.up@0", "host_memory.0.up@0",
                                       "pcie_switch.0.down@0", "pcie_slot.1.down@0"}));
  EXPECT_EQ(path(graph, 0, 1).latency, 13_us);
  EXPECT_FALSE(graph.topology().nccl.peer_to_peer);
}

// The hybrid cube mesh of DGX-1 (NVIDIA, "DGX-1 With Tesla V100 System Architecture", 2017): six links a GPU, so three
// rings that use every link once.
constexpr const char* kCubeMesh = R"("gpus": 8, "gpu_links": {"kind": "mesh", "bandwidth": "25GB/s", "latency": "1us",
    "links": [[0,1,1],[0,2,1],[0,3,2],[0,4,2],[1,2,2],[1,3,1],[1,5,2],[2,3,2],[2,6,1],[3,7,1],
              [4,5,1],[4,6,1],[4,7,2],[5,6,2],[5,7,1],[6,7,2]]})";

TEST(FabricGraph, AMeshUsesItsLinksAndFindsDisjointRings) {
  const platforms::Platform platform = platform_of(kCubeMesh);
  const FabricGraph graph(platform, platform.instance("node"), 1, 8);
  EXPECT_EQ(names(graph, 0, 3), (Names{"gpu_link.0-3.up@0"}));
  EXPECT_DOUBLE_EQ(graph.links()[static_cast<std::size_t>(path(graph, 0, 3).links[0])].bandwidth.si, 50e9);
  EXPECT_EQ(path(graph, 0, 7).links.size(), 2U);  // over GPU 3 or 4, because no link joins 0 and 7
  EXPECT_EQ(path(graph, 0, 7).latency, 2_us);
  const auto& rings = graph.topology().rings;
  EXPECT_EQ(rings.size(), 3U);
  std::map<std::pair<int, int>, int> used;
  for (const auto& ring : rings) {
    ASSERT_EQ(std::set<int>(ring.begin(), ring.end()).size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) ++used[std::minmax(ring[i], ring[(i + 1) % 8])];
  }
  for (const auto& [pair, count] : used) {
    const Path link = path(graph, pair.first, pair.second);
    ASSERT_EQ(link.links.size(), 1U) << pair.first << " " << pair.second;
    EXPECT_LE(count * 25e9, graph.links()[static_cast<std::size_t>(link.links[0])].bandwidth.si);
  }
}

// The fifth of five GPUs has links to GPU 0 only, so no ring closes. Then GPU 0 relays what is between it and the
// others, instead of the host.
TEST(FabricGraph, AGpuRelaysWhereAMeshAllowsNoRing) {
  const platforms::Platform platform =
      platform_of(std::string(kCubeMesh) + R"(, "host_link": {"bandwidth": "12GB/s", "latency": "1us"})");
  const FabricGraph five(platform, platform.instance("node"), 1, 5), six(platform, platform.instance("node"), 1, 6);
  EXPECT_TRUE(five.topology().rings.empty());
  EXPECT_EQ(names(five, 3, 4), (Names{"gpu_link.0-3.down@0", "gpu_link.0-4.up@0"}));
  EXPECT_EQ(five.topology().nccl.inside_bandwidth, 50_GB_per_s);  // one ring in both directions
  EXPECT_FALSE(six.topology().rings.empty());
  EXPECT_EQ(names(six, 3, 4), (Names{"host_link.3.up@0", "host_link.4.down@0"}));
}

TEST(FabricGraph, AMeshInPiecesIsRefused) {
  const platforms::Platform platform = platform_of(
      R"("gpus": 3, "gpu_links": {"kind": "mesh", "bandwidth": "25GB/s", "latency": "1us", "links": [[0, 1, 1]]})");
  EXPECT_THAT(message_of<ConfigError>([&] { FabricGraph(platform, platform.instance("node"), 1, 3); }),
              AllOf(HasSubstr("lab.json: /instances/node"), HasSubstr("not connected")));
}

TEST(FabricGraph, RailsGiveEachGpuItsNic) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 4, "gpu_links": {"kind": "nvswitch", "bandwidth": "300GB/s",
      "latency": "1us"}, "nic": {"bandwidth": "10GB/s", "latency": "5us", "count": 2, "per_flow": "4GB/s"})");
  const FabricGraph graph(platform, platform.instance("node"), 2, 4);
  EXPECT_EQ(names(graph, 0, 4), (Names{"nic.0.0.up", "nic.1.0.down"}));
  EXPECT_EQ(names(graph, 1, 7), (Names{"nic.0.0.up", "nic.1.1.down"}));
  EXPECT_EQ(path(graph, 0, 4).flow_limit, 4_GB_per_s);
  EXPECT_EQ(graph.topology().rails, 2);
}

// A GPU that owns several adapters stripes its messages over all of them, as on p5 with 32 adapters for eight GPUs.
TEST(FabricGraph, AGpuUsesAllItsAdapters) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 2, "gpu_links": {"kind": "nvswitch", "bandwidth": "300GB/s",
      "latency": "1us"}, "nic": {"bandwidth": "12.5GB/s", "latency": "5us", "count": 8})");
  const FabricGraph graph(platform, platform.instance("node"), 2, 2);
  EXPECT_EQ(names(graph, 1, 2), (Names{"nic.0.1.up", "nic.1.0.down"}));
  EXPECT_EQ(graph.links()[static_cast<std::size_t>(path(graph, 1, 2).links[0])].bandwidth, 50_GB_per_s);
  EXPECT_EQ(graph.topology().rails, 2);
  EXPECT_EQ(graph.topology().nccl.between_bandwidth, 100_GB_per_s);
  const FabricGraph alone(platform, platform.instance("node"), 2, 1);  // the other GPU's adapters stay idle
  EXPECT_EQ(alone.topology().nccl.nics, 4);
  EXPECT_EQ(alone.topology().nccl.between_bandwidth, 50_GB_per_s);
  EXPECT_EQ(alone.links()[static_cast<std::size_t>(path(alone, 0, 1).links[0])].bandwidth, 50_GB_per_s);
}

TEST(FabricGraph, MachinesShareAPhysicalNic) {
  const platforms::Platform platform =
      platform_of(R"("gpus": 1, "nic": {"bandwidth": "10GB/s", "latency": "5us", "shared_by": 2})");
  const FabricGraph graph(platform, platform.instance("node"), 4, 1);
  EXPECT_EQ(path(graph, 0, 2).links, path(graph, 1, 3).links);
  EXPECT_NE(path(graph, 0, 2).links, path(graph, 2, 0).links);
}

TEST(FabricGraph, AFatTreeAndZonesAddTheirUplinks) {
  const platforms::Platform platform =
      platform_of(std::string(R"("gpus": 1, )") + kNic, R"({"kind": "fat-tree", "latency": "1us",
      "levels": [{"nodes": 2, "oversubscription": 2, "latency": "2us"}, {"nodes": 4, "latency": "4us"}],
      "zones": {"nodes": 4, "bandwidth": "1GB/s", "latency": "700us", "per_flow": "500MB/s"}})");
  const FabricGraph graph(platform, platform.instance("node"), 8, 1);
  EXPECT_EQ(names(graph, 0, 1), (Names{"nic.0.up", "nic.1.down"}));
  EXPECT_EQ(names(graph, 0, 2), (Names{"nic.0.up", "level_1.0.up", "level_1.1.down", "nic.2.down"}));
  EXPECT_EQ(names(graph, 0, 5), (Names{"nic.0.up", "level_1.0.up", "level_1.2.down", "level_2.0.up", "level_2.1.down",
                                       "zone.0.up", "zone.1.down", "nic.5.down"}));
  EXPECT_NEAR(path(graph, 0, 5).latency.si, 717e-6, 1e-12);
  EXPECT_EQ(path(graph, 0, 5).flow_limit.si, 500e6);
  const auto rack = static_cast<std::size_t>(path(graph, 0, 2).links[1]);
  EXPECT_DOUBLE_EQ(graph.links()[rack].bandwidth.si, 2 * 10e9 / 2);
}

TEST(FabricGraph, ATorusRoutesTheShorterWayRound) {
  const platforms::Platform platform = platform_of(
      R"("gpus": 1)", R"({"kind": "torus", "dimensions": [4, 3], "bandwidth": "50GB/s", "latency": "1us"})");
  const FabricGraph graph(platform, platform.instance("node"), 12, 1);
  EXPECT_EQ(names(graph, 0, 3), (Names{"torus_0.0.backward"}));
  EXPECT_EQ(names(graph, 0, 6), (Names{"torus_0.0.forward", "torus_0.1.forward", "torus_1.2.forward"}));
  EXPECT_NEAR(path(graph, 0, 6).latency.si, 3e-6, 1e-15);
  EXPECT_EQ(graph.topology().torus, (std::vector<int>{4, 3}));
  EXPECT_THAT(message_of<ConfigError>([&] { FabricGraph(platform, platform.instance("node"), 5, 1); }),
              HasSubstr("/fabric/dimensions"));
}

TEST(FabricGraph, RoutesAreTakenAsTheyStand) {
  const auto routed = [](const std::string& routes) {
    return platform_of(R"("gpus": 2, "gpu_links": {"kind": "nvlink", "bandwidth": "1GB/s", "latency": "1s"})",
                       R"({"kind": "routes", "links": {"a": "2GB/s", "b": "3GB/s"}, "routes": [)" + routes + "]}");
  };
  const std::string there = R"({"from": 0, "to": 1, "links": ["a", "b"], "latency": "7us", "per_flow": "1GB/s"})";
  const std::string back = R"({"from": 1, "to": 0, "links": ["b"], "latency": "9us"})";
  const platforms::Platform platform = routed(there + "," + back);
  const FabricGraph graph(platform, platform.instance("node"), 1, 2);
  EXPECT_EQ(names(graph, 0, 1), (Names{"a", "b"}));
  EXPECT_EQ(path(graph, 0, 1).latency, 7_us);
  EXPECT_EQ(path(graph, 0, 1).flow_limit.si, 1e9);
  EXPECT_FALSE(path(graph, 0, 1).between_nodes);
  EXPECT_EQ(names(graph, 1, 0), (Names{"b"}));
  EXPECT_TRUE(path(FabricGraph(platform, platform.instance("node"), 2, 1), 0, 1).between_nodes);
  EXPECT_THAT(message_of<ConfigError>([&] { FabricGraph(platform, platform.instance("node"), 2, 2); }),
              HasSubstr("/fabric/routes: no route from GPU 0 to GPU 2, and 4 GPUs are asked for"));
  for (const auto& [routes, expected] : std::vector<std::pair<std::string, std::string>>{
           {there + "," + there, "/fabric/routes/1: is a second route from GPU 0 to GPU 1"},
           {R"({"from": 0, "to": 0, "links": ["a"], "latency": "1us"})", "leads from GPU 0 to itself"},
           {R"({"from": 0, "to": 1, "links": ["c"], "latency": "1us"})",
            "/links/0: found \"c\", expected a name in links"},
           {R"({"from": 0, "to": 1, "links": ["a", "a"], "latency": "1us"})", "crosses \"a\" a second time"},
           {R"({"from": 0, "to": 1, "links": [], "latency": "1us"})", "crosses no link"}})
    EXPECT_THAT(message_of<ConfigError>([&, &what = routes] { routed(what); }), HasSubstr(expected));
}

TEST(FabricGraph, SwitchesThatReduceAreEndpoints) {
  const platforms::Platform platform = platform_of(std::string(R"("gpus": 2, "gpu_links": {"kind": "nvswitch",
      "bandwidth": "100GB/s", "latency": "2us", "reduces": true}, )") +
                                                       kNic,
                                                   R"({"kind": "switch", "latency": "4us", "reduces": true})");
  const FabricGraph graph(platform, platform.instance("node"), 2, 2);
  EXPECT_EQ(graph.topology().endpoints(), 4 + 2 + 1);
  EXPECT_EQ(names(graph, 3, 5), (Names{"gpu_link.1.up@1"}));
  EXPECT_EQ(names(graph, 4, 1), (Names{"gpu_link.1.down@0"}));
  EXPECT_EQ(path(graph, 3, 5).latency, 1_us);
  EXPECT_EQ(names(graph, 5, 6), (Names{"nic.1.up"}));
  EXPECT_NEAR(path(graph, 6, 4).latency.si, 7e-6, 1e-15);
}

TEST(FabricGraph, NodesOfUnlikeGpus) {
  const platforms::Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, {{&platform.instance("four"), 2, 4}, {&platform.instance("one"), 1, 1}});
  EXPECT_EQ(graph.ranks(), 9);
  EXPECT_EQ(graph.topology().node_sizes, (std::vector<int>{4, 4, 1}));
  EXPECT_EQ(names(graph, 7, 8), (Names{"nic.1.up", "nic.2.down"}));
}

}  // namespace
}  // namespace ganymede::sim

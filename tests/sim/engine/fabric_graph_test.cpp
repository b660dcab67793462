#include "sim/engine/fabric_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_platform.hpp"

namespace ganymede {
namespace {

using namespace literals;
using testing::HasSubstr;

std::vector<std::string> names(const FabricGraph& graph, int from, int to) {
  std::vector<std::string> result;
  for (const int link : graph.route(from, to).links)
    result.push_back(graph.links()[static_cast<std::size_t>(link)].name);
  return result;
}

TEST(FabricGraph, BetweenNodesLatenciesOfNicFabricAndNicAdd) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("one"), 4, 1);
  EXPECT_EQ(names(graph, 1, 3), (std::vector<std::string>{"nic.1.up", "nic.3.down"}));
  EXPECT_DOUBLE_EQ(graph.route(1, 3).latency.si, (2 * 5_us + 1_us).si);
}

TEST(FabricGraph, WithoutGpuDirectTheHostLinksAreInThePath) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("staged"), 2, 1);
  EXPECT_EQ(names(graph, 0, 1),
            (std::vector<std::string>{"host_link.0.up", "nic.0.up", "nic.1.down", "host_link.1.down"}));
  const Seconds rendezvous = 3_us;
  EXPECT_DOUBLE_EQ(graph.route(0, 1).latency.si, (2 * 5_us + 1_us + 2 * 2_us + rendezvous).si);
}

TEST(FabricGraph, InsideANodeTheGpuLinksAreUsedAndTheirLatencyIsPaidOnce) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("four"), 2, 4);
  EXPECT_EQ(graph.ranks(), 8);
  EXPECT_EQ(names(graph, 5, 6), (std::vector<std::string>{"gpu_link.5.up", "gpu_link.6.down"}));
  EXPECT_EQ(graph.route(5, 6).latency, 1_us);
  EXPECT_EQ(names(graph, 3, 4), (std::vector<std::string>{"nic.0.up", "nic.1.down"}));
}

TEST(FabricGraph, WithoutGpuLinksMessagesGoUpAndDownTheHostLinks) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  const FabricGraph graph(platform, platform.instance("pcie"), 1, 2);
  EXPECT_EQ(names(graph, 0, 1), (std::vector<std::string>{"host_link.0.up", "host_link.1.down"}));
  EXPECT_EQ(graph.route(0, 1).latency, 2 * 2_us);
}

TEST(FabricGraph, AnOversubscribedSwitchSharesItsInside) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us", R"(, "oversubscription": 4)");
  const FabricGraph graph(platform, platform.instance("one"), 8, 1);
  const Route route = graph.route(0, 1);
  ASSERT_EQ(route.links.size(), 3U);
  const DirectedLink& inside = graph.links()[static_cast<std::size_t>(route.links[1])];
  EXPECT_EQ(inside.name, "switch");
  EXPECT_DOUBLE_EQ(inside.bandwidth.si, 8 * 12.5e9 / 4);
}

TEST(FabricGraph, SeveralNodesNeedANic) {
  const Platform platform = star_platform("12.5GB/s", "5us", "1us");
  try {
    const FabricGraph graph(platform, platform.instance("pcie"), 2, 1);
    FAIL() << "accepted two nodes without a NIC";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("star.json: /instances/pcie"));
    EXPECT_THAT(error.what(), HasSubstr("\"nic\""));
  }
}

}  // namespace
}  // namespace ganymede

#include "sim/collectives/server_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/errors.hpp"
#include "verify.hpp"

namespace ganymede::sim {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

std::vector<double> shares(std::vector<double> variables, std::size_t servers) {
  PlanRequest request{flat(8), 1000, Collective::all_reduce, ""};
  request.variables = std::move(variables);
  return server_shares(request, servers);
}

TEST(ServerShares, OfSmallVariablesAreEqual) { EXPECT_THAT(shares({}, 4), ElementsAre(0.25, 0.25, 0.25, 0.25)); }

// The rest fills up the emptier servers; a variable that is larger than an equal share makes its server a hot spot.
TEST(ServerShares, KeepVariablesWhole) {
  EXPECT_THAT(shares({0.5}, 3), ElementsAre(DoubleEq(0.5), DoubleEq(0.25), DoubleEq(0.25)));
  EXPECT_THAT(shares({0.1, 0.2}, 2), ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  // 0.4 and 0.3 + 0.2 on two servers; 0.1 is left, which makes both equal.
  EXPECT_THAT(shares({0.2, 0.4, 0.3}, 2), ElementsAre(DoubleEq(0.5), DoubleEq(0.5)));
  EXPECT_THAT(shares({1.0}, 2), ElementsAre(DoubleEq(1), DoubleEq(0)));
}

/// Bytes that the rank receives in all rounds.
std::int64_t received(const Schedule& schedule, int rank) {
  std::int64_t sum = 0;
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& transfer : transfers)
      if (transfer.destination == rank) sum += transfer.length;
  }
  return sum;
}

TEST(ParameterServers, WithAHotVariableReceiveMoreOnItsServer) {
  Scheme scheme = parse_scheme("parameter-server:4");
  scheme.variables = {0.7};
  const Schedule schedule = scheme.plan({flat(4), 1000, Collective::all_reduce, ""});
  EXPECT_TRUE(is_complete(schedule));
  // Pushes of three others, and the pull of the other servers' 300 bytes.
  EXPECT_EQ(received(schedule, 0), 3 * 700 + 300);
  EXPECT_EQ(received(schedule, 1), 3 * 100 + 900);
}

/// Bytes that cross between nodes in all rounds.
std::int64_t between_nodes(const Schedule& schedule, const Topology& topology) {
  std::int64_t sum = 0;
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& transfer : transfers)
      if (topology.node_of(transfer.source) != topology.node_of(transfer.destination)) sum += transfer.length;
  }
  return sum;
}

// Each node sends its sums once to the servers of the three other nodes and gets the totals back, however many GPUs it
// has; without the hierarchy each GPU does.
TEST(ParameterServers, InAHierarchyExchangeOncePerNode) {
  const Topology topology = clustered(16, 4);
  const PlanRequest request{topology, 4096, Collective::all_reduce, ""};
  const Schedule alone = parse_scheme("parameter-server:4").plan(request);
  const Schedule together = parse_scheme("hierarchical-parameter-server:4").plan(request);
  EXPECT_EQ(between_nodes(together, topology), 2 * 3 * 4096);
  EXPECT_EQ(between_nodes(alone, topology), 4 * between_nodes(together, topology));
}

TEST(ParameterServers, InAHierarchyServeUnequalNodesAndHotVariables) {
  Topology topology = clustered(7, 3);
  topology.node_sizes = {3, 1, 3};
  for (const char* name : {"hierarchical-parameter-server", "hierarchical-parameter-server:all"}) {
    Scheme scheme = parse_scheme(name);
    scheme.variables = {0.6, 0.1};
    for (const std::int64_t bytes : {1, 5, 1001})
      EXPECT_TRUE(is_complete(scheme.plan({topology, bytes, Collective::all_reduce, ""}))) << name << " " << bytes;
  }
}

// The GPUs of a node share its connections.
TEST(ParameterServers, OverGrpcHaveLimitedConnections) {
  const PlanRequest request{clustered(16, 4), 4096, Collective::all_reduce, ""};
  const ProtocolCost flat_cost = parse_scheme("parameter-server:2/grpc").plan(request).cost();
  const ProtocolCost node_cost = parse_scheme("hierarchical-parameter-server:2/grpc").plan(request).cost();
  EXPECT_EQ(node_cost.flow_between * 4, flat_cost.flow_between);
  EXPECT_GT(flat_cost.between.si, 0);
  EXPECT_EQ(parse_scheme("parameter-server:2").plan(request).cost().between.si, 0);
}

// Pushes fill one direction of a server's link while pulls fill the other, so that both take the time of one.
TEST(ParameterServers, ThatWorkBothWaysAtOnceTakeHalfTheTime) {
  const ServerVariant both = parse_server_variant("2/grpc/duplex"), turned = parse_server_variant("2/duplex/grpc");
  EXPECT_TRUE(both.grpc && both.duplex && turned.grpc && turned.duplex);
  EXPECT_EQ(both.servers, "2");
  EXPECT_EQ(turned.servers, "2");
  EXPECT_EQ(parse_server_variant("duplex").servers, "");
  EXPECT_EQ(parse_server_variant("2/duplex/duplex").servers, "2/duplex");  // which names no servers
  const auto wire = [](const char* scheme) {
    return parse_scheme(scheme).plan({clustered(16, 4), 4096, Collective::all_reduce, ""}).cost().wire;
  };
  for (const char* name : {"parameter-server", "hierarchical-parameter-server"}) {
    EXPECT_EQ(wire((std::string(name) + ":2").c_str()), 1);
    EXPECT_EQ(wire((std::string(name) + ":2/duplex").c_str()), 0.5);
    EXPECT_THROW(wire((std::string(name) + ":2/duplex/duplex").c_str()), ConfigError);
  }
}

TEST(ParameterServers, OfAsynchronousTrainingKnowNoGrpc) {
  EXPECT_THROW(parameter_servers(parse_scheme("parameter-server:2/grpc"), flat(4)), ConfigError);
}

// Servers hold equal parts, so the node with the most of them receives ceil(k / 4) / k of the bytes from each of the
// other three nodes: two fifths with 5 servers on 4 nodes, a quarter with 4, 8 or 16.
TEST(ParameterServers, TheFullestNodeReceivesItsServersShare) {
  const Topology topology = clustered(32, 8);
  constexpr std::int64_t kBytes = 16 * 5 * 1024;
  for (const int servers : {4, 5, 8, 16}) {
    const Schedule schedule = parse_scheme("hierarchical-parameter-server:" + std::to_string(servers))
                                  .plan({topology, kBytes, Collective::all_reduce, ""});
    std::vector<std::int64_t> received(4);
    std::vector<Transfer> transfers;
    for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
      schedule.round(round, transfers);
      for (const Transfer& one : transfers)
        if (one.reduce && topology.node_of(one.source) != topology.node_of(one.destination))
          received[static_cast<std::size_t>(topology.node_of(one.destination))] += one.length;
    }
    EXPECT_EQ(*std::max_element(received.begin(), received.end()), 3 * ((servers + 3) / 4) * (kBytes / servers))
        << servers;
  }
}

}  // namespace
}  // namespace ganymede::sim

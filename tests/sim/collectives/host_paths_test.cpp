// Limits that hosts set to NCCL's messages.

#include "sim/collectives/host_paths.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

// Without peer access the lanes of a node share what one GPU reads from host memory, in each direction.
TEST(HostPaths, LimitGpusWithoutPeerAccess) {
  Topology node = clustered(2, 2);
  EXPECT_TRUE(std::isinf(with_host_limits(node, 2, {}).flow_inside.si));
  node.nccl.peer_to_peer = false;
  node.nccl.inside_bandwidth = BytesPerSecond{24e9};
  const BytesPerSecond older = nccl_rate_through_host(node.nccl.inside_bandwidth);
  EXPECT_EQ(with_host_limits(node, 1, {}).flow_inside, older);
  EXPECT_EQ(with_host_limits(node, 2, {}).flow_inside, older / 2);
  node.nccl.inside_bandwidth = BytesPerSecond{48e9};  // hosts with PCIe 5 have the memory for it
  EXPECT_GT(with_host_limits(node, 1, {}).flow_inside, 4 * older);
  EXPECT_LT(with_host_limits(node, 1, {}).flow_inside, node.nccl.inside_bandwidth);
  node.nccl.inside_measured = true;  // then the bandwidth of the links includes the limit
  EXPECT_TRUE(std::isinf(with_host_limits(node, 2, {}).flow_inside.si));
}

TEST(HostPaths, LimitSocketsOfEveryNic) {
  Topology nodes = clustered(16, 8);
  nodes.nccl.sockets = true;
  EXPECT_TRUE(std::isinf(with_host_limits(nodes, 1, {}).flow_between.si));  // the platform states no limits of TCP
  nodes.nccl.socket_connections = 4;
  const ProtocolCost cost = with_host_limits(nodes, 1, {});
  EXPECT_EQ(cost.flow_between, nccl_socket_rate(nodes.nccl, true));
  EXPECT_EQ(cost.connections, 4);
  // A double tree has two lanes for each NIC, a ring one; two of four NICs belong to each of two rails.
  EXPECT_EQ(with_host_limits(nodes, 2, {}).flow_between, cost.flow_between / 2);
  nodes.rails = 2;
  EXPECT_EQ(with_host_limits(nodes, 2, {}).flow_between, cost.flow_between);
  nodes.nccl.nics = 4;
  EXPECT_EQ(with_host_limits(nodes, 2, {}).flow_between, 2 * cost.flow_between);
  nodes.nccl.sockets = false;
  EXPECT_TRUE(std::isinf(with_host_limits(nodes, 2, {}).flow_between.si));
}

// Without GPUDirect the one GPU of a node stages its messages over EFA, however fast the NIC is.
TEST(HostPaths, LimitStagingOverEfa) {
  Topology nodes = flat(2);
  nodes.nccl.efa = true;
  EXPECT_TRUE(std::isinf(with_host_limits(nodes, 1, {}).flow_between.si));
  nodes.nccl.gpu_direct = false;
  const BytesPerSecond rate = with_host_limits(nodes, 1, {}).flow_between;
  EXPECT_NEAR(rate.si, 3.13e9, 1);
  EXPECT_EQ(with_host_limits(nodes, 2, {}).flow_between, rate / 2);
}

// More sockets help, but less than in proportion, and the GPUs of a node share the host.
TEST(HostPaths, SocketsShareTheHost) {
  NcclMachine machine;
  machine.socket_connections = 1;
  const BytesPerSecond one = nccl_socket_rate(machine, false);
  machine.socket_connections = 16;
  const BytesPerSecond many = nccl_socket_rate(machine, false);
  EXPECT_GT(many, 2 * one);
  EXPECT_LT(many, 4 * one);
  EXPECT_LT(nccl_socket_rate(machine, true), many);
}

}  // namespace
}  // namespace ganymede::sim

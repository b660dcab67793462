// Synchronous parameter server for nodes of several GPUs: the GPUs of a node first add their gradients up, and only the
// node's sums travel to the servers and back. TensorFlow's `distributed_replicated` and MXNet's `dist_device_sync` work
// like this: one process drives the GPUs of a node and talks to the servers. Each GPU of a node sums up an equal part
// of the bytes and exchanges it with the servers. Variants are those of parameter-server, without machines of their
// own.
//
// With N nodes of g GPUs, k servers of S/k bytes each, links of B inside a node and a NIC of B' a node, a push takes
// about S (g-1)/g / B inside and (N-1) S/k / B' between the nodes; the way back takes as long. Where k is no multiple
// of N, all wait for a node with more servers than others: 5 servers on 4 nodes take 8/5 of the time of 4, because one
// NIC carries two fifths instead of a quarter.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/server_placement.hpp"

namespace ganymede::sim {

extern const AllReduceScheme hierarchical_parameter_server_scheme;

namespace {

/// Who sums up and who serves which bytes.
struct ServerHierarchy {
  Topology topology;
  std::int64_t bytes;
  std::vector<int> servers;
  std::vector<std::int64_t> bounds;  // as server_bounds()

  /// The part of the bytes that the `place`-th GPU of a node sums up begins here; it ends where the next one begins.
  std::int64_t begin_of(int node, int place) const { return bytes / topology.size_of(node) * place; }
  std::int64_t end_of(int node, int place) const {
    return place + 1 == topology.size_of(node) ? bytes : begin_of(node, place + 1);
  }
};

/// Appends the transfers between all GPUs of a node: each sends the others' parts (`reduce`), or its own sums.
void append_inside(const ServerHierarchy& plan, bool reduce, std::vector<Transfer>& out) {
  for (int node = 0; node < plan.topology.nodes(); ++node) {
    const int first = plan.topology.first_of(node), size = plan.topology.size_of(node);
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) {
        const int part = reduce ? to : from;
        const std::int64_t begin = plan.begin_of(node, part), length = plan.end_of(node, part) - begin;
        if (from != to && length > 0) out.push_back({first + from, first + to, begin, length, reduce});
      }
  }
}

enum class ServerNode { own, other };

/// Appends the transfers between the servers and the GPUs of their own nodes, or of the other nodes.
void append_served(const ServerHierarchy& plan, ServerNode which, bool push, bool reduce, std::vector<Transfer>& out) {
  for (std::size_t i = 0; i < plan.servers.size(); ++i) {
    const int server = plan.servers[i];
    for (int node = 0; node < plan.topology.nodes(); ++node) {
      if ((node == plan.topology.node_of(server)) != (which == ServerNode::own)) continue;
      for (int place = 0; place < plan.topology.size_of(node); ++place) {
        const int rank = plan.topology.first_of(node) + place;
        const std::int64_t begin = std::max(plan.bounds[i], plan.begin_of(node, place));
        const std::int64_t length = std::min(plan.bounds[i + 1], plan.end_of(node, place)) - begin;
        if (rank != server && length > 0)
          out.push_back({push ? rank : server, push ? server : rank, begin, length, reduce});
      }
    }
  }
}

std::optional<std::string> refuse_hierarchical_parameter_server(const PlanRequest& request) {
  if (auto why = refuse_bad_servers(request)) return why;
  // A node's part of the bytes lies on one server at least, so that each node sends to each server.
  constexpr std::size_t kMostPairs = 14'000'000;  // whose messages take a gigabyte (schedule.cpp)
  const std::size_t servers = server_ranks(request).size(), nodes = static_cast<std::size_t>(request.topology.nodes());
  if (servers * nodes <= kMostPairs) return std::nullopt;
  return fmt::format(
      "{} servers and {} nodes are {} pairs, expected at most {}, whose messages take a gigabyte; ask for fewer "
      "servers",
      servers, nodes, servers * nodes, kMostPairs);
}

Schedule plan_hierarchical_parameter_server(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Topology& topology = request.topology;
  const std::vector<int> servers = server_ranks(request);
  const std::int64_t whole = padded(request.bytes, static_cast<std::int64_t>(servers.size()));
  const auto plan = std::make_shared<const ServerHierarchy>(
      ServerHierarchy{topology, whole, servers, server_bounds(request, whole, servers.size())});
  std::vector<Stage> stages;
  const auto add = [&](auto&& append) {
    std::vector<Transfer> any;
    append(*plan, any);
    if (any.empty()) return;
    stages.push_back({1, [plan, append](std::int64_t /*round*/, std::vector<Transfer>& out) { append(*plan, out); }});
  };
  add([](const ServerHierarchy& p, std::vector<Transfer>& out) { append_inside(p, true, out); });
  // A server that is a GPU of the node holds its own gradients, which are already in the node's sums: they are
  // replaced.
  add([](const ServerHierarchy& p, std::vector<Transfer>& out) {
    append_served(p, ServerNode::own, true, false, out);
  });
  add([](const ServerHierarchy& p, std::vector<Transfer>& out) {
    append_served(p, ServerNode::other, true, true, out);
  });
  add([](const ServerHierarchy& p, std::vector<Transfer>& out) {
    append_served(p, ServerNode::own, false, false, out);
    append_served(p, ServerNode::other, false, false, out);
  });
  add([](const ServerHierarchy& p, std::vector<Transfer>& out) { append_inside(p, false, out); });
  return Schedule(topology.ranks, topology.endpoints(), whole, std::move(stages),
                  server_cost(parse_server_variant(request.variant), topology.gpus_per_node));
}

}  // namespace

extern const AllReduceScheme hierarchical_parameter_server_scheme{
    .name = "hierarchical-parameter-server",
    .summary = "sum up inside nodes, push to servers, pull the sums",
    .variants = "sharded, whole, all or number of servers, and /grpc or /duplex",
    .has_servers = true,
    .plan = plan_hierarchical_parameter_server,
    .refusal = refuse_hierarchical_parameter_server,
};

}  // namespace ganymede::sim

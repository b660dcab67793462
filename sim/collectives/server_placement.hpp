#pragma once
// Which ranks are parameter servers, and which part of the gradients each of them holds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {

/// The variant of a scheme with parameter servers: SERVERS, /grpc, /duplex, or SERVERS with one or both of them.
struct ServerVariant {
  std::string servers;  ///< "", "sharded", "whole", "all" or a number
  bool grpc = false;    ///< transfers between nodes go over gRPC
  bool duplex = false;  ///< some workers' pushes and others' pulls are under way at once, see server_cost()
};
ServerVariant parse_server_variant(const std::string& variant);

/// Returns why the request's variant names no servers; nullopt: it does.
std::optional<std::string> refuse_bad_servers(const PlanRequest& request);

/// The ranks on which the servers run.
std::vector<int> server_ranks(const PlanRequest& request);

/// The share of the bytes that each of `servers` servers holds. Each of the request's variables lies whole on the
/// server that has the least when it is placed, the largest first, as TensorFlow's GreedyLoadBalancingStrategy does;
/// the rest is in small pieces that fill up the emptiest servers. For example, with a variable of half of the bytes,
/// three servers hold 1/2, 1/4 and 1/4.
std::vector<double> server_shares(const PlanRequest& request, std::size_t servers);

/// Where each server's part of `bytes` begins, followed by `bytes`. Without large variables the parts are equal, and
/// `bytes` must be a multiple of their number.
std::vector<std::int64_t> server_bounds(const PlanRequest& request, std::int64_t bytes, std::size_t servers);

/// What the variant adds. gRPC: if `flows` transfers of a node to a server share one connection. Duplex: bytes count
/// half, because a server's link carries pushes one way while it carries pulls the other way, so that both take the
/// time of one. TensorFlow's servers apply each worker's gradients as they come, and a worker fetches variables while
/// others still push (tf_cnn_benchmarks, variable_mgr.py). Without it three publications take half of what is predicted
/// (studies/parameter_servers_p2, of which the 128 workers alone would ask for a NIC of twice the rate).
ProtocolCost server_cost(const ServerVariant& variant, int flows);

}  // namespace ganymede::sim

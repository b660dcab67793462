#include "sim/collectives/server_placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

constexpr int kMaxShardedServers = 64;

// One connection between two processes of TensorFlow carried 520 to 570 MB/s for tensors of 128 MB, whatever the
// network (tensorflow issues 6116 and 6256, December 2016); 500 to 800 MB/s after gRPC's upgrade (issue 6116, August
// 2017).
constexpr BytesPerSecond kGrpcConnection{550e6};
// Half of the round trip of a small request between two cloud machines: gRPC's published C++ benchmarks show 0.1 to 0.2
// ms for unary calls.
constexpr Seconds kGrpcLatency{75e-6};

}  // namespace

ServerVariant parse_server_variant(const std::string& variant) {
  ServerVariant out{variant};
  for (bool found = true; found;) {
    found = false;
    for (auto [name, option] : {std::pair{std::string_view("grpc"), &out.grpc}, {"duplex", &out.duplex}}) {
      const std::size_t slash = out.servers.rfind('/');
      const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
      if (*option || std::string_view(out.servers).substr(begin) != name) continue;
      out.servers.resize(begin > 0 ? slash : 0);
      found = *option = true;
    }
  }
  return out;
}

std::optional<std::string> refuse_bad_servers(const PlanRequest& request) {
  const std::string servers = parse_server_variant(request.variant).servers;
  if (servers.empty() || servers == "whole" || servers == "sharded" || servers == "all" ||
      parse_number(servers, 1, request.topology.ranks))
    return std::nullopt;
  return fmt::format(
      "found \"{}\", expected sharded, whole, all or a number of servers from 1 to {}, or one of them "
      "and /grpc or /duplex",
      request.variant, request.topology.ranks);
}

std::vector<int> server_ranks(const PlanRequest& request) {
  const Topology& topology = request.topology;
  const std::string servers_text = parse_server_variant(request.variant).servers;
  if (servers_text == "whole") return {0};
  if (servers_text == "all") return natural_order(topology.ranks);
  std::vector<int> servers;
  if (const auto count = parse_number(servers_text, 1, topology.ranks)) {
    for (std::int64_t i = 0; i < *count; ++i) servers.push_back(static_cast<int>(i * topology.ranks / *count));
  } else {
    const int nodes = topology.nodes(), count_of_sharded = std::min(nodes, kMaxShardedServers);
    for (int i = 0; i < count_of_sharded; ++i)
      servers.push_back(topology.first_of(static_cast<int>(std::int64_t{i} * nodes / count_of_sharded)));
  }
  return servers;
}

std::vector<double> server_shares(const PlanRequest& request, std::size_t servers) {
  std::vector<double> variables = request.variables;
  std::sort(variables.begin(), variables.end(), std::greater<>());
  std::vector<double> shares(servers, 0);
  for (const double variable : variables) *std::min_element(shares.begin(), shares.end()) += variable;
  double rest = std::max(0.0, 1 - std::accumulate(variables.begin(), variables.end(), 0.0));
  // The rest raises the emptiest servers to a common level.
  std::vector<double> sorted = shares;
  std::sort(sorted.begin(), sorted.end());
  double level = sorted.front();
  for (std::size_t filled = 1; filled <= servers && rest > 0; ++filled) {
    const double next = filled < servers ? sorted[filled] : level + rest;
    const double step = std::min(rest / static_cast<double>(filled), next - level);
    level += step;
    rest -= step * static_cast<double>(filled);
  }
  for (double& share : shares) share = std::max(share, level);
  return shares;
}

std::vector<std::int64_t> server_bounds(const PlanRequest& request, std::int64_t bytes, std::size_t servers) {
  std::vector<std::int64_t> bounds{0};
  const auto count = static_cast<std::int64_t>(servers);
  if (request.variables.empty()) {
    for (std::int64_t i = 1; i <= count; ++i) bounds.push_back(bytes / count * i);
    return bounds;
  }
  const std::vector<double> shares = server_shares(request, servers);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  double sum = 0;
  for (const double share : shares) {
    sum += share;
    bounds.push_back(std::llround(static_cast<double>(bytes) * (sum / all)));
  }
  bounds.back() = bytes;
  return bounds;
}

ProtocolCost server_cost(const ServerVariant& variant, int flows) {
  ProtocolCost cost;
  if (variant.duplex) cost.wire = 0.5;
  if (!variant.grpc) return cost;
  cost.between = kGrpcLatency;
  cost.flow_between = kGrpcConnection / flows;
  return cost;
}

}  // namespace ganymede::sim

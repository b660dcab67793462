// Synchronous parameter server: every rank pushes its gradients to the servers, which add them up, and pulls the sums.
// The servers run on ranks, as in a job without machines of their own for them. "sharded" (the default): one server a
// node on at most 64 nodes (an assumption: with one for each of 4,096 workers every message would be a 4,096th of the
// bytes), each with an equal share of the bytes; a number: so many servers, spread over the ranks; "all": one on every
// rank; "whole": the variable is placed whole on one server (Li et al., "Scaling distributed machine learning with the
// parameter server", 2014). Only asynchronous training knows "dedicated" and "dedicated/NUMBER": machines of their own.

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

constexpr int kMaxServers = 64;
constexpr std::int64_t kMaxDedicated = 1024;

/// Machines of "dedicated" and "dedicated/NUMBER"; 0: another variant, or no such number.
int dedicated_machines(const std::string& variant) {
  const std::string word = "dedicated";
  if (variant == word) return 1;
  if (!variant.starts_with(word + "/")) return 0;
  PlanRequest number;
  number.variant = variant.substr(word.size() + 1);
  return static_cast<int>(number_variant(number, 1, kMaxDedicated).value_or(0));
}

std::vector<int> servers_of(const PlanRequest& request) {
  const Topology& topology = request.topology;
  if (request.variant == "whole") return {0};
  std::vector<int> servers;
  if (request.variant == "all") {
    for (int rank = 0; rank < topology.ranks; ++rank) servers.push_back(rank);
  } else if (const auto count = number_variant(request, 1, topology.ranks)) {
    for (std::int64_t i = 0; i < *count; ++i) servers.push_back(static_cast<int>(i * topology.ranks / *count));
  } else {
    const int nodes = topology.nodes(), servers_wanted = std::min(nodes, kMaxServers);
    for (int i = 0; i < servers_wanted; ++i)
      servers.push_back(topology.first_of(static_cast<int>(std::int64_t{i} * nodes / servers_wanted)));
  }
  return servers;
}

}  // namespace

WhyNot parameter_server_why_not(const PlanRequest& request) {
  const auto& variant = request.variant;
  if (dedicated_machines(variant) > 0) return "servers on machines of their own need the mode async-parameter-server";
  if (!variant.empty() && variant != "whole" && variant != "sharded" && variant != "all" &&
      !number_variant(request, 1, request.topology.ranks))
    return fmt::format("found \"{}\", expected sharded, whole, all or a number of servers from 1 to {}", variant,
                       request.topology.ranks);
  return only(request, {Collective::all_reduce});
}

ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology) {
  const AllReduceScheme& row = find_scheme("parameter-server");
  const Scheme own{&row, scheme.row == &row ? scheme.variant : ""};
  if (const int machines = dedicated_machines(own.variant)) return {{}, machines};
  const PlanRequest request{topology, 1, Collective::all_reduce, own.variant};
  if (const auto why = parameter_server_why_not(request))
    throw ConfigError(fmt::format("scheme {} on {} ranks: {}", own.name(), topology.ranks, *why));
  return {servers_of(request), 0};
}

Schedule plan_parameter_server(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int ranks = request.topology.ranks;
  const auto servers = servers_of(request);
  const auto count = static_cast<std::int64_t>(servers.size());
  const std::int64_t whole = padded(request.bytes, count);
  const auto stage = [&](bool push) {
    return Stage{1, [servers, ranks, shard = whole / count, push](std::int64_t /*round*/, std::vector<Transfer>& out) {
                   std::int64_t offset = 0;
                   for (const int server : servers) {
                     for (int rank = 0; rank < ranks; ++rank)
                       if (rank != server)
                         out.push_back({push ? rank : server, push ? server : rank, offset, shard, push});
                     offset += shard;
                   }
                 }};
  };
  return Schedule(ranks, request.topology.endpoints(), whole, {stage(true), stage(false)});
}

// With k servers and shards of S/k: a server receives n-1 shards and, being a rank, sends k-1; the busiest link is its
// downlink with (n-1) S/(k B), all flows of which have equal shares and end together, and no rank has more to send.
// Then it adds them; the way back is the same. A rank enters the second round when its own pushes, and its additions,
// are done; a pull needs its server, so that all end together.
Seconds parameter_server_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const auto servers = static_cast<std::int64_t>(servers_of(request).size());
  const std::int64_t shard = padded(request.bytes, servers) / servers;
  const Bytes received{static_cast<double>(request.topology.ranks - 1) * static_cast<double>(shard)};
  return 2 * (received / star.bandwidth + star.latency) + reduction(received, star);
}

}  // namespace ganymede

// Synchronous parameter server: every rank pushes its gradients to the servers, which add them up, and pulls the sums
// (Li et al., "Scaling distributed machine learning with the parameter server", 2014). The servers run on ranks, as in
// a job without machines of their own for them. Variants:
//
//   sharded   the default: a server on the first GPU of each node, on at most 64 nodes, each with an equal share of the
//             bytes. The 64 are an assumption: with a server for each of 4,096 workers every message would be a 4,096th
//             of the bytes.
//   NUMBER    as many servers, spread over the ranks
//   all       a server on every rank
//   whole     the variable lies whole on one server
//   dedicated, dedicated/NUMBER   machines of their own, which only asynchronous training knows

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {

extern const AllReduceScheme parameter_server_scheme;

namespace {

constexpr int kMaxShardedServers = 64;
constexpr std::int64_t kMaxDedicated = 1024;

/// The number of machines of "dedicated" and "dedicated/NUMBER"; 0 for another variant or a bad number.
int dedicated_machines(const std::string& variant) {
  const std::string word = "dedicated";
  if (variant == word) return 1;
  if (!variant.starts_with(word + "/")) return 0;
  return static_cast<int>(parse_number(variant.substr(word.size() + 1), 1, kMaxDedicated).value_or(0));
}

/// The ranks on which the servers run.
std::vector<int> server_ranks(const PlanRequest& request) {
  const Topology& topology = request.topology;
  if (request.variant == "whole") return {0};
  if (request.variant == "all") return natural_order(topology.ranks);
  std::vector<int> servers;
  if (const auto count = parse_number(request.variant, 1, topology.ranks)) {
    for (std::int64_t i = 0; i < *count; ++i) servers.push_back(static_cast<int>(i * topology.ranks / *count));
  } else {
    const int nodes = topology.nodes(), count_of_sharded = std::min(nodes, kMaxShardedServers);
    for (int i = 0; i < count_of_sharded; ++i)
      servers.push_back(topology.first_of(static_cast<int>(std::int64_t{i} * nodes / count_of_sharded)));
  }
  return servers;
}

std::optional<std::string> refuse_parameter_server(const PlanRequest& request) {
  const auto& variant = request.variant;
  if (dedicated_machines(variant) > 0) return "servers on machines of their own need the mode async-parameter-server";
  if (!variant.empty() && variant != "whole" && variant != "sharded" && variant != "all" &&
      !parse_number(variant, 1, request.topology.ranks))
    return fmt::format("found \"{}\", expected sharded, whole, all or a number of servers from 1 to {}", variant,
                       request.topology.ranks);
  return std::nullopt;
}

Schedule plan_parameter_server(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const int ranks = request.topology.ranks;
  const auto servers = server_ranks(request);
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

// With k servers and shards of S/k: a server receives n-1 shards and, being a rank, sends k-1. The busiest link is its
// downlink with (n-1) S/(k B), all flows of which have equal shares and end together; no rank has more to send. Then it
// adds them. The way back is the same: a rank enters the second round when its own pushes and its additions are done,
// and a pull needs its server, so that all end together.
Seconds parameter_server_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const auto servers = static_cast<std::int64_t>(server_ranks(request).size());
  const std::int64_t shard = padded(request.bytes, servers) / servers;
  const Bytes received{static_cast<double>(request.topology.ranks - 1) * static_cast<double>(shard)};
  return 2 * (received / star.bandwidth + star.latency) + reduction(received, star);
}

}  // namespace

extern const AllReduceScheme parameter_server_scheme{
    .name = "parameter-server",
    .summary = "push to servers on the ranks, pull the sums",
    .variants = "sharded, whole, all or number of servers; asynchronous: dedicated or dedicated/NUMBER",
    .needs = "the mode `async-parameter-server` for `dedicated`",
    .planned_by_default = true,
    .plan = plan_parameter_server,
    .refusal = refuse_parameter_server,
    .on_star = parameter_server_on_star,
};

ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology) {
  const bool is_own = scheme.row->plan == plan_parameter_server;
  const Scheme own{&parameter_server_scheme, is_own ? scheme.variant : ""};
  if (const int machines = dedicated_machines(own.variant)) return {{}, machines};
  const PlanRequest request{topology, 1, Collective::all_reduce, own.variant};
  if (const auto why = own.row->why_not(request))
    throw ConfigError(fmt::format("scheme {} on {} ranks: {}", own.name(), topology.ranks, *why));
  return {server_ranks(request), 0};
}

}  // namespace ganymede::sim

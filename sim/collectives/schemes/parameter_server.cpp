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
//   SERVERS/grpc   one of these, with the limits of gRPC between nodes
//   SERVERS/duplex   one of these, with pushes and pulls under way at once, as TensorFlow's servers work
//   dedicated, dedicated/NUMBER   machines of their own, which only asynchronous training knows

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"
#include "sim/collectives/server_placement.hpp"

namespace ganymede::sim {

extern const AllReduceScheme parameter_server_scheme;

namespace {

constexpr std::int64_t kMaxDedicated = 1024;

/// The number of machines of "dedicated" and "dedicated/NUMBER"; 0 for another variant or a bad number.
int dedicated_machines(const std::string& variant) {
  const std::string word = "dedicated";
  if (variant == word) return 1;
  if (!variant.starts_with(word + "/")) return 0;
  return static_cast<int>(parse_number(variant.substr(word.size() + 1), 1, kMaxDedicated).value_or(0));
}

std::optional<std::string> refuse_parameter_server(const PlanRequest& request) {
  if (dedicated_machines(request.variant) > 0)
    return "servers on machines of their own need the mode async-parameter-server";
  return refuse_bad_servers(request);
}

Schedule plan_parameter_server(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const int ranks = request.topology.ranks;
  const auto servers = server_ranks(request);
  const std::int64_t whole = padded(request.bytes, static_cast<std::int64_t>(servers.size()));
  const std::vector<std::int64_t> bounds = server_bounds(request, whole, servers.size());
  std::int64_t sending = 0;  // servers with a part
  for (std::size_t i = 0; i < servers.size(); ++i) sending += bounds[i + 1] > bounds[i] ? 1 : 0;
  const auto stage = [&](bool push) {
    Stage all{1, [servers, ranks, bounds, push](std::int64_t /*round*/, std::vector<Transfer>& out) {
                for (std::size_t i = 0; i < servers.size(); ++i) {
                  const int server = servers[i];
                  const std::int64_t length = bounds[i + 1] - bounds[i];
                  for (int rank = 0; rank < ranks && length > 0; ++rank)
                    if (rank != server)
                      out.push_back({push ? rank : server, push ? server : rank, bounds[i], length, push});
                }
              }};
    all.transfers = sending * (ranks - 1);
    if (sending == ranks && request.variables.empty()) all.all_pairs = AllPairs{bounds[1], push};
    return all;
  };
  return Schedule(ranks, request.topology.endpoints(), whole, {stage(true), stage(false)},
                  server_cost(parse_server_variant(request.variant), 1));
}

// With k servers and a largest part of P bytes (S/k, if all variables are small): the busiest server receives n-1 parts
// and, being a rank, sends its own gradients of the others' parts. The busiest link is its downlink with (n-1) P/B, all
// flows of which have equal shares and end together; no rank has more to send. Then it adds them. The way back is the
// same: a rank enters the second round when its own pushes and its additions are done, and a pull needs its server, so
// that all end together.
Seconds parameter_server_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const std::size_t servers = server_ranks(request).size();
  const std::int64_t whole = padded(request.bytes, static_cast<std::int64_t>(servers));
  const std::vector<std::int64_t> bounds = server_bounds(request, whole, servers);
  std::int64_t part = 0;
  for (std::size_t i = 0; i < servers; ++i) part = std::max(part, bounds[i + 1] - bounds[i]);
  const Bytes received{static_cast<double>(request.topology.ranks - 1) * static_cast<double>(part)};
  const double wire = server_cost(parse_server_variant(request.variant), 1).wire;
  return 2 * (wire * received / star.bandwidth + star.latency) + reduction(received, star);
}

}  // namespace

extern const AllReduceScheme parameter_server_scheme{
    .name = "parameter-server",
    .summary = "push to servers on the ranks, pull the sums",
    .variants =
        "sharded, whole, all or number of servers, and /grpc or /duplex; asynchronous: dedicated or dedicated/NUMBER",
    .needs = "the mode `async-parameter-server` for `dedicated`",
    .has_servers = true,
    .plan = plan_parameter_server,
    .refusal = refuse_parameter_server,
    .on_star = parameter_server_on_star,
};

ParameterServers parameter_servers(const Scheme& scheme, const Topology& topology) {
  const bool is_own = scheme.row->plan == plan_parameter_server;
  const Scheme own{&parameter_server_scheme, is_own ? scheme.variant : "", {}};
  if (const int machines = dedicated_machines(own.variant)) return {{}, machines};
  const PlanRequest request{topology, 1, Collective::all_reduce, own.variant};
  if (const auto why = own.row->why_not(request))
    throw ConfigError(fmt::format("scheme {} on {} ranks: {}", own.name(), topology.ranks, *why));
  if (parse_server_variant(own.variant).grpc)
    throw ConfigError(fmt::format("scheme {}: gRPC's limits are known for synchronous training only", own.name()));
  return {server_ranks(request), 0};
}

}  // namespace ganymede::sim

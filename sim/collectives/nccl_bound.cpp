#include "sim/collectives/nccl_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/units.hpp"
#include "sim/collectives/host_paths.hpp"
#include "sim/collectives/nccl_cost.hpp"

namespace ganymede::sim {
namespace {

/// How many times as long as the fastest choice the tuner's own may take. The worst misjudgement that a log shows: LL
/// took 1,434 us for 1 MiB between two GPUs over EFA where Simple took 1,099 us for 2 MiB and is expected to take 560
/// us for 1 MiB (eks_2_efa in bench/nccl_logs.py).
constexpr double kMisjudgement = 2.7;

/// How many times as long as for a larger size a choice may take. The same log falls furthest when its sizes double;
/// the next one and the furthest of nodes of several GPUs falls by 1.15, and most logs not at all.
constexpr double kFall = 1.31, kFallOfSeveral = 1.15;

/// How often the bytes are doubled to find these sizes. No log falls for longer.
constexpr int kDoublings = 3;

/// The time of bytes on links of that rate, which are all of a node's or a GPU's, each message limited to `flow`, with
/// so many lanes side by side.
Seconds time_on(Bytes wire, BytesPerSecond rate, BytesPerSecond flow, int lanes) {
  const BytesPerSecond all = std::min(rate, static_cast<double>(lanes) * flow);
  return all.si > 0 ? wire / all : Seconds{0};
}

Seconds above_zero(Seconds time) { return std::max(Seconds{0}, time); }

Seconds expected_ring(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  const Topology& topology = request.topology;
  const NcclMachine& machine = topology.nccl;
  const int lanes = std::max(1, topology.rails);
  const ProtocolCost cost = with_host_limits(topology, lanes, nccl_ring_cost(request, choice, version, lanes), 1,
                                             choice.protocol == NcclProtocol::ll);
  const double ranks = topology.ranks, hops = 2 * (ranks - 1), crossings = hops * topology.nodes() / ranks;
  const Bytes wire{cost.wire * hops / ranks * static_cast<double>(request.bytes)};
  const double passes = static_cast<double>(nccl_passes(request, choice));
  const Seconds latency = (hops - crossings) * above_zero(machine.inside_latency + cost.inside) +
                          crossings * above_zero(machine.network_latency + machine.rendezvous + cost.between);
  const Seconds inside = time_on(wire, machine.inside_bandwidth, cost.flow_inside, lanes),
                between = time_on(wire, machine.between_bandwidth, cost.flow_between, lanes);
  // The busiest links work all the time, or else a chunk waits for each hop of its way round the ring.
  const double across = crossings / hops;
  return cost.start + std::max({inside, between, passes * latency + across * between + (1 - across) * inside});
}

Seconds expected_tree(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  const Topology& topology = request.topology;
  const NcclMachine& machine = topology.nccl;
  const NcclPipeline pipeline = nccl_pipeline(request, choice);
  const bool switches = choice.algorithm != NcclAlgorithm::tree;
  const int lanes = 2 * (switches ? topology.gpus_per_node : std::max(1, topology.rails));
  const ProtocolCost cost = with_host_limits(topology, lanes, nccl_tree_cost(request, choice, version, pipeline, lanes),
                                             pipeline.rate_between(), choice.protocol == NcclProtocol::ll);
  const auto wire = [&](double filling) {
    return Bytes{cost.wire * (1 + filling / static_cast<double>(pipeline.chunks)) * static_cast<double>(request.bytes)};
  };
  const BytesPerSecond inside = switches ? nccl_switch_rate(topology) : machine.inside_bandwidth;
  return cost.start + pipeline.way +
         std::max(time_on(wire(pipeline.filling), inside, cost.flow_inside, lanes),
                  time_on(wire(pipeline.filling_between), machine.between_bandwidth, cost.flow_between, lanes));
}

struct Timed {
  NcclChoice choice;
  Seconds time;
};

/// The tuner's choice within kMisjudgement and within `limit`, else the one that is expected to be the fastest.
Timed bounded(const PlanRequest& request, const NcclOptions& options, Seconds limit) {
  const auto timed = [&](const NcclChoice& choice) {
    return Timed{choice, nccl_expected_time(request, choice, options.version)};
  };
  const Timed chosen = timed(*choose_nccl(request.topology, request.bytes, options));
  Timed fastest = chosen;
  for (const NcclChoice& other : nccl_choices(request.topology, request.bytes, options))
    if (const Timed found = timed(other); found.time < fastest.time) fastest = found;
  return chosen.time > std::min(limit, kMisjudgement * fastest.time) ? fastest : chosen;
}

}  // namespace

Seconds nccl_expected_time(const PlanRequest& request, const NcclChoice& choice, NcclVersion version) {
  return choice.algorithm == NcclAlgorithm::ring ? expected_ring(request, choice, version)
                                                 : expected_tree(request, choice, version);
}

std::optional<NcclChoice> bounded_nccl_choice(const PlanRequest& request, const NcclOptions& options) {
  const std::optional<NcclChoice> chosen = choose_nccl(request.topology, request.bytes, options);
  if (!chosen || request.topology.nodes() == 1) return chosen;
  const double fall = request.topology.gpus_per_node > 1 ? kFallOfSeveral : kFall;
  Seconds limit{std::numeric_limits<double>::infinity()};
  for (int i = kDoublings; i > 0; --i) {
    PlanRequest larger = request;
    larger.bytes = std::min(request.bytes, std::numeric_limits<std::int64_t>::max() >> i) << i;
    limit = std::min(limit, fall * bounded(larger, options, limit).time);
  }
  return bounded(request, options, limit).choice;
}

std::string nccl_version_effect(const Topology& topology, std::int64_t bytes, const std::string& variant,
                                double least) {
  const bool stated = topology.nccl.minor > 0;
  const int minor = stated ? topology.nccl.minor : NcclVersion().minor;
  const auto own = parse_nccl_options(variant, minor);
  // A variant that names a version gives it whatever the default is.
  if (!own || parse_nccl_options(variant, minor + 1)->version == own->version) return "";
  const PlanRequest request{topology, bytes, Collective::all_reduce, variant};
  const auto time = [&](int of) -> std::optional<Seconds> {
    const NcclOptions options = *parse_nccl_options(variant, of);
    const auto choice = bounded_nccl_choice(request, options);
    if (!choice) return std::nullopt;
    return nccl_expected_time(request, *choice, options.version);
  };
  const auto now = time(minor);
  if (!now || now->si <= 0) return "";
  std::string others, last;
  for (const int other : {8, 14, 18, NcclVersion().minor}) {
    const auto then = other == minor ? std::nullopt : time(other);
    if (!then || std::abs(*then / *now - 1) < std::max(0.01, least)) continue;
    const std::string factor = fmt::format("{:.2f} times the time with", *then / *now);
    others += fmt::format("{}{} 2.{}",
                          others.empty()   ? ""
                          : factor == last ? ","
                                           : ", ",
                          factor == last ? "" : factor, other);
    last = factor;
  }
  if (others.empty() && least > 0 && !stated) return "";  // what a platform states is always said
  return fmt::format("NCCL 2.{} is {}; an all-reduce of {} would take {}", minor,
                     stated ? "the platform's" : "assumed, as neither scheme nor platform state one",
                     to_string(Bytes{static_cast<double>(bytes)}),
                     !others.empty() ? others
                     : least > 0     ? "nearly the same time with any version since 2.8"
                                     : "the same time with any version since 2.8");
}

}  // namespace ganymede::sim

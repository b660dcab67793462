#include "studies/logged_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede::studies {

traces::NcclLog undisturbed(traces::NcclLog log) {
  constexpr double kMaxTimeRatio = 2;
  std::erase_if(log.rows, [&](const traces::NcclRow& row) {
    const double ratio = row.in_place ? row.out_of_place / *row.in_place : 1;
    if (ratio <= kMaxTimeRatio && ratio >= 1 / kMaxTimeRatio) return false;
    log.notes.push_back(fmt::format("{}: {} out of place, {} in place: disturbed, left out", row.where,
                                    to_string(row.out_of_place), to_string(*row.in_place)));
    return true;
  });
  if (log.rows.empty()) throw ConfigError(log.file + ": found no size that is not disturbed: " + log.notes.back());
  return log;
}

LoggedCollective::LoggedCollective(const traces::NcclLog& log, const LogOptions& options,
                                   const platforms::Instance& instance)
    : nodes(options.nodes > 0 ? options.nodes : std::max(1, log.nodes)),
      gpus_per_node(options.gpus_per_node > 0                 ? options.gpus_per_node
                    : log.ranks > 0 && log.ranks % nodes == 0 ? log.ranks / nodes
                                                              : instance.gpus),
      collective(log.collective.empty() ? "all-reduce" : log.collective),
      eager(options.eager) {
  if (gpus_per_node > instance.gpus)
    throw ConfigError(fmt::format("{}: {} GPUs a node, but {} has {}; --gpus-per-node and --nodes say otherwise",
                                  log.file, gpus_per_node, instance.name, instance.gpus));
  check_against(log);
  if (nodes > 1 && !instance.nic)
    throw ConfigError(fmt::format("{}: {} has no \"nic\", which {} nodes need", log.file, instance.name, nodes));
  if (nodes == 1 && !instance.gpu_links && !instance.host_link)
    throw ConfigError(fmt::format("{}: {} has neither \"gpu_links\" nor \"host_link\"", log.file, instance.name));
  std::string name = options.scheme;
  if (name.empty()) {
    name = "nccl";
    for (const std::string& part : {log.version, log.algorithm, log.protocol})
      if (!part.empty()) name += (name == "nccl" ? ":" : "/") + part;
  }
  scheme = sim::parse_scheme(name);
}

bool LoggedCollective::is_large() const {
  constexpr int kSimulated = 256;
  return ranks() > kSimulated && scheme.row->by_kernels && collective == "all-reduce";
}

LoggedCollective::Prediction LoggedCollective::predict(const platforms::Platform& platform,
                                                       const std::vector<sim::NodeGroup>& groups, std::int64_t bytes,
                                                       bool explain) const {
  if (is_large()) {
    // What a tuner knows of a machine is the same for two nodes and for more of them.
    sim::Topology topology =
        sim::FabricGraph(platform, *groups.front().instance, std::min(nodes, 2), gpus_per_node).topology();
    topology.ranks = ranks();
    const sim::NcclOptions options = *sim::parse_nccl_options(scheme.variant);
    const sim::PlanRequest request{topology, bytes, sim::Collective::all_reduce, scheme.variant};
    if (const auto why = scheme.row->why_not(request)) throw sim::SchemeRefused(scheme.name() + " " + *why);
    const sim::NcclChoice choice = *sim::bounded_nccl_choice(request, options);
    return {nccl_expected_time(request, choice, options.version),
            fmt::format("{}, {}", to_string(choice.algorithm), to_string(choice.protocol)), ""};
  }
  const sim::FabricGraph fabric(platform, groups);
  sim::Schedule schedule = scheme.plan({fabric.topology(), bytes, sim::parse_collective(collective), ""});
  if (eager) schedule.set_cost({.eager = true});
  const sim::Job job{{sim::Communicator{{}, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(ranks()))}}}}};
  const sim::FoldedTimes times = sim::run_folded(fabric, {&job, 1}, explain);
  const auto& done = times.times[0][0][0].done;
  return {*std::max_element(done.begin(), done.end()), schedule.note(), times.bottleneck.what};
}

void LoggedCollective::check_against(const traces::NcclLog& log) const {
  if (log.ranks > 0 && log.ranks != ranks())
    throw ConfigError(fmt::format("{}: found {} ranks, {} x {} GPUs are {}; --nodes and --gpus-per-node say otherwise",
                                  log.file, log.ranks, nodes, gpus_per_node, ranks()));
  if (ranks() < 2)
    throw ConfigError(log.file + ": one rank, expected several: nothing crosses a link; --nodes says of how many");
  if (!log.bus_factor) return;
  const double expected = sim::bus_bandwidth_factor(sim::parse_collective(collective), ranks());
  if (std::abs(*log.bus_factor - expected) > 0.03)
    throw ConfigError(fmt::format(
        "{}: busbw / algbw is {:.2f}, that of {} over {} ranks would be {:.2f}; --nodes and --gpus-per-node say of how "
        "many ranks the log is",
        log.file, *log.bus_factor, collective.front() == 'a' ? "an " + collective : "a " + collective, ranks(),
        expected));
}

}  // namespace ganymede::studies

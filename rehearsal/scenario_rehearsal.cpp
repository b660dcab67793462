#include "rehearsal/scenario_rehearsal.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/host_connections.hpp"
#include "rehearsal/late_messenger.hpp"
#include "rehearsal/mpi_hosts.hpp"
#include "rehearsal/step_rehearsal.hpp"

namespace ganymede::rehearsal {
namespace {

void check_processes(const ScenarioRehearsal& request, const sim::Scenario& scenario) {
  const int processes = kernel::launched_processes(),
            expected = request.hosts.hosts > 0 ? request.hosts.hosts : processes;
  refuse_launched(request.hosts);
  if (expected == 1)
    throw ConfigError(
        fmt::format("rehearse: found one process, expected one for each of the {} GPUs of {}: mpirun -n {} "
                    "ganymede rehearse {}, or --hosts {}",
                    scenario.workers(), scenario.file, scenario.workers(), scenario.file, scenario.workers()));
  if (expected != scenario.workers())
    throw ConfigError(fmt::format("{}: /platform: found {} GPUs, expected {}, as many as there are {}", scenario.file,
                                  scenario.workers(), expected, request.hosts.hosts > 0 ? "--hosts" : "processes"));
}

/// Rehearses on this rank; returns at rank 0 the result as text. If `nodes` is above 1, a study of the links between so
/// many nodes is to be written.
std::string rehearse_as_rank(const RehearsalRequest& request, kernel::Messenger& messenger, int nodes = 1) {
  Group group(messenger);
  if (nodes > 1 && group.clock().same_machine)
    throw ConfigError(
        fmt::format("--output: all ranks are on one machine, expected them on {} as the scenario has nodes: a study "
                    "would take the machine's own memory for the links between nodes; --hosts plays these links",
                    nodes));
  const OrderedJson result = rehearse_steps(request, group);
  return group.is_first() ? result.dump() : "";
}

/// The result of processes that a launcher has started, at the first one; null elsewhere.
OrderedJson rehearse_launched(const ScenarioRehearsal& request, const sim::Scenario& scenario,
                              const sim::FabricGraph& fabric) {
  const bool is_played = !request.played.empty();
  const double scale = is_played ? request.played[0] : 1;
  const StepPlan plan = plan_steps(scenario, fabric.topology(), scale);
  auto messenger = kernel::open_messenger();
  std::optional<BeforeOthers> before_others;
  if (is_played) {
    before_others.emplace();
    messenger = std::make_unique<LateMessenger>(std::move(messenger), Seconds{request.played[1]});
  }
  const PlainFabric stated(fabric.ranks(), scaled(stated_ping(fabric), scale));
  const int nodes = request.is_study && !is_played ? scenario.pools.front().pool.nodes : 1;
  const std::string text = rehearse_as_rank(
      {&plan, request.length, is_played ? &stated.graph() : &fabric, request.computes}, *messenger, nodes);
  if (text.empty()) return nullptr;
  OrderedJson result = OrderedJson::parse(text);
  result["scale"] = scale;
  return result;
}

/// The same for processes that mpirun starts in name spaces.
OrderedJson rehearse_by_mpirun(const ScenarioRehearsal& request, const HostsNetwork& network) {
  const Shaping shaping{network.stated.rate, network.stated.latency, request.hosts.loss};
  const auto command = [&](bool is_delayed) {
    std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string()};
    words.insert(words.end(), request.again.begin(), request.again.end());
    words.insert(words.end(), {"--played", fmt::format("{}", network.scale),
                               fmt::format("{}", is_delayed ? 0 : network.stated.latency.si)});
    return words;
  };
  return OrderedJson::parse(run_by_mpi_on_hosts(request.hosts.hosts, shaping, command));
}

}  // namespace

OrderedJson rehearse_scenario(const sim::Scenario& scenario, const ScenarioRehearsal& request, const Remark& remark) {
  check_processes(request, scenario);
  if (!scenario.faults.events.empty() || scenario.checkpoints.every != sim::Checkpoints::Every::never)
    remark("note: faults, checkpoints and the policy are not played here; --life plays them\n");
  const sim::FabricGraph fabric = fabric_of(scenario);
  const int hosts = request.hosts.hosts;
  if (request.computes && hosts > 0) check_processors(hosts);
  if (hosts == 0) return rehearse_launched(request, scenario, fabric);
  const HostsNetwork network = network_of_hosts(request.hosts, fabric, remark);
  if (request.hosts.network == "mpirun") return rehearse_by_mpirun(request, network);
  const StepPlan plan = plan_steps(scenario, fabric.topology(), network.scale);
  const PlainFabric stated(hosts, network.stated);
  OrderedJson result = OrderedJson::parse(run_on_hosts(request.hosts, network, [&](kernel::Messenger& messenger) {
    return rehearse_as_rank({&plan, request.length, &stated.graph(), request.computes}, messenger);
  }));
  result["scale"] = network.scale;
  return result;
}

}  // namespace ganymede::rehearsal

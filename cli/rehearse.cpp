// ganymede rehearse: the steps of a scenario in real time, with what was predicted beside what was measured.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <tuple>

#include "cli/command.hpp"
#include "cli/hosts_options.hpp"
#include "cli/names.hpp"
#include "cli/rehearse_life.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "plan/chosen_scenario.hpp"
#include "rehearsal/host_connections.hpp"
#include "rehearsal/late_messenger.hpp"
#include "rehearsal/mpi_hosts.hpp"
#include "rehearsal/step_rehearsal.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "studies/rehearsed_links.hpp"

namespace ganymede::cli {
namespace {
struct RehearseOptions {
  std::string scenario, length = "10s", compute = "replay";
  HostsChoice hosts;
  bool life = false;
  std::vector<std::string> assignments;
  /// For processes that `--network mpirun` has started: the scale, and the seconds by which messages are held back.
  std::vector<double> played;
};

Seconds length_of(const RehearseOptions& options) {
  try {
    const Seconds length = parse_quantity<Seconds>(options.length);
    if (!(length > Seconds{0} && length <= Seconds{3600}))
      throw std::invalid_argument("expected more than 0s, at most 1h");
    return length;
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("--for {}: {}", options.length, error.what()));
  }
}

void check_processes(const RehearseOptions& options, const sim::Scenario& scenario) {
  const int processes = kernel::launched_processes(),
            expected = options.hosts.hosts > 0 ? options.hosts.hosts : processes;
  if (options.hosts.hosts > 0 && processes > 1)
    throw ConfigError("--hosts: found several processes, expected one, which starts the others");
  if (expected == 1)
    throw ConfigError(
        fmt::format("rehearse: found one process, expected one for each of the {} GPUs of {}: mpirun -n {} "
                    "ganymede rehearse {}, or --hosts {}",
                    scenario.workers(), scenario.file, scenario.workers(), scenario.file, scenario.workers()));
  if (expected != scenario.workers())
    throw ConfigError(fmt::format("{}: /platform: found {} GPUs, expected {}, as many as there are {}", scenario.file,
                                  scenario.workers(), expected, options.hosts.hosts > 0 ? "--hosts" : "processes"));
}

/// What the ranks do; at rank 0 the result as text. If `nodes` is above 1, a study of the links between so many nodes
/// is to be written.
std::string rehearse_as_rank(const rehearsal::RehearsalRequest& request, kernel::Messenger& messenger, int nodes = 1) {
  rehearsal::Group group(messenger);
  if (nodes > 1 && group.clock().same_machine)
    throw ConfigError(
        fmt::format("--output: all ranks are on one machine, expected them on {} as the scenario has nodes: a study "
                    "would take the machine's own memory for the links between nodes; --hosts plays these links",
                    nodes));
  const OrderedJson result = rehearsal::rehearse_steps(request, group);
  return group.is_first() ? result.dump() : "";
}

/// The result of processes that a launcher has started, at the first one; null elsewhere.
OrderedJson rehearse_launched(const RehearseOptions& options, const sim::Scenario& scenario,
                              const sim::FabricGraph& fabric, bool is_study) {
  const bool is_played = !options.played.empty();
  const double scale = is_played ? options.played[0] : 1;
  const rehearsal::StepPlan plan = rehearsal::plan_steps(scenario, fabric.topology(), scale);
  auto messenger = kernel::open_messenger();
  std::optional<rehearsal::BeforeOthers> before_others;
  if (is_played) {
    before_others.emplace();
    messenger = std::make_unique<rehearsal::LateMessenger>(std::move(messenger), Seconds{options.played[1]});
  }
  const rehearsal::PlainFabric stated(fabric.ranks(), scaled(rehearsal::stated_ping(fabric), scale));
  const int nodes = is_study && !is_played ? scenario.pools.front().pool.nodes : 1;
  const std::string text = rehearse_as_rank(
      {&plan, length_of(options), is_played ? &stated.graph() : &fabric, options.compute == "real"}, *messenger, nodes);
  if (text.empty()) return nullptr;
  OrderedJson result = OrderedJson::parse(text);
  result["scale"] = scale;
  return result;
}

/// The same for processes that mpirun starts in name spaces.
OrderedJson rehearse_by_mpirun(const RehearseOptions& options, const HostsNetwork& network) {
  const rehearsal::Shaping shaping{network.stated.rate, network.stated.latency, options.hosts.loss};
  const auto command = [&](bool is_delayed) {
    std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                      "rehearse",
                                      options.scenario,
                                      "--for",
                                      options.length,
                                      "--compute",
                                      options.compute,
                                      "--format",
                                      "json",
                                      "--quiet",
                                      "--played",
                                      fmt::format("{}", network.scale),
                                      fmt::format("{}", is_delayed ? 0 : network.stated.latency.si)};
    for (const std::string& assignment : options.assignments) words.insert(words.end(), {"--set", assignment});
    return words;
  };
  return OrderedJson::parse(rehearsal::run_by_mpi_on_hosts(options.hosts.hosts, shaping, command));
}

/// The result of all ranks at the first one; null elsewhere.
OrderedJson rehearse_all(const RehearseOptions& options, const sim::Scenario& scenario, const Shared& shared) {
  const sim::FabricGraph fabric = rehearsal::fabric_of(scenario);
  const Seconds length = length_of(options);
  const bool computes = options.compute == "real";
  if (computes && options.hosts.hosts > 0) rehearsal::check_processors(options.hosts.hosts);
  if (options.hosts.hosts == 0) return rehearse_launched(options, scenario, fabric, !shared.output.empty());
  const HostsNetwork network = network_of_hosts(options.hosts, fabric, shared);
  if (options.hosts.network == "mpirun") return rehearse_by_mpirun(options, network);
  const rehearsal::StepPlan plan = rehearsal::plan_steps(scenario, fabric.topology(), network.scale);
  const rehearsal::PlainFabric stated(options.hosts.hosts, network.stated);
  OrderedJson result = OrderedJson::parse(run_on(options.hosts, network, [&](kernel::Messenger& messenger) {
    return rehearse_as_rank({&plan, length, &stated.graph(), computes}, messenger);
  }));
  result["scale"] = network.scale;
  return result;
}

std::string seconds_text(const OrderedJson& value) { return to_string(Seconds{value.get<double>()}); }

std::string network_text(const OrderedJson& network) {
  return fmt::format("{} and {}", to_string(BytesPerSecond{network["rate_bytes_per_s"].get<double>()}),
                     seconds_text(network["latency_s"]));
}

/// Names the part of the step that was predicted worst, if that matters: by 1 % of the step or more.
std::string what_is_off(const OrderedJson& measured, const OrderedJson& predicted) {
  constexpr double kMatters = 0.01;
  const auto step = measured["step_s"].get<double>();
  std::string out;
  double worst = kMatters;
  for (const auto& [key, value] : measured.items()) {
    if (key == "step_s" || !value.is_number()) continue;
    const double off = (predicted[key].get<double>() - value.get<double>()) / step;
    if (std::abs(off) < worst) continue;
    worst = std::abs(off);
    std::string name = key.substr(0, key.size() - 2);
    std::replace(name.begin(), name.end(), '_', ' ');
    out = fmt::format("Most is off in {}: predicted {:.1f} % of the step too {}.", name, 100 * worst,
                      off > 0 ? "long" : "short");
  }
  return out.empty() ? "No part of the step is off by 1 % of it or more." : out;
}

std::string text_of(const OrderedJson& result, std::size_t width) {
  const OrderedJson &measured = result["measured"], &noise = result["noise"];
  std::string out = fmt::format(
      "{} ranks, {} steps, {}{}\n", result["ranks"].get<int>(), result["steps"].get<int>(),
      result["messenger"].get<std::string>(),
      result["scale"] == 1
          ? ""
          : fmt::format("; everything takes {:g} times as long as in the scenario", result["scale"].get<double>()));
  if (!result["network"]["stated"].is_null())
    out += fmt::format("The scenario states links of {}; a ping between two ranks found {}.\n",
                       network_text(result["network"]["stated"]), network_text(result["network"]["measured"]));
  const bool has_ping = result.contains("predicted_from_ping");
  std::vector<std::string> head = {"of a mean step", ">measured", ">predicted", ">off by"};
  if (has_ping) head.insert(head.end(), {">from the ping", ">off by"});
  report::Table table(head);
  for (const auto& [key, value] : measured.items()) {
    if (!value.is_number()) continue;
    std::string name = key.substr(0, key.size() - 2);
    std::replace(name.begin(), name.end(), '_', ' ');
    std::vector<std::string> cells = {name, seconds_text(value)};
    for (const char* by : {"predicted", "predicted_from_ping"}) {
      if (!result.contains(by)) continue;
      const auto predicted = result[by][key].get<double>();
      cells.push_back(to_string(Seconds{predicted}));
      cells.push_back(report::signed_percent((predicted - value.get<double>()) / measured["step_s"].get<double>()));
    }
    table.add(cells);
  }
  out += "\n" + table.text(width) + "\n";
  out += fmt::format("Shares are of the measured step, whose 95 % interval is {} to {}. {}\n",
                     seconds_text(measured["interval_s"][0]), seconds_text(measured["interval_s"][1]),
                     what_is_off(measured, result[has_ping ? "predicted_from_ping" : "predicted"]));
  out += fmt::format(
      "Noise: a rank came up to {} late to a moment of its step (median); {} took {} of processor "
      "time a step and rank; clocks agree within {}.{}\n",
      seconds_text(noise["late_s"]), result["compute"] == "real" ? "computing and communication" : "communication",
      seconds_text(noise["processor_s"]), seconds_text(noise["clock_error_s"]),
      noise["more_ranks_than_processors"].get<bool>()
          ? " Compute is slept through: there are more ranks than processors."
          : "");
  return out;
}

/// Where the links come from that were rehearsed on, for the study.
std::string links_of(const RehearseOptions& options, const sim::Scenario& scenario) {
  if (options.hosts.hosts > 0) return studies::kPlayedNetwork;
  const sim::ScenarioPool& pool = scenario.pools.front();
  return pool.platform->fabric_label(pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node);
}

/// A study for `ganymede validate`, in the scenario's own time.
void write_study(const sim::Scenario& scenario, const OrderedJson& result, const std::string& links,
                 const std::string& file) {
  constexpr double kMatters = 0.05;  // share of a step from which a part is a cell of its own
  const auto scale = result["scale"].get<double>(), step = result["measured"]["step_s"].get<double>();
  const double steps = static_cast<double>(scenario.steps);
  OrderedJson cells = OrderedJson::array();
  const auto add = [&](const char* what, const char* key, const std::string& value, double factor) {
    OrderedJson tags = {"rehearsed"};
    if (std::string_view(key) == "exposed_communication_s") tags.push_back("communication");
    cells.push_back({{"what", what},
                     {"unit", "s"},
                     {"run", "rehearsed"},
                     {"value", value},
                     {"scale", factor},
                     {"measured", result["measured"][key].get<double>() / scale},
                     {"role", "predict"},
                     {"tags", tags}});
  };
  add("step", "step_s", "/time/step_mean_s", 1);
  for (const auto& [what, key, value] :
       {std::tuple{"exposed communication of a step", "exposed_communication_s", "/gpu_seconds/exposed_communication"},
        std::tuple{"waiting for other workers in a step", "straggler_s", "/gpu_seconds/straggler"}})
    if (result["measured"][key].get<double>() > kMatters * step) add(what, key, value, 1 / steps / scenario.workers());
  const OrderedJson study = {
      {"schema", "ganymede.validation/1"},
      {"name", std::filesystem::path(file).stem().string()},
      {"title", fmt::format("{} rehearsed by {} ranks", std::filesystem::path(scenario.file).filename().string(),
                            result["ranks"].get<int>())},
      {"source", fmt::format("ganymede rehearse: {} steps, {}", result["steps"].get<int>(),
                             result["messenger"].get<std::string>())},
      {"links", links},
      {"assumptions",
       {{{"what", result["compute"] == "real" ? "compute takes the recorded times, for which ranks computed"
                                              : "compute takes the recorded times, which were slept through"},
         {"source", "ganymede rehearse"}},
        {{"what", fmt::format("times are those of the rehearsal divided by {:g}", scale)},
         {"source", "ganymede rehearse"}}}},
      {"runs", {{"rehearsed", scenario_of_study(scenario)}}},
      {"cells", cells}};
  write_file(file, study.dump(1) + "\n");
}

void run_rehearse(const RehearseOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.scenario);
  if (options.life) {
    if (options.hosts.hosts == 0)
      throw ConfigError("--life: expected --hosts N beside it: nodes come and go on this machine");
    if (options.compute != "replay")
      throw ConfigError("--compute: found real, expected replay with --life, whose workers sleep through their phases");
    return run_life({options.scenario, length_of(options), options.hosts, options.assignments}, shared);
  }
  const sim::Scenario scenario = plan::load_scenario_or_plan(options.scenario, parse_assignments(options.assignments));
  check_processes(options, scenario);
  if (!scenario.faults.events.empty() || scenario.checkpoints.every != sim::Checkpoints::Every::never)
    remark(shared, "note: faults, checkpoints and the policy are not played here; --life plays them\n");
  const OrderedJson result = rehearse_all(options, scenario, shared);
  if (result.is_null()) return;
  Shared to_stdout = shared;
  to_stdout.output.clear();
  emit(to_stdout, shared.format == "json" ? result.dump(2) + "\n" : text_of(result, result_width(shared)));
  if (!shared.output.empty()) write_study(scenario, result, links_of(options, scenario), shared.output);
}

void declare_rehearse(Parser command, Shared& shared) {
  auto options = std::make_shared<RehearseOptions>();
  command.add_option("scenario", options->scenario, "a scenario, or a plan, whose chosen candidate is played")
      .check(suggest("@files"))
      .required();
  command.add_option("--for", options->length, "how long to play, about, for example 60s").capture_default_str();
  command
      .add_option("--compute", options->compute,
                  "replay: ranks sleep through their phases; real: they compute as long as the trace says, each on a "
                  "processor of its own")
      .check(one_of({"replay", "real"}))
      .capture_default_str();
  add_hosts(command, options->hosts);
  command.add_flag("--life", options->life,
                   "with --hosts: the whole life, with boots, losses, checkpoints and the policy, in about --for");
  add_set(command, options->assignments);
  command.add_option("--played", options->played).expected(2).hidden();
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_rehearse(*options, shared); });
}

}  // namespace

Command rehearse_command() {
  return {.name = "rehearse",
          .summary = "a scenario's steps or life in real time on real sockets, beside what is predicted",
          .examples =
              "  mpirun -n 8 ganymede rehearse scenario.json --for 60s\n"
              "  ganymede rehearse scenario.json --hosts 4 [--network paced|mpirun] -o study.json\n"
              "  ganymede rehearse scenario.json --hosts 4 --life --for 10min\n"
              "  ganymede validate study.json\n",
          .about =
              "Each rank sleeps or computes through its phases as the trace says; buckets become ready at their\n"
              "times and are summed for real meanwhile. With --hosts the processes are started here, on a network as\n"
              "slow as the scenario's, scaled down. With --life nodes boot, are lost and come back as the scenario\n"
              "says, checkpoints are written and the policy decides; `report` and `export perfetto` read what\n"
              "--format json then prints. --output is a study that `ganymede validate` runs.",
          .declare = declare_rehearse};
}

}  // namespace ganymede::cli

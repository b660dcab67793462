#include "cli/train_elastic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/names.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/parallel/communicator.hpp"
#include "plan/chosen_scenario.hpp"
#include "rehearsal/host_connections.hpp"
#include "rehearsal/training_world.hpp"
#include "report/table.hpp"
#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::cli {
namespace {
/// Options that each start gets another value of, or none.
const std::set<std::string> kOwnOptions = {"--policy",     "--plan",    "--launcher",         "--scale",
                                           "--batch",      "--steps",   "--checkpoint-every", "--resume",
                                           "--checkpoint", "--metrics", "--format",           "--output"};
/// Options that a single process refuses.
const std::set<std::string> kOfSeveral = {"--sync-batch-norm", "--compression"};

/// The options that the user gave, as words, for a start of so many processes.
std::vector<std::string> options_for(Parser command, int processes) {
  std::vector<std::string> out;
  for (const auto& [name, values] : command.given()) {
    if (kOwnOptions.contains(name) || (processes == 1 && kOfSeveral.contains(name))) continue;
    if (values.empty()) out.push_back(name);
    for (const std::string& value : values) out.insert(out.end(), {name, value});
  }
  return out;
}

std::vector<std::string> launcher_words(const ElasticOptions& options, int processes) {
  std::istringstream in(options.launcher);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word == "{}" ? std::to_string(processes) : word);
  return out;
}

void check_elastic(const TrainArguments& arguments, const ElasticOptions& options) {
  if (options.policy.empty() || options.plan.empty())
    throw ConfigError("--policy, --plan: expected both: the plan says what there is to rent, and the policy rents it");
  if (arguments.checkpoint.empty())
    throw ConfigError("--policy: expected --checkpoint too: processes go on from there when their number changes");
  if (arguments.resume)
    throw ConfigError(
        "--resume: found --policy too; a life that was interrupted goes on without its policy: leave out "
        "--policy and --plan");
  if (kernel::launched_processes() > 1)
    throw ConfigError("--policy: found several processes, expected one, which starts the others: leave out mpirun");
  if (arguments.gpus > 1) throw ConfigError("--gpus: found --policy too, whose processes have one GPU each");
  if (!arguments.trace.empty()) throw ConfigError("--trace: found --policy too; a trace is of one process");
  if (options.launcher.find("{}") == std::string::npos)
    throw ConfigError(
        fmt::format("--launcher: found \"{}\", expected {{}} in it for the number of processes", options.launcher));
}

/// What the policy rents: the plan's choice or a scenario, until the steps of this training are done.
sim::Scenario scenario_of(Parser command, const TrainArguments& arguments, const ElasticOptions& options) {
  sim::Scenario scenario = plan::load_scenario_or_plan(options.plan, {{"/policy/name", "\"" + options.policy + "\""}});
  for (const sim::ScenarioPool& pool : scenario.pools)
    if (pool.pool.gpus_per_node != 1)
      throw ConfigError(
          fmt::format("{}: /platform: found {} GPUs on a node, expected 1: each process stands for a node",
                      options.plan, pool.pool.gpus_per_node));
  if (scenario.stages.size() > 1 || scenario.input.storage)
    throw ConfigError(
        fmt::format("{}: a growing model or a dataset in a storage is not trained by a policy", options.plan));
  scenario.evaluation.reset();  // that of this training is --quality-every
  const auto given = command.given();
  if (std::any_of(given.begin(), given.end(), [](const auto& option) { return option.first == "--steps"; }))
    scenario.steps = arguments.steps;
  else if (scenario.target != sim::Target::steps)
    scenario.steps = (scenario.images + arguments.options.batch - 1) / arguments.options.batch;
  scenario.target = sim::Target::steps;
  return scenario;
}

OrderedJson starts_json(const std::vector<rehearsal::ElasticStart>& starts) {
  OrderedJson out = OrderedJson::array();
  for (const rehearsal::ElasticStart& start : starts)
    out.push_back({{"at_s", start.at_s},
                   {"nodes", start.nodes},
                   {"processes", start.processes},
                   {"from_step", start.from},
                   {"to_step", start.to},
                   {"end", start.end}});
  return out;
}

std::string starts_text(const std::vector<rehearsal::ElasticStart>& starts) {
  report::Table table({">at", ">nodes", ">processes", ">from step", ">to step", "ended"});
  for (const rehearsal::ElasticStart& start : starts)
    table.add({to_string(Seconds{start.at_s}), std::to_string(start.nodes), std::to_string(start.processes),
               std::to_string(start.from), std::to_string(start.to), start.end});
  return table.text();
}

}  // namespace

void add_elastic_options(Parser command, ElasticOptions& options) {
  command
      .add_option("--policy", options.policy,
                  "let this policy decide how many processes train; --batch is then that of all of them")
      .check(suggest("@policies"));
  command
      .add_option("--plan", options.plan,
                  "with --policy: a plan or scenario, which says what there is to rent, when it boots and is lost")
      .check(suggest("@files"));
  command.add_option("--launcher", options.launcher, "with --policy: how {} processes are started on this machine")
      .capture_default_str();
  command
      .add_option("--scale", options.scale,
                  "with --policy: real seconds for one of the plan's boots, notices and faults")
      .check(number_between(1e-6, 1e6))
      .capture_default_str();
}

void train_elastically(Parser command, const TrainArguments& arguments, const ElasticOptions& options, Shared& shared) {
  check_elastic(arguments, options);
  const sim::Scenario scenario = scenario_of(command, arguments, options);
  const std::filesystem::path folder = arguments.checkpoint;
  std::filesystem::create_directories(folder);
  rehearsal::ElasticPlan plan;
  plan.scenario = &scenario;
  plan.scale = options.scale;
  plan.batch = arguments.options.batch;
  plan.files = {arguments.metrics.empty() ? folder / "training.jsonl" : std::filesystem::path(arguments.metrics),
                folder / "report", folder / "errors"};
  std::filesystem::remove(plan.files.log);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  plan.command = [&](int processes, std::int64_t every) {
    remark(shared, fmt::format("{} processes train", processes));
    std::vector<std::string> out = launcher_words(options, processes);
    out.insert(out.end(), {program, "train"});
    for (std::string& word : options_for(command, processes)) out.push_back(std::move(word));
    const std::int64_t never = scenario.steps + 1;
    for (const auto& [name, value] :
         {std::pair{"--steps", std::to_string(scenario.steps)},
          std::pair{"--batch", std::to_string(arguments.options.batch / processes)},
          std::pair{"--checkpoint", folder.string()}, std::pair{"--metrics", plan.files.log.string()},
          std::pair{"--checkpoint-every", std::to_string(every > 0 ? every : never)},
          std::pair{"--format", shared.format}})
      out.insert(out.end(), {name, value});
    out.insert(out.end(), {"--resume", "--quiet"});
    return out;
  };
  sim::StepDistributionCache cache;
  sim::ScenarioSteps steps(scenario, cache);
  const auto controller = sim::make_controller(scenario);
  const rehearsal::EndSignals signals;
  rehearsal::TrainingWorld world(plan);
  try {
    const sim::RunRecord record = sim::RunSimulation(scenario, steps, *controller, &world).run();
    const sim::Result life = sim::result_of(scenario, record);
    const std::string report = read_file(plan.files.report);
    for (const std::filesystem::path& file : {plan.files.report, plan.files.errors}) std::filesystem::remove(file);
    if (shared.format == "json") {
      emit(shared, OrderedJson{{"policy", options.policy},
                               {"scale", options.scale},
                               {"steps", scenario.steps},
                               {"batch", arguments.options.batch},
                               {"starts", starts_json(world.starts())},
                               {"life", documents::result_row(life)},
                               {"report", OrderedJson::parse(report)}}
                           .dump(2) +
                       "\n");
      return;
    }
    emit(shared, fmt::format("{}\nThe plan's nodes would cost {} USD in {}.\n\n{}", starts_text(world.starts()),
                             decimal(life.bill.total()), to_string(life.total), report));
  } catch (const rehearsal::ElasticInterrupted& interrupted) {
    remark(shared,
           fmt::format("stopped after step {}; --resume without --policy goes on from there", interrupted.step));
    shared.exit_code = ExitCode::interrupted;
  }
}

}  // namespace ganymede::cli

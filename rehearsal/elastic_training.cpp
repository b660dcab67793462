#include "rehearsal/elastic_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/parallel/communicator.hpp"
#include "plan/chosen_scenario.hpp"
#include "rehearsal/local_network.hpp"
#include "report/table.hpp"
#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::rehearsal {
namespace {
/// Options that each start gets another value of, or none.
const std::set<std::string> kOwnOptions = {"--policy",     "--plan",    "--launcher",         "--scale",
                                           "--batch",      "--steps",   "--checkpoint-every", "--resume",
                                           "--checkpoint", "--metrics", "--format",           "--output"};
/// Options that a single process refuses.
const std::set<std::string> kOptionsOfSeveral = {"--sync-batch-norm", "--compression"};

/// The options that the user gave, as words, for a start of so many processes.
std::vector<std::string> options_for(const GivenOptions& given, int processes) {
  std::vector<std::string> out;
  for (const auto& [name, values] : given) {
    if (kOwnOptions.contains(name) || (processes == 1 && kOptionsOfSeveral.contains(name))) continue;
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

void check_elastic(const kernel::SessionOptions& session, const ElasticOptions& options) {
  if (options.policy.empty() || options.plan.empty())
    throw ConfigError("--policy, --plan: expected both: the plan says what there is to rent, and the policy rents it");
  if (session.checkpoint.empty())
    throw ConfigError("--policy: expected --checkpoint too: processes go on from there when their number changes");
  if (session.resume)
    throw ConfigError(
        "--resume: found --policy too; a life that was interrupted goes on without its policy: leave out "
        "--policy and --plan");
  if (kernel::launched_processes() > 1)
    throw ConfigError("--policy: found several processes, expected one, which starts the others: leave out mpirun");
  if (session.gpus > 1) throw ConfigError("--gpus: found --policy too, whose processes have one GPU each");
  if (!session.trace.empty()) throw ConfigError("--trace: found --policy too; a trace is of one process");
  if (options.launcher.find("{}") == std::string::npos)
    throw ConfigError(
        fmt::format("--launcher: found \"{}\", expected {{}} in it for the number of processes", options.launcher));
}

/// The scenario by which the policy rents, the plan's choice or one of its own, until the steps of this training are
/// done.
sim::Scenario scenario_of(const GivenOptions& given, const kernel::SessionOptions& session,
                          const ElasticOptions& options) {
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
  if (std::any_of(given.begin(), given.end(), [](const auto& option) { return option.first == "--steps"; }))
    scenario.steps = session.steps;
  else if (scenario.target != sim::Target::steps)
    scenario.steps = (scenario.images + session.train.batch - 1) / session.train.batch;
  scenario.target = sim::Target::steps;
  return scenario;
}

OrderedJson starts_json(const std::vector<ElasticStart>& starts) {
  OrderedJson out = OrderedJson::array();
  for (const ElasticStart& start : starts)
    out.push_back({{"at_s", start.at_s},
                   {"nodes", start.nodes},
                   {"processes", start.processes},
                   {"from_step", start.from},
                   {"to_step", start.to},
                   {"end", start.end}});
  return out;
}

std::string starts_text(const std::vector<ElasticStart>& starts) {
  report::Table table({">at", ">nodes", ">processes", ">from step", ">to step", "ended"});
  for (const ElasticStart& start : starts)
    table.add({to_string(Seconds{start.at_s}), std::to_string(start.nodes), std::to_string(start.processes),
               std::to_string(start.from), std::to_string(start.to), start.end});
  return table.text();
}

}  // namespace

ElasticTraining train_elastically(const kernel::SessionOptions& session, const ElasticOptions& options,
                                  const GivenOptions& given, const std::string& format,
                                  const std::function<void(const std::string&)>& remark) {
  check_elastic(session, options);
  const sim::Scenario scenario = scenario_of(given, session, options);
  const std::filesystem::path folder = session.checkpoint;
  std::filesystem::create_directories(folder);
  ElasticPlan plan;
  plan.scenario = &scenario;
  plan.scale = options.scale;
  plan.batch = session.train.batch;
  plan.files = {session.metrics.empty() ? folder / "training.jsonl" : std::filesystem::path(session.metrics),
                folder / "report", folder / "errors"};
  std::filesystem::remove(plan.files.log);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  plan.command = [&](int processes, std::int64_t every) {
    remark(fmt::format("{} processes train", processes));
    std::vector<std::string> out = launcher_words(options, processes);
    out.insert(out.end(), {program, "train"});
    for (std::string& word : options_for(given, processes)) out.push_back(std::move(word));
    const std::int64_t never = scenario.steps + 1;
    for (const auto& [name, value] :
         {std::pair{"--steps", std::to_string(scenario.steps)},
          std::pair{"--batch", std::to_string(session.train.batch / processes)},
          std::pair{"--checkpoint", folder.string()}, std::pair{"--metrics", plan.files.log.string()},
          std::pair{"--checkpoint-every", std::to_string(every > 0 ? every : never)}, std::pair{"--format", format}})
      out.insert(out.end(), {name, value});
    out.insert(out.end(), {"--resume", "--quiet"});
    return out;
  };
  sim::StepDistributionCache cache;
  sim::ScenarioSteps steps(scenario, cache);
  const auto controller = sim::make_controller(scenario);
  const EndSignals signals;
  TrainingWorld world(plan);
  const sim::RunRecord record = sim::RunSimulation(scenario, steps, *controller, &world).run();
  ElasticTraining out{world.starts(), scenario.steps, sim::result_of(scenario, record), read_file(plan.files.report)};
  for (const std::filesystem::path& file : {plan.files.report, plan.files.errors}) std::filesystem::remove(file);
  return out;
}

std::string to_table(const ElasticTraining& training) {
  return fmt::format("{}\nThe plan's nodes would cost {} USD in {}.\n\n{}", starts_text(training.starts),
                     decimal(training.life.bill.total()), to_string(training.life.total), training.report);
}

std::string to_json(const ElasticTraining& training, const kernel::SessionOptions& session,
                    const ElasticOptions& options) {
  return OrderedJson{{"policy", options.policy},
                     {"scale", options.scale},
                     {"steps", training.steps},
                     {"batch", session.train.batch},
                     {"starts", starts_json(training.starts)},
                     {"life", documents::result_row(training.life)},
                     {"report", OrderedJson::parse(training.report)}}
             .dump(2) +
         "\n";
}

}  // namespace ganymede::rehearsal

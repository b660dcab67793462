#include "sim/run/simulate.hpp"

#include <fmt/format.h>

#include "cli/progress.hpp"
#include "cli/request_flags.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "plan/chosen_scenario.hpp"
#include "report/clusters.hpp"
#include "report/runs.hpp"
#include "report/services.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/cluster_simulation.hpp"
#include "sim/service/service_result.hpp"

namespace ganymede::cli {
namespace {

/// Simulates a ganymede.cluster/1 file with these changes and prints its result.
void simulate_cluster_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared) {
  const sim::Cluster cluster = sim::read_cluster(JsonNode::load(file, changes));
  auto waiting = show_elapsed(shared, "simulating");
  const std::string json = run_child([&] { return sim::cluster_result_json(cluster, sim::simulate_cluster(cluster)); });
  waiting.reset();
  const documents::ClusterResult result = documents::read_cluster_result(JsonNode::parse(json, "result"));
  if (result.summary.missed_deadlines > 0) shared.exit_code = ExitCode::goal_missed;
  if (shared.format == "json") return emit(shared, json);
  emit(shared, shared.format == "csv" ? report::cluster_csv(result)
                                      : highlighted(shared, report::cluster_text(result, result_width(shared))));
}

struct SimulateOptions {
  std::string scenario;
  std::string fidelity;
  std::string seed;
  int shown_steps = 3;
  int seeds = 0;  // 0: a default that depends on the scenario
  std::vector<std::string> assignments;
  MeasuredOptions measured;
  MemberFlags members;
};

/// The scenario's JSON before any change, or that of the scenario that a plan has chosen.
Json unchanged_scenario(const std::string& file) {
  const JsonNode root = [&] {
    try {
      return JsonNode::load(file);
    } catch (const ConfigError& error) {
      if (!file.ends_with(".csv") && !file.ends_with(".tsv") && !file.ends_with(".swf")) throw;
      throw ConfigError(std::string(error.what()) +
                        "; if it lists jobs, 'ganymede import jobs' writes them as a cluster reads them ('ganymede "
                        "example cluster')");
    }
  }();
  const JsonPointer chosen("/chosen/scenario");
  if (root.is_object() && root.value().contains("service") && sim::is_service(root.value()["service"]))
    return root.value()["service"];  // of a plan
  return root.is_object() && root.value().contains(chosen) ? root.value()[chosen] : root.value();
}

/// Throws ConfigError for a flag about the platform if the scenario has several pools: nothing says which is meant.
void check_one_pool(const SimulateOptions& options, const Json& scenario) {
  if (!scenario.contains(JsonPointer("/platform/pools"))) return;
  for (const auto& [pointer, value] : options.members.overrides()) {
    if (!pointer.starts_with("/platform/")) continue;
    const std::string member = pointer.substr(std::string("/platform").size());
    throw ConfigError(fmt::format("{}: the scenario has \"pools\"; say which one: --set /platform/pools/0{}={}",
                                  options.members.flag(pointer), member, value));
  }
}

/// Replacements by flags come before those of --set, which may go on from them.
std::vector<JsonOverride> changes_of(const SimulateOptions& options, const Json& scenario) {
  std::vector<JsonOverride> overrides;
  const std::string gpus = "/platform/gpus_per_node";
  // Another instance has another number of GPUs: unless the number is given, all of them are used.
  if (options.members.has("/platform/instance") && !options.members.has(gpus) && scenario.contains(JsonPointer(gpus)))
    overrides.push_back({gpus, "null"});
  if (options.members.has("/workload/recipe")) {  // in place of what the file says of the step
    if (!scenario.is_object()) throw ConfigError(options.scenario + ": /: expected an object");
    Json workload = scenario.value("workload", Json::object());
    if (!workload.is_object()) throw ConfigError(options.scenario + ": /workload: expected an object");
    for (const char* other : {"trace", "measured", "batch_per_gpu", "accumulation_steps", "stages"})
      workload.erase(other);
    overrides.push_back({"/workload", workload.dump()});
  }
  for (JsonOverride& override : options.members.overrides()) overrides.push_back(std::move(override));
  for (JsonOverride& override : parse_assignments(options.assignments)) overrides.push_back(std::move(override));
  for (JsonOverride& override : measured_overrides(options.measured)) overrides.push_back(std::move(override));
  if (options.measured.batch > 0)
    overrides.push_back({"/workload/batch_per_gpu", std::to_string(options.measured.batch)});
  if (!options.fidelity.empty()) overrides.push_back({"/fidelity/mode", options.fidelity});
  if (!options.seed.empty()) overrides.push_back({"/seed", options.seed});
  return overrides;
}

sim::Scenario changed_scenario(const SimulateOptions& options) {
  const Json scenario = unchanged_scenario(options.scenario);
  check_one_pool(options, scenario);
  const auto overrides = changes_of(options, scenario);
  return options.members.locate([&] { return plan::load_scenario_or_plan(options.scenario, overrides); });
}

void simulate_service_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared) {
  const JsonNode root = JsonNode::load(file);
  const sim::Service service = sim::read_service(root.value().contains("service")
                                                     ? JsonNode::parse(root.value()["service"].dump(), file, changes)
                                                     : JsonNode::load(file, changes));
  auto waiting = show_elapsed(shared, "simulating");
  const documents::ServiceResult result = sim::serve(service);
  waiting.reset();
  if (!result.goals.met) shared.exit_code = ExitCode::goal_missed;
  emit(shared, shared.format == "json"  ? documents::service_result_text(result)
               : shared.format == "csv" ? report::service_csv(result)
                                        : highlighted(shared, report::service_text(result, result_width(shared))));
}

void run_simulate(const SimulateOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.scenario);
  if (const Json document = unchanged_scenario(options.scenario); sim::is_cluster(document)) {
    const auto changes = changes_of(options, document);
    return options.members.locate([&] { return simulate_cluster_file(options.scenario, changes, shared); });
  } else if (sim::is_service(document)) {
    const auto changes = changes_of(options, document);
    return options.members.locate([&] { return simulate_service_file(options.scenario, changes, shared); });
  }
  sim::Scenario scenario = changed_scenario(options);
  if (shared.format == "json") scenario.shown_steps = options.shown_steps;
  auto waiting = show_elapsed(shared, "simulating");
  // At message fidelity every seed takes as long to simulate as the first one.
  const int seeds = options.seeds > 0 ? options.seeds : sim::default_seeds(scenario);
  const std::string json = run_child([&] { return documents::result_text(sim::simulate_seeds(scenario, seeds)); });
  waiting.reset();
  const auto run = Json::parse(json);
  emit(shared, shared.format == "json"  ? json
               : shared.format == "csv" ? report::run_csv(run)
                                        : highlighted(shared, report::run_text(run, result_width(shared))));
  if (shared.format == "table") remark_price_age(shared, scenario);
  if (!run["goals"]["met"].get<bool>()) shared.exit_code = ExitCode::goal_missed;
}

/// Declares flags for what people change most; --set reaches everything else.
void add_changes(const MemberFlags::Declaring& members) {
  members
      .text("--recipe", "/workload/recipe",
            "another training, in place of the scenario's trace and batch: ganymede list recipes")
      .check(suggest("@recipes @files"));
  members.text("--catalog", "/platform/catalog", "another provider, or a platform file")
      .check(suggest("@providers @files"));
  members
      .text("--instance", "/platform/instance",
            "another instance type, with all of its GPUs unless --gpus-per-node is given")
      .check(suggest("@instances"));
  members.number("--nodes", "/platform/nodes", "another number of nodes");
  members.number("--gpus-per-node", "/platform/gpus_per_node", "GPUs of a node that train");
  members.text("--region", "/platform/region", "another region").check(suggest("@regions"));
  members.text("--market", "/platform/market", "another market").check(suggest("@markets"));
  members.text("--scheme", "/synchronization/scheme", "another all-reduce scheme").check(suggest("@schemes"));
}

void declare_simulate(Parser command, Shared& shared) {
  auto options = std::make_shared<SimulateOptions>();
  command
      .add_option("scenario", options->scenario,
                  "a ganymede.scenario/1, ganymede.cluster/1 or ganymede.service/1 file, or a plan")
      .required();
  add_changes(options->members.of(command));
  command.add_option("--fidelity", options->fidelity,
                     "sampled: simulate enough steps to know the mean; message: every step",
                     one_of({"sampled", "message"}));
  command.add_option("--seed", options->seed, "use this seed instead of the scenario's", not_empty);
  command.add_option("--seeds", options->seeds,
                     "number of seeds, counted up from the scenario's; default: 20 if nodes are lost at random, else 1",
                     integer_between(1, 100'000));
  command
      .add_option("--show-steps", options->shown_steps,
                  "with --format json: keep what each worker does in so many steps, for report and export perfetto",
                  integer_between(0, 1000))
      .capture_default_str();
  add_measured(command, options->measured);
  add_measured_batch(command, options->measured);
  add_set(command, options->assignments);
  add_jobs(command, shared);
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([options, &shared] { run_simulate(*options, shared); });
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .summary = "one training run, or many jobs on one cluster: how long, how busy, how much",
          .examples =
              "  ganymede example scenario > scenario.json && ganymede simulate scenario.json\n"
              "  ganymede simulate scenario.json --nodes 2 --scheme reduce-to-one\n"
              "  ganymede simulate scenario.json --catalog gcp --instance a2-highgpu-2g --region us-central1\n"
              "  ganymede simulate scenario.json --market spot --set /policy/name=spot-first\n"
              "  ganymede simulate scenario.json --format json -o result.json\n"
              "  ganymede example cluster > cluster.json && ganymede simulate cluster.json\n",
          .about =
              "Simulates one training run and prints how long it takes, how busy the hardware is, what it costs,\n"
              "what happened when, and where each GPU-second went. If nodes are lost at random, the distribution\n"
              "over 20 seeds comes first, starting with the scenario's seed.\n"
              "Of a cluster it prints what each job waited and ran, and the bill by owner; of the flags above --set,\n"
              "--seed, --format and -o apply.\n"
              "Exit code 4: the run with the scenario's own seed misses its deadline or budget, or a job its deadline.",
          .declare = declare_simulate};
}

}  // namespace ganymede::cli

// ganymede rehearse: the steps or the life of a scenario in real time, with what was predicted beside what was
// measured.

#include <filesystem>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "plan/chosen_scenario.hpp"
#include "rehearsal/life.hpp"
#include "rehearsal/step_rehearsal.hpp"
#include "report/rehearsals.hpp"
#include "studies/rehearsed_study.hpp"

namespace ganymede::cli {
namespace {
struct RehearseOptions {
  std::string scenario, length = "10s", compute = "replay";
  rehearsal::HostsChoice hosts;
  bool life = false;
  std::vector<std::string> assignments;
  std::vector<double> played;  ///< for processes that `--network mpirun` has started
};

/// The words that start this command again, as one of the processes of `--network mpirun`.
std::vector<std::string> again(const RehearseOptions& options) {
  std::vector<std::string> words = {"rehearse",      options.scenario, "--for", options.length, "--compute",
                                    options.compute, "--format",       "json",  "--quiet"};
  for (const std::string& assignment : options.assignments) words.insert(words.end(), {"--set", assignment});
  return words;
}

void run_rehearse(const RehearseOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.scenario);
  std::vector<std::string> assignments = options.assignments;
  if (options.life) {
    if (options.hosts.hosts == 0)
      throw ConfigError("--life: expected --hosts N beside it: nodes come and go on this machine");
    if (options.compute != "replay")
      throw ConfigError("--compute: found real, expected replay with --life, whose workers sleep through their phases");
    // A rehearsal replays a recorded step on every rank and slows down none of its kernels.
    for (const char* unplayed : {"/synchronization/jitter=0", "/synchronization/interference=0"})
      assignments.emplace_back(unplayed);
  }
  const sim::Scenario scenario = plan::load_scenario_or_plan(options.scenario, parse_assignments(assignments));
  const rehearsal::Remark note = [&shared](const std::string& text) { remark(shared, text); };
  const Seconds length =
      quantity_of("--for", options.length, Seconds{1e-12}, Seconds{3600}, "more than 0s, at most 1h");
  const OrderedJson result = options.life
                                 ? rehearsal::rehearse_life(scenario, {.length = length, .hosts = options.hosts}, note)
                                 : rehearsal::rehearse_scenario(scenario,
                                                                {.length = length,
                                                                 .computes = options.compute == "real",
                                                                 .hosts = options.hosts,
                                                                 .is_study = !shared.output.empty(),
                                                                 .again = again(options),
                                                                 .played = options.played},
                                                                note);
  if (result.is_null()) return;
  Shared to_stdout = shared;
  to_stdout.output.clear();
  const std::size_t width = result_width(shared);
  emit(to_stdout, shared.format == "json" ? result.dump(2) + "\n"
                  : options.life          ? report::rehearsed_life_text(result, width)
                                          : report::rehearsed_steps_text(result, width));
  if (shared.output.empty()) return;
  const std::string name = std::filesystem::path(shared.output).stem().string();
  const OrderedJson study = options.life ? studies::life_study(scenario, result, name)
                                         : studies::steps_study(scenario, result, options.hosts.hosts > 0, name);
  write_file(shared.output, study.dump(1) + "\n");
}

void declare_rehearse(Parser command, Shared& shared) {
  auto options = std::make_shared<RehearseOptions>();
  command
      .add_option("scenario", options->scenario, "a scenario, or a plan, whose chosen candidate is played",
                  suggest("@files"))
      .required();
  command.add_option("--for", options->length, "how long to play, about, for example 60s").capture_default_str();
  command
      .add_option("--compute", options->compute,
                  "replay: ranks sleep through their phases; real: they compute as long as the trace says, each on a "
                  "processor of its own",
                  one_of({"replay", "real"}))
      .capture_default_str();
  add_hosts(command, options->hosts);
  command.add_flag("--life", options->life,
                   "with --hosts: the whole life, with boots, losses, checkpoints and the policy, in about --for");
  add_set(command, options->assignments);
  command.add_option("--played", options->played).expected(2).hidden();
  add_result(command, shared, {"table", "json"});
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
          .trains = true,
          .declare = declare_rehearse};
}

}  // namespace ganymede::cli

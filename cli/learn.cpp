#include "plan/learn.hpp"

#include "cli/command.hpp"
#include "plan/chosen_scenario.hpp"

namespace ganymede::cli {
namespace {

struct LearnCommand {
  std::string scenario;
  std::vector<std::string> assignments;
  plan::LearnOptions options;
};

void run_learn(const LearnCommand& command, const Shared& shared) {
  check_output(shared);
  keep_input(shared, command.scenario);
  const sim::Scenario scenario = plan::load_scenario_or_plan(command.scenario, parse_assignments(command.assignments));
  const auto bar = progress_bar(shared, static_cast<std::size_t>(command.options.episodes), "episodes");
  emit(shared, plan::learn_q_table(scenario, command.options, bar));
}

void declare_learn(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<LearnCommand>();
  command.add_option("scenario", options->scenario, "a ganymede.scenario/1 file")->required();
  command.add_option("--episodes", options->options.episodes, "number of simulated runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_seed(command, options->options.first_seed, "seed of the first episode; later episodes count up from it");
  command
      .add_option("--usd-per-hour-waited", options->options.usd_per_hour_waited,
                  "what an hour of waiting for the result is worth")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  add_set(command, options->assignments);
  add_output(command, shared);
  command.callback([options, &shared] { run_learn(*options, shared); });
}

}  // namespace

Command learn_command() {
  return {.name = "learn",
          .summary = "train the table of the policy q-learning in simulation",
          .examples =
              "  ganymede learn scenario.json --episodes 500 -o table.json\n"
              "  ganymede simulate scenario.json --set /policy/name=q-learning --set /policy/table=table.json\n",
          .about =
              "Trains the table of the policy q-learning by simulating the scenario many times. The table should\n"
              "be judged on other seeds.",
          .declare = declare_learn};
}

}  // namespace ganymede::cli

#include "plan/learn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/command.hpp"
#include "cli/merged.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "plan/chosen_scenario.hpp"
#include "report/table.hpp"
#include "studies/study_shards.hpp"

namespace ganymede::cli {
namespace {

struct LearnCommand {
  std::string scenario;
  std::string shard;
  std::vector<std::string> assignments;
  plan::LearnOptions options;
};

void check_learners(const plan::LearnOptions& options) {
  if (options.learners > options.episodes)
    throw ConfigError(
        fmt::format("--learners: found {}, expected at most the {} of --episodes", options.learners, options.episodes));
}

void run_learn_shard(const LearnCommand& command, Shared& shared) {
  require_folder(shared);
  check_learners(command.options);
  if (command.options.learners == 1)
    throw ConfigError(
        "--shard needs --learners: each episode of a learner starts from the table that the one before has left, so "
        "that shards need several");
  const studies::Shard shard = read_shard(command.shard, std::getenv);
  studies::ShardOptions how = shard_options(shared, "learners");
  how.use = ChildUse::once;
  report_shard(shared, shard,
               studies::run_learn_shard({command.scenario, parse_assignments(command.assignments), command.options},
                                        GANYMEDE_VERSION, shard, shared.output, how));
}

void run_learn(LearnCommand& command, const Shared& shared) {
  check_output(shared);
  check_learners(command.options);
  command.options.jobs = jobs(shared);
  keep_input(shared, command.scenario);
  const sim::Scenario scenario = plan::load_scenario_or_plan(command.scenario, parse_assignments(command.assignments));
  const auto bar = progress_bar(shared, static_cast<std::size_t>(command.options.episodes), "episodes");
  const plan::LearnedTable learned = plan::learn_q_table(scenario, command.options, bar);
  emit(shared, learned.json);
  if (!shared.quiet) say(judgement_text(learned, command.options));
}

void declare_learn(Parser command, Shared& shared) {
  auto options = std::make_shared<LearnCommand>();
  command.add_option("scenario", options->scenario, "a ganymede.scenario/1 file").required();
  command.add_option("--episodes", options->options.episodes, "number of simulated runs", integer_between(1, 1'000'000))
      .capture_default_str();
  add_seed(command, options->options.first_seed, "seed of the first episode; later episodes count up from it");
  command
      .add_option("--usd-per-hour-waited", options->options.usd_per_hour_waited,
                  "what an hour of waiting for the result is worth", number_between(0.0, 1e9))
      .capture_default_str();
  command
      .add_option("--held-out", options->options.held_out,
                  "runs on other seeds, on which the table is judged beside the other policies",
                  integer_between(1, 100'000))
      .capture_default_str();
  command
      .add_option("--learners", options->options.learners,
                  "tables that are trained apart, each by its share of the episodes, and then averaged",
                  integer_between(1, 10'000))
      .capture_default_str();
  add_shard(command, options->shard);
  add_jobs(command, shared);
  add_set(command, options->assignments);
  add_output(command, shared);
  command.callback([options, &shared] {
    if (options->shard.empty())
      run_learn(*options, shared);
    else
      run_learn_shard(*options, shared);
  });
}

}  // namespace

std::string judgement_text(const plan::LearnedTable& learned, const plan::LearnOptions& options) {
  report::Table table({"policy", ">runs finished", ">mean time", ">mean USD", ">with waiting", ">against q-learning"});
  const plan::JudgedPolicy& own = learned.judged.front();
  for (const plan::JudgedPolicy& one : learned.judged)
    table.add({one.policy, fmt::format("{} of {}", one.finished, options.held_out),
               to_string(Seconds{one.hours * 3600}), fmt::format("{:.2f}", one.usd),
               fmt::format("{:.2f}", one.cost_usd),
               &one == &own ? "" : fmt::format("{:+.1f} %", 100 * (one.cost_usd / own.cost_usd - 1))});
  const auto fixed = std::find_if(learned.judged.begin(), learned.judged.end(),
                                  [](const plan::JudgedPolicy& one) { return one.policy == "fixed"; });
  const plan::JudgedPolicy& rival = learned.judged[1];
  std::string verdict;
  if (own.finished < rival.finished)
    verdict = fmt::format("The table does not finish every run, {} does: train for more --episodes.", rival.policy);
  else if (rival.cost_usd < own.cost_usd)
    verdict = fmt::format("The table costs {:.1f} % more than {}, the best of the others.",
                          100 * (own.cost_usd / rival.cost_usd - 1), rival.policy);
  else
    verdict = fmt::format("The table costs {:.1f} % less than {}, the best of the others.",
                          100 * (1 - own.cost_usd / rival.cost_usd), rival.policy);
  if (fixed != learned.judged.end() && rival.policy != "fixed")
    verdict += fmt::format(" It costs {:.1f} % {} than fixed.", 100 * std::abs(own.cost_usd / fixed->cost_usd - 1),
                           own.cost_usd > fixed->cost_usd ? "more" : "less");
  return fmt::format(
      "On {} seeds from {} on, none of which it was trained on, an hour of waiting counted as {:g} USD:\n\n{}\n{}\n",
      options.held_out, learned.held_out_first, options.usd_per_hour_waited, table.text(remark_width()), verdict);
}

Command learn_command() {
  return {.name = "learn",
          .summary = "train the table of the policy q-learning in simulation",
          .examples =
              "  ganymede learn scenario.json --episodes 500 -o table.json\n"
              "  ganymede simulate scenario.json --set /policy/name=q-learning --set /policy/table=table.json\n",
          .about =
              "Trains the table of the policy q-learning by simulating the scenario many times, then says on\n"
              "other seeds how good it is: what it costs beside the other policies.",
          .declare = declare_learn};
}

}  // namespace ganymede::cli

#include "studies/learn_shards.hpp"

#include <fmt/format.h>

#include <limits>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "plan/chosen_scenario.hpp"
#include "plan/request.hpp"

namespace ganymede::studies {
namespace {

using LearnJson = Json;

LearnJson asked_of(const LearnQuestion& question, const std::filesystem::path& folder) {
  const plan::LearnOptions& how = question.options;
  LearnJson set = LearnJson::array();
  for (const JsonOverride& one : question.overrides) set.push_back({one.pointer, one.value});
  return {{"scenario", plan::path_from(folder, question.scenario.string())},
          {"set", std::move(set)},
          {"episodes", how.episodes},
          {"learners", how.learners},
          {"first_seed", how.first_seed},
          {"usd_per_hour_waited", how.usd_per_hour_waited},
          {"held_out", how.held_out}};
}

LearnQuestion question_of(const JsonNode& node, const std::filesystem::path& folder) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  JsonObject in(node);
  LearnQuestion question;
  question.scenario = folder / in.required("scenario").as_string();
  for (const JsonNode& one : in.required("set").as_array()) {
    const std::vector<JsonNode> pair = one.as_array();
    if (pair.size() != 2) one.expected("a JSON pointer and a value");
    question.overrides.push_back({pair[0].as_string(), pair[1].as_string()});
  }
  plan::LearnOptions& how = question.options;
  how.episodes = static_cast<int>(in.required("episodes").as_integer(1, kMost));
  how.learners = static_cast<int>(in.required("learners").as_integer(1, kMost));
  how.first_seed = in.required("first_seed").as_seed();
  how.usd_per_hour_waited = in.required("usd_per_hour_waited").as_number(0, 1e9);
  how.held_out = static_cast<int>(in.required("held_out").as_integer(1, kMost));
  in.finish();
  return question;
}

ShardedWork sharded_learning(const LearnQuestion& question, const sim::Scenario& scenario, const std::string& program,
                             const std::filesystem::path& folder) {
  ShardedWork work{.command = kLearnShards,
                   .program = program,
                   .name = question.scenario.filename().string(),
                   .parts = {},
                   .seeds = {}};
  work.asked = asked_of(question, folder);
  for (int learner = 0; learner < question.options.learners; ++learner)
    work.parts.push_back({fmt::format("learner {} of {}", learner + 1, question.options.learners),
                          fmt::format("{} {}", scenario.hash_without_seed, learner)});
  return work;
}

}  // namespace

ShardOutcome run_learn_shard(const LearnQuestion& question, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, const ShardOptions& options) {
  const sim::Scenario scenario = plan::load_scenario_or_plan(question.scenario, question.overrides);
  return run_shard(
      sharded_learning(question, scenario, program, folder), shard, folder,
      {.work =
           [&](std::size_t learner) {
             return plan::lesson_json(plan::learn_lesson(scenario, question.options, static_cast<int>(learner)));
           }},
      options);
}

MergedTable merge_table(const ShardFolder& folder, const std::filesystem::path& path, const std::string& program) {
  const std::string file = (path / "shards.json").string();
  const LearnQuestion question = question_of(JsonNode::wrap(folder.work().asked, file, path), path);
  const sim::Scenario scenario = plan::load_scenario_or_plan(question.scenario, question.overrides);
  require_same_work(sharded_learning(question, scenario, program, path), folder.work(), path.string());
  std::vector<plan::Lesson> lessons;
  for (std::size_t learner = 0; learner < folder.work().size(); ++learner)
    lessons.push_back(plan::read_lesson(JsonNode::parse(folder.text(learner), "a lesson")));
  return {question.options, plan::table_of(scenario, question.options, lessons)};
}

}  // namespace ganymede::studies

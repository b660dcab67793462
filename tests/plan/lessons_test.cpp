// Tables that were trained apart, as one.

#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "plan/chosen_scenario.hpp"
#include "plan/learn.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::plan {
namespace {
sim::Scenario scenario() {
  const TemporaryFolder folder;
  return load_scenario_or_plan(folder.add("scenario.json", R"({ "schema": "ganymede.scenario/1",
      "workload": { "trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64, "images": 200000 },
      "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 1, "max_nodes": 2,
                    "market": "spot" },
      "synchronization": { "scheme": "ring" }, "checkpoint": { "every": "10min" },
      "storage": { "checkpoint": "s3" }, "seed": 1 })"));
}

TEST(Lessons, AreAveragedByHowOftenEachValueWasUpdated) {
  const Lesson first{1, {{"a", {-1, -2, 0}}, {"b", {-4, 0, 0}}}, {{"a", {3, 1, 0}}, {"b", {2, 0, 0}}}};
  const Lesson second{1, {{"a", {-5, 0, 0}}, {"c", {0, 0, 0}}}, {{"a", {1, 0, 0}}}};
  const LearnedTable table = table_of(scenario(), {.episodes = 2, .learners = 2, .held_out = 1}, {first, second});
  const Json values = Json::parse(table.json)["values"];
  EXPECT_EQ(values["a"], Json({-2.0, -2.0, 0.0}));  // (3 * -1 + 1 * -5) / 4
  EXPECT_EQ(values["b"], Json({-4.0, 0.0, 0.0}));
  EXPECT_EQ(values["c"], Json({0.0, 0.0, 0.0}));
}

TEST(Lessons, AreReadAsTheyWereWritten) {
  const Lesson lesson{7, {{"a", {-0.1, -1e-17, 0}}}, {{"a", {3, 1, 0}}}};
  const Lesson read = read_lesson(JsonNode::parse(lesson_json(lesson), "lesson"));
  EXPECT_EQ(read.finished, lesson.finished);
  EXPECT_EQ(read.values, lesson.values);
  EXPECT_EQ(read.visits, lesson.visits);
  const std::string few = R"({"finished": 1, "values": {"a": [1, 2]}, "visits": {}})";
  EXPECT_EQ(message_of<ConfigError>([&] { read_lesson(JsonNode::parse(few, "lesson")); }),
            "lesson: /values/a: found an array of 2, expected a number for each action");
}

TEST(Lessons, OfLearnersShareTheEpisodesAmongThem) {
  const sim::Scenario of = scenario();
  const LearnOptions options{.episodes = 5, .learners = 2};
  EXPECT_EQ(learn_lesson(of, options, 0).finished, 3);
  EXPECT_EQ(learn_lesson(of, options, 1).finished, 2);
}

}  // namespace
}  // namespace ganymede::plan

// ganymede learn: the table, and how good it is on seeds that it was not trained on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "learn_scenario.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
class Learn : public testing::Test {
 protected:
  Outcome learn(const std::string& flags) const {
    return run_program("learn " + scenario_ + " --episodes 10 " + flags + " -o " + table_);
  }
  Json judged() const { return Json::parse(content_of(table_))["judged"]; }
  Scratch scratch_;
  std::string table_ = (scratch_ / "table.json").string();
  std::string scenario_ = scratch_.write("scenario.json", kLearnScenario);
};

// A run of too many events is none that never finishes: others of its command must not hide it.
TEST_F(Learn, WorkBeyondItsBoundEndsEveryCommandOfManyRuns) {
  const std::string bound = " --max-work 3";
  for (const Outcome& outcome :
       {learn("--held-out 2" + bound), learn("--held-out 2 --learners 2" + bound),
        run_program("simulate " + scenario_ + " --seeds 3" + bound),
        run_program("plan --model dcgan-64 --images 1M --deadline 60h --seeds 1 --max-work 3")}) {
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("more than 3 events"), HasSubstr("--max-work allows more")));
  }
}

TEST_F(Learn, JudgesItsTableOnTheSeedsThatFollow) {
  const Outcome outcome = learn("--held-out 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("On 2 seeds from 1000010 on, none of which it was trained on"),
                                 HasSubstr("The table costs"), HasSubstr("the best of the others")));
  EXPECT_EQ(judged()["seeds"], Json({1'000'010, 1'000'011}));
  const Json rows = judged()["policies"];
  EXPECT_EQ(rows[0]["policy"], "q-learning");
  double least = 0;
  bool fixed = false;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i]["finished"] == 2) {
      EXPECT_GE(rows[i]["cost_usd"], least);
    }
    least = rows[i]["cost_usd"].get<double>();
    fixed = fixed || rows[i]["policy"] == "fixed";
    // By default an hour of waiting is worth 5 USD.
    EXPECT_NEAR(rows[i]["cost_usd"].get<double>(), rows[i]["usd"].get<double>() + 5 * rows[i]["hours"].get<double>(),
                1e-9);
  }
  EXPECT_TRUE(fixed);
}

// Its figures of a policy are those of a simulation of that seed.
TEST_F(Learn, JudgesAsSimulationsDo) {
  ASSERT_EQ(learn("--held-out 1").code, 0);
  const Json rows = judged()["policies"];
  for (const Json& row : rows) {
    const std::string name = row["policy"];
    if (name != "fixed" && name != "q-learning") continue;
    const std::string policy =
        name == "fixed" ? R"({"name":"fixed"})" : R"({"name":"q-learning","table":")" + table_ + "\"}";
    const Outcome run =
        run_program("simulate " + scenario_ + " --format json --seed 1000010 --seeds 1 --set '/policy=" + policy + "'");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_NEAR(row["hours"].get<double>(), Json::parse(run.out)["time"]["total_s"].get<double>() / 3600, 1e-6) << name;
  }
}

TEST_F(Learn, KeepsQuietIfAskedTo) {
  const Outcome outcome = learn("--held-out 1 --quiet");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(learn("--held-out 0").code, 2);
}

}  // namespace
}  // namespace ganymede::cli

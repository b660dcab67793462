// Each policy against `fixed`: where it wins beyond the noise, where it loses, and that it does not win blind, which is
// without the observations that it would steer by.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/json_value.hpp"
#include "policies/policy.hpp"
#include "studies/run_study.hpp"
#include "studies/study.hpp"
#include "support/when.hpp"

namespace ganymede::studies {
namespace {
constexpr int kSeeds = 300;
/// Seeds on which no table was trained; those of `learn` start at a million.
constexpr int kFirstSeed = 5000;

struct Contest {
  const char* policy;
  const char* wins_at;  ///< study
  const char* wins_by;  ///< measure
  const char* loses_at;
  const char* loses_by;
};

constexpr Contest kContests[] = {
    {"resource-aware", "growing-network", "usd", "spot-deadline", "usd"},
    {"predictive", "growing-network", "usd", "spot-deadline", "usd"},
    {"q-learning", "growing-network", "usd", "spot-deadline", "usd"},
    {"kubernetes-autoscaler", "growing-network", "usd", "growing-network", "time_s"},
    {"spot-first", "spot-deadline", "time_s", "spot-deadline", "usd"},
    {"uniform-progress", "spot-deadline", "time_s", "spot-deadline", "usd"},
    {"deadline", "spot-deadline", "time_s", "spot-deadline", "usd"},
    {"budget", "spot-deadline", "time_s", "spot-deadline", "usd"},
    {"cheapest-region", "regions", "usd", "regions", "time_s"},
    {"carbon-aware", "regions", "kg_co2e", "spot-deadline", "usd"},
};

/// Compares the policy with `fixed` by the mean of one measure: a policy that watches a deadline improves the worst
/// seeds and may leave the median unchanged.
Json compare(const Contest& contest, const char* study, const char* measure, bool blind) {
  Json policy = {{"name", contest.policy}, {"blind", blind}};
  if (std::string_view(contest.policy) == "q-learning") policy["table"] = "policies/q-table.json";
  const auto file = std::filesystem::path(GANYMEDE_SOURCE_DIR) / "studies" / (std::string(study) + ".json");
  // A path in an override starts at the working directory.
  if (policy.contains("table")) policy["table"] = (file.parent_path() / policy["table"].get<std::string>()).string();
  const Json policies = {"fixed", policy};
  const Json seeds = {{"first", kFirstSeed}, {"count", kSeeds}};
  const Study read = load_study(file, {{"/policies", policies.dump()}, {"/seeds", seeds.dump()}});
  const Json sweep = Json::parse(run_study(read, 2).json);
  EXPECT_TRUE(sweep["failed"].empty()) << sweep["failed"].dump();
  for (const Json& row : sweep["rankings"][0][measure])
    if (row["policy"] != "fixed") return row["difference"];
  return nullptr;
}

class Contests : public testing::TestWithParam<Contest> {};

TEST_P(Contests, ThePolicyWinsBeyondTheNoise) {
  NOT_SANITIZED(
      "tests/chaos draws runs under these policies there, and Runs.ALearnedTableIsTheSameAgainAndIsUsed learns one");
  const Contest& contest = GetParam();
  const Json difference = compare(contest, contest.wins_at, contest.wins_by, false);
  EXPECT_EQ(difference["seeds"], kSeeds);
  EXPECT_LT(difference["mean_interval"][1].get<double>(), 0) << difference.dump();
}

TEST_P(Contests, AndLosesElsewhere) {
  NOT_SANITIZED("as the contests that policies win");
  const Contest& contest = GetParam();
  const Json difference = compare(contest, contest.loses_at, contest.loses_by, false);
  EXPECT_GT(difference["mean_interval"][0].get<double>(), 0) << difference.dump();
}

TEST_P(Contests, AndDoesNotWinBlind) {
  NOT_SANITIZED("as the contests that policies win");
  const Contest& contest = GetParam();
  const Json difference = compare(contest, contest.wins_at, contest.wins_by, true);
  EXPECT_GE(difference["mean_interval"][1].get<double>(), 0) << difference.dump();
}

INSTANTIATE_TEST_SUITE_P(All, Contests, testing::ValuesIn(kContests), [](const auto& test) {
  std::string name = test.param.policy;
  std::erase(name, '-');
  return name;
});

// The learned policy, on seeds on which it was not trained, against the policy that fits a model during the run.
// docs/policies.md quotes the figures.
TEST(ContestsOf, TheLearnedPolicyIsJudgedAgainstThePredictiveOne) {
  const auto file = std::filesystem::path(GANYMEDE_SOURCE_DIR) / "studies/growing-network.json";
  const Json policies = {"predictive",
                         {{"name", "q-learning"}, {"table", (file.parent_path() / "policies/q-table.json").string()}}};
  const Json seeds = {{"first", kFirstSeed}, {"count", kSeeds}};
  const Study study = load_study(file, {{"/policies", policies.dump()}, {"/seeds", seeds.dump()}});
  const Json sweep = Json::parse(run_study(study, 2).json);
  const Json& last = sweep["rankings"][0]["usd"][1];
  EXPECT_EQ(last["policy"], "q-learning");
  EXPECT_EQ(last["against"], "predictive");
  EXPECT_NEAR(last["difference"]["mean"].get<double>(), 1.14, 0.05) << last.dump();
}

TEST(ContestsOf, EveryPolicy) {
  for (const policies::Policy& policy : policies::policies()) {
    if (policy.name == "fixed" || !policy.decide) continue;
    EXPECT_TRUE(std::any_of(std::begin(kContests), std::end(kContests), [&](const Contest& contest) {
      return contest.policy == policy.name;
    })) << policy.name;
  }
}

}  // namespace
}  // namespace ganymede::studies

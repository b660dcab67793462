// Flags for what people change in a scenario, and the lists and prices by which they choose it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
class ChangedScenario : public testing::Test {
 protected:
  Outcome simulate(const std::string& flags) const { return run_program("simulate " + scenario_ + " " + flags); }
  void expect_same(const std::string& flags, const std::string& settings) const {
    const Outcome by_flags = simulate(flags), by_settings = simulate(settings);
    EXPECT_EQ(by_flags.code, by_settings.code) << flags << "\n" << by_flags.err;
    EXPECT_EQ(by_flags.out, by_settings.out) << flags;
    EXPECT_NE(by_flags.out, simulate("").out) << flags;
  }
  void expect_refused(const std::string& flags, const std::string& message) const {
    const Outcome outcome = simulate(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << flags;
  }
  Scratch scratch_;
  std::string scenario_ = scratch_.write("scenario.json", run_program("example scenario").out);
};

TEST_F(ChangedScenario, ByFlagsIsTheSameAsBySettings) {
  expect_same("--nodes 2", "--set /platform/nodes=2");
  expect_same("--scheme reduce-to-one", "--set /synchronization/scheme=reduce-to-one");
  expect_same("--market spot --seeds 3", "--set /platform/market=spot --seeds 3");
  expect_same("--region us-west-2", "--set /platform/region=us-west-2");
  expect_same("--gpus-per-node 2", "--set /platform/gpus_per_node=2");
  expect_same("--catalog gcp --region us-central1 --instance n1-standard-8+1xV100",
              "--set /platform/catalog=gcp --set /platform/region=us-central1 "
              "--set /platform/instance=n1-standard-8+1xV100 --set /platform/gpus_per_node=1");
}

// The example uses four GPUs of an instance: another instance brings its own number.
TEST_F(ChangedScenario, AnotherInstanceTrainsOnAllOfItsGpus) {
  const auto gpus = [&](const std::string& flags) {
    const Outcome outcome = simulate("--format json " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["run"]["gpus"].get<int>();
  };
  EXPECT_EQ(gpus("--instance p3.2xlarge"), 1);
  EXPECT_EQ(gpus("--instance p3.16xlarge"), 8);
  EXPECT_EQ(gpus("--instance p3.16xlarge --gpus-per-node 2"), 2);
}

TEST_F(ChangedScenario, ErrorsNameTheFlag) {
  expect_refused("--instance p3.3xlarge", "ganymede: --instance: the catalog aws has no instance \"p3.3xlarge\"");
  expect_refused("--instance p3.3xlarge", "did you mean \"p3.2xlarge\"?");
  expect_refused("--region us-east-9", "ganymede: --region: ");
  expect_refused("--market sport", "ganymede: --market: found \"sport\"");
  expect_refused("--market sport", "did you mean \"spot\"?");
  expect_refused("--scheme rong", "ganymede: --scheme: found \"rong\"");
  expect_refused("--catalog asw", "ganymede: --catalog: there is no catalog \"asw\"; did you mean \"aws\"?");
  expect_refused("--nodes 0", "--nodes: found 0, expected a positive integer");
  expect_refused("--nodes 70000", "ganymede: --nodes: found 70000");
  // An error about something else still names the file.
  expect_refused("--nodes 2 --set /seed=-1", "scenario.json: /seed: found -1");
}

TEST_F(ChangedScenario, OfSeveralPoolsSaysWhichOneIsToBeNamed) {
  const std::string pool = R"({ "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "name": "NAME" })";
  Json content = Json::parse(run_program("example scenario").out, /*comments=*/true);
  Json first = Json::parse(pool), second = first;
  first["name"] = "a", second["name"] = "b", second["market"] = "spot";
  content["platform"] = {{"pools", {first, second}}};
  const std::string file = scratch_.write("pools.json", content.dump());
  const Outcome outcome = run_program("simulate " + file + " --nodes 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("--nodes: the scenario has \"pools\"; say which one: --set /platform/pools/0/nodes=2"));
}

std::vector<std::string> listed(const std::string& topic) {
  std::vector<std::string> names;
  for (const Json& row : Json::parse(run_program("list " + topic + " --format json").out)) names.push_back(row["name"]);
  return names;
}

TEST(Lists, NameWhatCanBeRented) {
  const auto instances = listed("instances");
  EXPECT_THAT(instances, AllOf(Contains("p3.8xlarge"), Contains("a2-highgpu-1g")));
  EXPECT_THAT(run_program("list instances").out, HasSubstr("aws: 4 x V100, 32 vCPUs"));
  EXPECT_THAT(listed("regions"), AllOf(Contains("us-east-1"), Contains("us-central1")));
  EXPECT_THAT(run_program("list regions").out, HasSubstr("g/kWh"));
  EXPECT_THAT(listed("gpus"), AllOf(Contains("V100"), Contains("A100-40GB"), Contains("RTX4090")));
  // All that is listed can be asked for.
  for (const char* name : {"p3.8xlarge", "a2-highgpu-1g"})
    EXPECT_EQ(run_program(std::string("catalog --instance ") + name).code, 0) << name;
}

std::vector<double> usd_per_gpu_hour(const std::string& flags) {
  std::vector<double> prices;
  for (const Json& row : Json::parse(run_program("catalog --format json " + flags).out))
    if (row["retired"].is_null() && !row["usd_per_gpu_hour"].is_null())
      prices.push_back(row["usd_per_gpu_hour"].get<double>());
  return prices;
}

TEST(CatalogSort, PutsTheCheapestGpuHourFirst) {
  const auto unsorted = usd_per_gpu_hour("--gpu A100 --market on-demand");
  const auto prices = usd_per_gpu_hour("--gpu A100 --market on-demand --sort usd-per-gpu-hour");
  ASSERT_GT(prices.size(), 10U);
  EXPECT_FALSE(std::is_sorted(unsorted.begin(), unsorted.end()));
  EXPECT_TRUE(std::is_sorted(prices.begin(), prices.end()));
  EXPECT_EQ(prices.size(), unsorted.size());
  const Json row = Json::parse(run_program("catalog --instance p3.8xlarge --region us-east-1 --market on-demand "
                                           "--format json")
                                   .out)[0];
  EXPECT_DOUBLE_EQ(row["usd_per_gpu_hour"].get<double>(), 4 * 3.06 / 4);
}

TEST(CatalogSort, ComparesGpusAndNotProcessors) {
  const auto kinds = [](const std::string& flags) {
    std::string names;
    for (const Json& row : Json::parse(run_program("catalog --provider private --format json " + flags).out))
      names += row["gpu"].get<std::string>() + " ";
    return names;
  };
  EXPECT_THAT(kinds(""), HasSubstr("cpu-8-vm"));
  EXPECT_THAT(kinds("--sort usd-per-gpu-hour"), testing::Not(HasSubstr("cpu-8-vm")));
  EXPECT_THAT(kinds("--sort usd-per-gpu-hour --gpu cpu"), HasSubstr("cpu-8-vm"));
  EXPECT_THAT(kinds("--sort usd-per-hour"), HasSubstr("cpu-8-vm"));
  EXPECT_EQ(run_program("catalog --sort cheapest").code, 2);
  EXPECT_THAT(run_program("catalog --gpu T4 --sort usd-per-gpu-hour").out, HasSubstr("USD/GPU-h"));
}

}  // namespace
}  // namespace ganymede::cli

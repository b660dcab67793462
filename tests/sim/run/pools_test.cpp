// Several pools in one run, modes of synchronisation, and what the scenario says of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class Pools : public testing::Test {
 protected:
  static Json pool(const char* instance, int nodes, const char* name) {
    return {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", instance}, {"nodes", nodes}, {"name", name}};
  }
  Json run(const Json& content) const { return Json::parse(result_json(simulate(files_.load(content)))); }
  ScenarioFiles files_;
};

TEST_F(Pools, OfOneKindTrainAsOne) {
  Json content = ScenarioFiles::with("/platform/nodes", 4);
  const Json one = run(content);
  content["platform"] = {{"pools", {pool("one", 1, "a"), pool("one", 3, "b")}}};
  const Json two = run(content);
  EXPECT_NEAR(number(two, "/time/total_s"), number(one, "/time/total_s"), 1e-6);
  ASSERT_EQ(two["pools"].size(), 2U);
  EXPECT_EQ(two["pools"][0]["pool"], "a");
  EXPECT_NEAR(two["pools"][1]["node_hours"].get<double>() / two["pools"][0]["node_hours"].get<double>(), 3, 1e-9);
  EXPECT_EQ(two["cost"]["items"].size(), 2U);
}

TEST_F(Pools, OfTwoGpuTypesWaitForTheSlowerUnlessBatchesFollowSpeed) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"pools", {pool("one", 1, "x"), pool("other", 1, "y")}}};
  const Json equal = run(content);
  EXPECT_EQ(equal["run"]["gpu"], "GPU-X + GPU-Y");
  EXPECT_GT(equal["pools"][1]["gpu_seconds"]["straggler"].get<double>(), 1);
  content["synchronization"]["batches"] = "by-speed";
  const Json by_speed = run(content);
  EXPECT_LT(by_speed["pools"][1]["gpu_seconds"]["straggler"].get<double>(),
            0.3 * equal["pools"][1]["gpu_seconds"]["straggler"].get<double>());
}

TEST_F(Pools, InTwoPlacesNeedALinkAndPayForIt) {
  Json content = ScenarioFiles::basic();
  Json far = pool("one", 1, "far");
  far["region"] = "room-2";
  far["market"] = "spot";
  far["spot"] = "uninterrupted";
  content["platform"] = {{"pools", {pool("one", 1, "near"), far}}};
  EXPECT_THAT(message_of<ConfigError>([&] { run(content); }),
              HasSubstr("/platform: no link joins \"near\" and \"far\""));
  content["platform"]["links"] = {
      {{"between", {"near", "far"}}, {"bandwidth", "1Gbit/s"}, {"latency", "30ms"}, {"usd_per_gb", 0.02}}};
  const Json slow = run(content);
  // 16 MB in three buckets on a ring of two: each 2 (S/2/B + L), much of it exposed.
  const double exchange = 16e6 / 1.25e8 + 6 * 30e-3;
  EXPECT_NEAR(number(slow, "/time/step_mean_s"), 10e-3 + exchange, 5e-3);
  EXPECT_THAT(slow["cost"]["items"].dump(), HasSubstr("data transfer"));
  content["synchronization"]["mode"] = "local-sgd";
  content["synchronization"]["local_steps"] = 100;
  const Json federated = run(content);
  EXPECT_NEAR(number(federated, "/time/step_mean_s"), 10e-3 + (16e6 / 1.25e8 + 2 * 30e-3) / 100, 1e-4);
  content["synchronization"]["secure_aggregation"] = {{"bytes_factor", 2}, {"cpu_per_gb", "10s"}};
  EXPECT_NEAR(number(run(content), "/time/step_mean_s"), 10e-3 + (2 * 16e6 / 1.25e8 + 2 * 30e-3 + 0.16) / 100, 1e-4);
}

TEST_F(Pools, StayInTheAllowedRegions) {
  Json content = ScenarioFiles::basic();
  content["platform"]["allowed_regions"] = {"room-2"};
  EXPECT_THAT(message_of<ConfigError>([&] { run(content); }),
              HasSubstr("/platform/region: room-1 is not among the allowed regions \"room-2\""));
  // What a policy may use besides stays there too.
  content["platform"] = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}};
  content["policy"] = {{"name", "cheapest-region"}};
  EXPECT_GT(files_.load(content).pools.size(), 2U);
  content["platform"]["allowed_regions"] = {"us-east-1", "us-west-2"};
  EXPECT_EQ(files_.load(content).pools.size(), 2U);
}

TEST_F(Pools, ModesAreSimulatedAndNamed) {
  for (const char* mode : {"all-reduce", "async-parameter-server", "local-sgd", "gossip"}) {
    Json content = ScenarioFiles::with("/platform/nodes", 4);
    content["synchronization"]["mode"] = mode;
    const Json result = run(content);
    EXPECT_EQ(result["run"]["mode"], mode);
    EXPECT_GE(number(result, "/time/step_mean_s"), 10e-3) << mode;
    EXPECT_EQ(result["life"]["staleness"].is_null(), std::string_view(mode) != "async-parameter-server");
  }
}

TEST_F(Pools, ComponentSplitUsesPairs) {
  Json content = ScenarioFiles::with("/platform/nodes", 2);
  content["synchronization"]["placement"] = "component-split";
  const Json split = run(content);
  EXPECT_EQ(split["run"]["placement"], "component-split");
  EXPECT_GT(number(split, "/time/step_mean_s"), 10e-3);
  EXPECT_LT(number(split, "/utilization/gpu_busy"), 0.5);
  content["platform"]["nodes"] = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { run(content); }),
              HasSubstr("/synchronization/placement: generator and discriminator take turns on pairs"));
}

TEST_F(Pools, SettingsThatContradictTheModeAreRefused) {
  const auto message = [&](const char* key, const Json& value) {
    Json content = ScenarioFiles::basic();
    content["synchronization"][key] = value;
    return message_of<ConfigError>([&] { run(content); });
  };
  EXPECT_THAT(message("local_steps", 4), HasSubstr("local steps need the mode \"local-sgd\""));
  EXPECT_THAT(message("backup_workers", 2), HasSubstr("/synchronization/backup_workers: found 2"));
  EXPECT_THAT(message("secure_aggregation", Json::object()), HasSubstr("needs the mode \"local-sgd\""));
}

}  // namespace
}  // namespace ganymede

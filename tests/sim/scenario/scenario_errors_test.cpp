// Every bad scenario gets one clear message that names the place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/text.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
class ScenarioErrors : public testing::Test {
 protected:
  /// The message after the file's name.
  std::string of(const Json& content) const {
    const std::string message = message_of<ConfigError>([&] { files_.load(content); });
    const std::string file = (files_.folder() / "scenario.json").string() + ": ";
    EXPECT_THAT(message, StartsWith(file));
    return message.starts_with(file) ? message.substr(file.size()) : message;
  }
  std::string with(const char* pointer, const Json& value) const { return of(ScenarioFiles::with(pointer, value)); }
  std::string without(const char* object, const char* key) const {
    Json content = ScenarioFiles::basic();
    content[JsonPointer(object)].erase(key);
    return of(content);
  }
  ScenarioFiles files_;
};

TEST_F(ScenarioErrors, MissingKeys) {
  for (const char* key : {"schema", "workload", "platform", "synchronization", "seed"})
    EXPECT_EQ(without("", key), fmt::format("/: the key \"{}\" is missing", key));
  EXPECT_EQ(without("/synchronization", "scheme"), "/synchronization: the key \"scheme\" is missing");
  EXPECT_EQ(without("/workload", "trace"), "/workload: the key \"trace\" is missing");
  EXPECT_EQ(without("/workload", "batch_per_gpu"), "/workload: the key \"batch_per_gpu\" is missing");
  EXPECT_EQ(without("/platform", "catalog"), "/platform: the key \"catalog\" is missing");
  EXPECT_EQ(without("/platform", "instance"), "/platform: the key \"instance\" is missing");
  EXPECT_EQ(without("/platform", "region"),
            "/platform: the key \"region\" is missing; one has prices in \"room-1\" or \"room-2\"");
}

TEST_F(ScenarioErrors, UnknownKeys) {
  EXPECT_EQ(with("/synchronization/sheme", "ring"), "/synchronization/sheme: unknown key; did you mean \"scheme\"?");
  EXPECT_EQ(with("/platform/node", 2), "/platform/node: unknown key; did you mean \"nodes\"?");
  EXPECT_EQ(with("/workload/batch", 2), "/workload/batch: unknown key; known here: " +
                                            list_of({"trace", "measured", "batch_per_gpu", "accumulation_steps",
                                                     "dataset", "stages", "steps", "epochs", "images", "quality"}));
  EXPECT_THAT(with("/workload/dataset/image", 2), StartsWith("/workload/dataset/image: unknown key"));
}

TEST_F(ScenarioErrors, UnknownNames) {
  EXPECT_THAT(with("/platform/instance", "on"), AllOf(StartsWith("/platform/instance: "), HasSubstr("\"one\"")));
  EXPECT_THAT(with("/platform/region", "room-3"), AllOf(StartsWith("/platform/region: "), HasSubstr("\"room-1\"")));
  EXPECT_THAT(with("/platform/market", "on-demnad"),
              AllOf(StartsWith("/platform/market: found \"on-demnad\""), HasSubstr("did you mean \"on-demand\"?")));
  EXPECT_THAT(with("/platform/market", "spot"), StartsWith("/platform/market: "));  // not sold in room-1
  EXPECT_THAT(with("/platform/catalog", "asw"),
              AllOf(StartsWith("/platform/catalog: "), HasSubstr("did you mean \"aws\"?")));
  EXPECT_THAT(with("/synchronization/scheme", "rign"),
              AllOf(StartsWith("/synchronization/scheme: found \"rign\""), HasSubstr("did you mean \"ring\"?")));
  EXPECT_THAT(with("/policy", {{"name", "q-learning"}, {"table", "none.json"}}),
              AllOf(StartsWith("/policy/table: "), HasSubstr("none.json: cannot be read")));
  EXPECT_THAT(with("/policy/name", "fixde"), AllOf(StartsWith("/policy/name: "), HasSubstr("did you mean \"fixed\"?")));
  EXPECT_THAT(with("/fidelity/mode", "exact"), StartsWith("/fidelity/mode: found \"exact\", expected"));
  EXPECT_THAT(with("/schema", "ganymede.study/1"), HasSubstr("expected \"ganymede.scenario/1\""));
}

TEST_F(ScenarioErrors, Counts) {
  EXPECT_EQ(with("/platform/nodes", 0), "/platform/nodes: found 0, expected an integer from 1 to 65536");
  EXPECT_EQ(with("/platform/nodes", -1), "/platform/nodes: found -1, expected an integer from 1 to 65536");
  EXPECT_THAT(with("/platform/nodes", 9), StartsWith("/platform/nodes: found 9, expected at most 8"));  // available
  EXPECT_THAT(with("/platform/gpus_per_node", 2), StartsWith("/platform/gpus_per_node: found 2, expected at most 1"));
  EXPECT_THAT(with("/platform/gpus_per_node", 0), StartsWith("/platform/gpus_per_node: found 0, expected an integer"));
  EXPECT_THAT(with("/workload/steps", 0), StartsWith("/workload/steps: found 0, expected an integer from 1"));
  EXPECT_THAT(with("/workload/steps", -5), StartsWith("/workload/steps: found -5"));
  EXPECT_THAT(with("/workload/steps", 1000.5), StartsWith("/workload/steps: found 1000.5"));
  EXPECT_THAT(with("/workload/batch_per_gpu", 0), StartsWith("/workload/batch_per_gpu: found 0"));
  EXPECT_THAT(with("/workload/dataset/images", 0), StartsWith("/workload/dataset/images: found 0"));
  EXPECT_THAT(with("/workload/dataset/bytes_per_image", -1), StartsWith("/workload/dataset/bytes_per_image: found -1"));
  EXPECT_THAT(with("/fidelity/precision", 0), StartsWith("/fidelity/precision: found 0"));
  EXPECT_THAT(with("/seed", -1), StartsWith("/seed: found -1"));
  EXPECT_THAT(with("/seed", "1"), StartsWith("/seed: found \"1\""));
  EXPECT_THAT(with("/synchronization/overlap", "yes"), StartsWith("/synchronization/overlap: found \"yes\""));
}

TEST_F(ScenarioErrors, Passes) {
  EXPECT_THAT(with("/workload/accumulation_steps", 3), AllOf(StartsWith("/workload/accumulation_steps: found 3"),
                                                             HasSubstr("divides \"batch_per_gpu\", which is 64")));
  EXPECT_THAT(with("/workload/accumulation_steps", 2),
              AllOf(StartsWith("/workload/batch_per_gpu: found 32"), HasSubstr("(64)")));
  EXPECT_THAT(with("/synchronization", Json{{"scheme", "ring"}, {"reduction", "flat"}, {"overlap", true}}),
              StartsWith("/synchronization/overlap: a flat reduction begins"));
  EXPECT_THAT(with("/synchronization", Json{{"scheme", "ring"}, {"mode", "gossip"}, {"reduction", "flat"}}),
              StartsWith("/synchronization/reduction: a flat reduction needs"));
}

TEST_F(ScenarioErrors, Evaluations) {
  EXPECT_THAT(with("/evaluation", Json{{"every", "1000 steps"}}), StartsWith("/evaluation: "));
  for (const char* bad : {"0 steps", "-5 steps", "steps", "1.5 images", "2e3 images"})
    EXPECT_THAT(with("/evaluation", Json{{"every", bad}, {"fixed", "60s"}}),
                AllOf(StartsWith("/evaluation/every: "), HasSubstr("whole number from 1")))
        << bad;
  EXPECT_THAT(with("/evaluation", Json{{"every", "ten"}, {"fixed", "60s"}}), StartsWith("/evaluation/every: "));
  EXPECT_THAT(with("/evaluation", Json{{"every", "1h"}, {"fixed", "60s"}, {"paralel", "1s"}}),
              AllOf(StartsWith("/evaluation/paralel: unknown key"), HasSubstr("\"parallel\"")));
}

TEST_F(ScenarioErrors, Decoders) {
  EXPECT_THAT(with("/storage", Json{{"decoder", "pilow"}}),
              AllOf(StartsWith("/storage/decoder: "), HasSubstr("\"pillow\"")));
  EXPECT_THAT(with("/storage", Json{{"decoder", "pillow"}}),
              AllOf(StartsWith("/storage/decoder: "), HasSubstr("\"pixels\"")));
}

TEST_F(ScenarioErrors, VariablesAndInterference) {
  EXPECT_EQ(with("/synchronization/variables", Json{"8.2MB"}),
            "/synchronization/variables: the scheme ring has no servers to hold variables");
  EXPECT_THAT(with("/synchronization", Json{{"scheme", "parameter-server"}, {"variables", {"8.2MB", "0B"}}}),
              StartsWith("/synchronization/variables/1: "));
  EXPECT_THAT(with("/synchronization/interference", 1), StartsWith("/synchronization/interference: found 1"));
}

TEST_F(ScenarioErrors, Targets) {
  EXPECT_EQ(without("/workload", "steps"),
            "/workload: expected exactly one of \"steps\", \"epochs\", \"images\" and \"quality\"");
  EXPECT_EQ(with("/workload/epochs", 2),
            "/workload: expected exactly one of \"steps\", \"epochs\", \"images\" and \"quality\"");
  Json content = ScenarioFiles::basic();
  content["workload"].erase("steps");
  content["workload"].erase("dataset");
  content["workload"]["epochs"] = 2;
  EXPECT_THAT(of(content), StartsWith("/workload/epochs: epochs need \"dataset\""));
}

TEST_F(ScenarioErrors, WhatLaterVersionsWillTake) {
  Json quality = ScenarioFiles::basic();
  quality["workload"].erase("steps");
  quality["workload"]["quality"] = {{"inception_score", 3}};
  EXPECT_THAT(of(quality), StartsWith("/workload/quality: "));
  quality["workload"]["quality"] = {{"fid", 30}, {"dateset", "CIFAR10"}};
  EXPECT_THAT(of(quality), StartsWith("/workload/quality/dateset: unknown key"));
  quality["workload"]["quality"] = {{"fid", 30}, {"curve", "no-such-file.json"}};
  EXPECT_THAT(of(quality), AllOf(StartsWith("/workload/quality/curve: "), HasSubstr("--quality-curve FILE")));
  EXPECT_THAT(with("/platform/pools", Json::array()),
              StartsWith("/platform/pools: found an array of 0, expected at least one pool"));
  EXPECT_THAT(with("/storage", {{"dataset", "gp3"}}), StartsWith("/storage/dataset: "));  // this platform has none
  EXPECT_THAT(with("/storage", {{"dateset", "gp3"}}),
              StartsWith("/storage/dateset: unknown key; did you mean \"dataset\""));
  for (const char* every : {"10", "epoch", "-1epoch", "0s", "dally"})
    EXPECT_THAT(with("/checkpoint", {{"every", every}}), StartsWith("/checkpoint/every: ")) << every;
  EXPECT_THAT(with("/synchronization/mode", "gosip"),
              AllOf(StartsWith("/synchronization/mode: found \"gosip\""), HasSubstr("did you mean \"gossip\"?")));
  EXPECT_THAT(with("/synchronization/compression", "bf16"),
              StartsWith("/synchronization/compression: found \"bf16\", expected \"none\""));
}

TEST_F(ScenarioErrors, Traces) {
  EXPECT_THAT(with("/workload/trace", "absent.json"),
              AllOf(StartsWith("/workload/trace: "), HasSubstr("absent.json"), HasSubstr("No such file")));
  EXPECT_THAT(with("/workload/trace", "traces"), AllOf(StartsWith("/workload/trace: "), HasSubstr("is a directory")));
  EXPECT_THAT(with("/workload/batch_per_gpu", 32),
              AllOf(StartsWith("/workload/batch_per_gpu: found 32, expected a batch size"), HasSubstr("(64)")));
  // An error inside the trace names the place in the trace.
  const auto broken = files_.folder().add("broken.json", "{ \"schema\": 1 }");
  EXPECT_THAT(message_of<ConfigError>([&] { files_.load_with("/workload/trace", "broken.json"); }),
              StartsWith(broken.string() + ": /schema: found 1"));
}

TEST_F(ScenarioErrors, PlatformFiles) {
  EXPECT_THAT(message_of<ConfigError>([&] { files_.load_with("/platform/catalog", "absent.json"); }),
              HasSubstr("absent.json"));
  const auto broken = files_.folder().add("broken.json", "{ \"schema\": 1 }");
  EXPECT_THAT(message_of<ConfigError>([&] { files_.load_with("/platform/catalog", "broken.json"); }),
              HasSubstr(broken.string() + ": /schema: found 1"));
}

TEST_F(ScenarioErrors, Overrides) {
  EXPECT_THAT(message_of<ConfigError>([&] {
                files_.load(ScenarioFiles::basic(), {{"/platform/nodes", "none"}});
              }),
              HasSubstr("/platform/nodes: found \"none\", expected an integer"));
}

}  // namespace
}  // namespace ganymede::sim

// Several pools in one run, modes of synchronisation, and the parts of a scenario that describe them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
class Pools : public testing::Test {
 protected:
  static Json pool(const char* instance, int nodes, const char* name) {
    return {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", instance}, {"nodes", nodes}, {"name", name}};
  }
  /// Two nodes in each of two or three places, joined by links of these bandwidths and latencies: a-b, a-c and b-c.
  static Json places(const std::vector<std::pair<const char*, const char*>>& joined_by) {
    Json content = ScenarioFiles::with("/workload/steps", 20);
    Json pools = Json::array(), links = Json::array();
    const std::vector<std::string> names = {"a", "b", "c"};
    const std::size_t count = joined_by.size() == 1 ? 2 : 3;
    for (std::size_t i = 0; i < count; ++i) {
      pools.push_back(pool("one", 2, names[i].c_str()));
      pools.back()["zone"] = names[i];
    }
    std::size_t link = 0;
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b)
        links.push_back({{"between", {names[a], names[b]}},
                         {"bandwidth", joined_by[link].first},
                         {"latency", joined_by[link].second},
                         {"usd_per_gb", 0}}),
            ++link;
    content["platform"] = {{"pools", pools}, {"links", links}};
    return content;
  }
  Json run(const Json& content) const { return Json::parse(documents::result_text(simulate(files_.load(content)))); }
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
  // 16 MB in three buckets on a ring of two: each takes 2 (S/2/B + L), most of it exposed.
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

// Three buckets, each reduced on two nodes in every place and then among the places.
TEST_F(Pools, InSeveralPlacesAreSimulatedMessageByMessage) {
  const auto step = [&](Json content, const char* mode) {
    content["fidelity"]["mode"] = mode;
    return number(simulate_json(files_.load(content)), "/time/step_mean_s");
  };
  using Links = std::vector<std::pair<const char*, const char*>>;
  const std::pair slow("1Gbit/s", "3ms"), far("4Gbit/s", "30ms");
  for (const Links& like : {Links{slow}, Links{slow, slow, slow}, Links{slow, far, far}}) {
    const double sampled = step(places(like), "sampled"), message = step(places(like), "message");
    EXPECT_GT(sampled, 0.1);
    if (like.back() == slow) {
      EXPECT_NEAR(message / sampled, 1, 1e-6) << like.size();
      continue;
    }
    // The formula gives every link the lowest bandwidth and the highest latency of all, which are those of two links.
    EXPECT_DOUBLE_EQ(step(places({{"1Gbit/s", "30ms"}, far, far}), "sampled"), sampled);
    EXPECT_LT(message, 0.99 * sampled);
    // The slowest link of the ring sets the pace of all, so that it is at least that of each.
    for (const auto& link : {slow, far}) EXPECT_GE(message, step(places({link, link, link}), "message") * (1 - 1e-9));
  }
}

TEST_F(Pools, StayInTheAllowedRegions) {
  Json content = ScenarioFiles::basic();
  content["platform"]["allowed_regions"] = {"room-2"};
  EXPECT_THAT(message_of<ConfigError>([&] { run(content); }),
              HasSubstr("/platform/region: room-1 is not among the allowed regions \"room-2\""));
  // The additional pools that a policy may use must be in allowed regions too.
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

// 16 MB of weights at 1.25 GB/s take 12.8 ms and 41 us of latency. Sharded over eight one-GPU nodes, seven eighths of
// the weights leave a node while as many bytes enter for its server; this and the way back follow 10 ms of work.
TEST_F(Pools, AsynchronousServersAreWhereTheSchemePutsThem) {
  const auto train = [&](int nodes, const char* scheme) {
    Json content = ScenarioFiles::with("/platform/nodes", nodes);
    content["synchronization"] = {{"scheme", scheme}, {"mode", "async-parameter-server"}};
    return run(content);
  };
  const double sharded = 10e-3 + 2 * (7.0 / 8 * 12.8e-3 + 41e-6);
  for (const char* scheme : {"parameter-server", "parameter-server:sharded", "parameter-server:8", "ring"})
    EXPECT_NEAR(number(train(8, scheme), "/time/step_mean_s"), sharded, 1e-5) << scheme;
  Json together = ScenarioFiles::with("/platform/nodes", 8);
  together["synchronization"] = {{"scheme", "parameter-server"}, {"overlap", false}};
  EXPECT_NEAR(sharded / number(run(together), "/time/step_mean_s"), 1, 0.02);
  // With the server on one node, all wait for its link: 7 x 12.8 ms for an update of each of the seven others.
  const Json whole = train(8, "parameter-server:whole");
  EXPECT_GT(number(whole, "/time/step_mean_s"), sharded);
  EXPECT_LE(number(whole, "/utilization/network"), 1);
  EXPECT_NEAR(number(train(1, "parameter-server"), "/time/step_mean_s"), 10e-3, 1e-9);
  EXPECT_EQ(train(8, "parameter-server")["cost"]["items"].size(), 1U);  // nothing but the workers' nodes is rented
  EXPECT_THAT(message_of<ConfigError>([&] { train(8, "parameter-server:9"); }),
              AllOf(HasSubstr("/synchronization/scheme"), HasSubstr("1 to 8")));
}

// Servers on machines of their own, which are of the workers' type because the made-up platform has no other: four
// servers get a quarter each from each of four workers, 12.8 ms in all. One server gets all of it from all, 51.2 ms.
TEST_F(Pools, DedicatedServersAreRented) {
  const auto train = [&](int nodes, const char* scheme) {
    Json content = ScenarioFiles::with("/platform/nodes", nodes);
    content["synchronization"] = {{"scheme", scheme}, {"mode", "async-parameter-server"}};
    return run(content);
  };
  const Json four = train(4, "parameter-server:dedicated/4");
  EXPECT_NEAR(number(four, "/time/step_mean_s"), 10e-3 + 2 * (12.8e-3 + 41e-6), 1e-5);
  const Json one = train(4, "parameter-server:dedicated");
  EXPECT_NEAR(number(one, "/time/step_mean_s"), 4 * 12.8e-3, 2e-4);
  EXPECT_NEAR(number(train(1, "parameter-server:dedicated"), "/time/step_mean_s"), 10e-3 + 2 * (12.8e-3 + 41e-6), 1e-5);
  for (const auto& [result, servers] : {std::pair{&four, 4}, {&one, 1}}) {
    const Json& item = (*result)["cost"]["items"][1];
    EXPECT_EQ(item["item"], "parameter servers");
    EXPECT_EQ(item["pool"], "one");
    // 3.60 USD an hour each, from the request to the end, by the second.
    const double hours = servers * std::ceil(number(*result, "/time/total_s")) / 3600;
    EXPECT_NEAR(item["quantity"].get<double>(), hours, 1e-9);
    EXPECT_NEAR(std::stod(item["usd"].get<std::string>()), hours * 3.60, 1e-6);
    EXPECT_THAT((*result)["provenance"]["warnings"].dump(), HasSubstr("of the workers' own type, an assumption"));
  }
  EXPECT_EQ(four["run"]["gpus"], 4);
  EXPECT_THAT(message_of<ConfigError>([&] { train(8, "parameter-server:dedicated"); }),
              HasSubstr("/synchronization/scheme: machines of their own for the weights, 1 of one, are more than"));
  Json together = ScenarioFiles::with("/synchronization/scheme", "parameter-server:dedicated");
  EXPECT_THAT(message_of<ConfigError>([&] { run(together); }), HasSubstr("need the mode async-parameter-server"));
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

// A pair of GPUs runs the phases of one batch one after the other. 6,400 images at 64 a batch are 100 steps of one GPU,
// of a pair, and 50 of two pairs; in each case the GPUs compute 100 x 10 ms between them.
TEST_F(Pools, APairTrainsOneBatchAStep) {
  const auto train = [&](int nodes, const char* placement) {
    Json content = ScenarioFiles::with("/platform/nodes", nodes);
    content["workload"].erase("steps");
    content["workload"]["images"] = 6400;
    content["synchronization"]["placement"] = placement;
    return run(content);
  };
  const Json one = train(1, "data-parallel");
  const Json pair = train(2, "component-split");
  const Json pairs = train(4, "component-split");
  EXPECT_EQ(one["time"]["steps"], 100);
  EXPECT_EQ(pair["time"]["steps"], 100);
  EXPECT_EQ(pairs["time"]["steps"], 50);
  for (const Json& result : {pair, pairs}) {
    EXPECT_EQ(result["time"]["images"], 6400);
    EXPECT_NEAR(number(result, "/gpu_seconds/compute"), 100 * 10e-3, 1e-6);
    EXPECT_GE(number(result, "/gpu_seconds/compute"), number(one, "/gpu_seconds/compute") * (1 - 1e-6));
  }
  EXPECT_GT(number(pair, "/time/step_mean_s"), number(one, "/time/step_mean_s"));  // images cross
  // The number of batches, and so of FLOPs, is the same, spread over twice the GPU-seconds of training.
  const auto flops = [](const Json& result) {
    return number(result, "/utilization/gpu_flops") * number(result, "/gpu_seconds/total");
  };
  EXPECT_NEAR(flops(pair) / flops(one), 1, 1e-6);
}

/// Seconds of a step of pairs on so many nodes of an instance, each with so many of its GPUs, whose steps do not vary.
double split_step(const ScenarioFiles& files, const char* instance, int nodes, int gpus) {
  Json content = ScenarioFiles::with("/platform/nodes", nodes);
  content["platform"]["instance"] = instance;
  content["platform"]["gpus_per_node"] = gpus;
  content["synchronization"]["placement"] = "component-split";
  content["synchronization"]["jitter"] = 0;
  return number(simulate_json(files.load(content)), "/time/step_mean_s");
}

/// A ring of two nodes takes 2 (S/2B + L) with B = 1.25 GB/s and L = 41 us, and adds S/2 at 900/3 GB/s. The
/// discriminator's 4 MB are waited for before its update; the generator's 8.4 and 3.6 MB, which are ready together, are
/// reduced one after the other.
double reductions_of_two_pairs() {
  double seconds = 0;
  for (const double bytes : {4e6, 8.4e6, 3.6e6}) seconds += 2 * (bytes / 2 / 1.25e9 + 41e-6) + bytes / 2 * 3 / 900e9;
  return seconds;
}

// Four nodes are two pairs: each network's gradients are summed over the two nodes that hold it.
TEST_F(Pools, APairsGradientsAreSummedOverThoseThatHoldThem) {
  EXPECT_NEAR(split_step(files_, "one", 4, 1) - split_step(files_, "one", 2, 1), reductions_of_two_pairs(), 1e-9);
}

// Two nodes hold a pair each, whose images cross inside the node: a second pair adds the reductions between the nodes
// and nothing else.
TEST_F(Pools, APairsImagesCrossWhereThePairIs) {
  EXPECT_NEAR(split_step(files_, "four", 2, 2) - split_step(files_, "four", 1, 2), reductions_of_two_pairs(), 1e-9);
}

TEST_F(Pools, APairWhoseImagesHaveNoSizeSaysSo) {
  Json content = ScenarioFiles::with("/platform/nodes", 2);
  content["synchronization"]["placement"] = "component-split";
  const char* warning = "images cross between the GPUs of a pair as one value each";
  EXPECT_THAT(run(content)["provenance"]["warnings"].dump(), Not(HasSubstr(warning)));
  content["workload"]["dataset"].erase("bytes_per_image");
  EXPECT_THAT(run(content)["provenance"]["warnings"].dump(), HasSubstr(warning));
}

// 60,000 images an epoch at 64 a batch: 938 steps of a pair, 469 of two; with a target in steps, a pair trains 64
// images in each step.
TEST_F(Pools, APairsEpochIsAsLongAsOneGpus) {
  Json content = ScenarioFiles::with("/platform/nodes", 2);
  content["synchronization"]["placement"] = "component-split";
  EXPECT_EQ(files_.load(content).images, 1000 * 64);
  EXPECT_EQ(run(content)["time"]["images"], 1000 * 64);
  content["workload"].erase("steps");
  content["workload"]["epochs"] = 1;
  EXPECT_EQ(run(content)["time"]["steps"], 938);
  content["platform"]["nodes"] = 4;
  EXPECT_EQ(run(content)["time"]["steps"], 469);
}

// A step does not wait for two of four workers with batches of 64, so it trains 128 images, and 25,600 images take 200
// steps. The work of the two dropped workers is lost, which is as much as the useful work.
TEST_F(Pools, BackupWorkersImagesDoNotCount) {
  Json content = ScenarioFiles::with("/platform/nodes", 4);
  content["workload"].erase("steps");
  content["workload"]["images"] = 25'600;
  content["synchronization"]["backup_workers"] = 2;
  const Json result = run(content);
  EXPECT_EQ(result["time"]["steps"], 200);
  EXPECT_EQ(result["time"]["images"], 25'600);
  EXPECT_NEAR(number(result, "/gpu_seconds/compute"), 400 * 10e-3, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/lost"), 2 * 200 * number(result, "/time/step_mean_s"), 1e-3);
  EXPECT_EQ(result["launch"]["global_batch"], 128);
  content["workload"].erase("images");
  content["workload"]["steps"] = 1000;
  EXPECT_EQ(run(content)["time"]["images"], 1000 * 128);
  content["synchronization"]["placement"] = "component-split";
  EXPECT_THAT(message_of<ConfigError>([&] { run(content); }),
              HasSubstr("/synchronization/backup_workers: backup workers need the placement \"data-parallel\""));
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
}  // namespace ganymede::sim

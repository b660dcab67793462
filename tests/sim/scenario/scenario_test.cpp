#include "sim/scenario/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;
class Scenarios : public testing::Test {
 protected:
  ScenarioFiles files_;
};

TEST_F(Scenarios, TakeTheStatedDefaults) {
  const Scenario scenario = files_.load(ScenarioFiles::basic());
  EXPECT_EQ(scenario.pools[0].pool.instance, "one");
  EXPECT_EQ(scenario.pools[0].pool.region, "room-1");
  EXPECT_EQ(scenario.pools[0].pool.market, platforms::Market::on_demand);
  EXPECT_EQ(scenario.pools[0].pool.nodes, 2);
  EXPECT_EQ(scenario.pools[0].pool.gpus_per_node, 1);
  EXPECT_EQ(scenario.workers(), 2);
  EXPECT_EQ(scenario.pools[0].gpu().name, "GPU-X");
  EXPECT_EQ(scenario.pools[0].price.per_hour.value, 3'600'000);
  EXPECT_EQ(scenario.synchronization.scheme.name(), "ring");
  EXPECT_TRUE(scenario.synchronization.overlap);
  EXPECT_EQ(scenario.policy.policy->name, "fixed");
  EXPECT_EQ(scenario.fidelity, Fidelity::sampled);
  EXPECT_EQ(scenario.precision, 0.005);
  EXPECT_EQ(scenario.seed, 1U);
  EXPECT_EQ(scenario.dataset.images, 60000);
  EXPECT_EQ(scenario.batch().batch, 64);
  EXPECT_EQ(scenario.hash.size(), 16U);
}

TEST_F(Scenarios, TakeAllThatTheDesignsExampleSays) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"region", "room-1"},   {"instance", "four"}, {"nodes", 3},
                         {"gpus_per_node", 2},    {"market", "on-demand"}};
  content["synchronization"] = {
      {"mode", "all-reduce"}, {"scheme", "reduce-to-one"}, {"overlap", false}, {"compression", "none"}};
  content["policy"] = {{"name", "fixed"}};
  content["fidelity"] = {{"mode", "message"}, {"precision", 0.01}};
  const Scenario scenario = files_.load(content);
  EXPECT_EQ(scenario.workers(), 6);
  EXPECT_EQ(scenario.synchronization.scheme.name(), "reduce-to-one");
  EXPECT_FALSE(scenario.synchronization.overlap);
  EXPECT_EQ(scenario.fidelity, Fidelity::message);
  EXPECT_EQ(scenario.precision, 0.01);
}

TEST_F(Scenarios, UseAllGpusOfOneNodeUnlessToldOtherwise) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "four"}};  // whose only region is room-1
  const Scenario scenario = files_.load(content);
  EXPECT_EQ(scenario.pools[0].pool.nodes, 1);
  EXPECT_EQ(scenario.workers(), 4);
  EXPECT_EQ(scenario.pools[0].pool.region, "room-1");
}

struct TargetCase {
  const char* key;
  std::int64_t value;
  std::int64_t steps, images;
};

// Two workers with batches of 64 train 128 images a step. 60,000 images take 468.75 steps, so 469, the last one padded.
TEST_F(Scenarios, TurnTheTargetIntoStepsAndImages) {
  for (const TargetCase& target : {TargetCase{"steps", 18760, 18760, 18760 * 128}, TargetCase{"epochs", 1, 469, 60000},
                                   TargetCase{"epochs", 20, 20 * 469, 20 * 60000}, TargetCase{"images", 1, 1, 1},
                                   TargetCase{"images", 128, 1, 128}, TargetCase{"images", 129, 2, 129},
                                   TargetCase{"images", 60000, 469, 60000}}) {
    Json content = ScenarioFiles::basic();
    content["workload"].erase("steps");
    content["workload"][target.key] = target.value;
    const Scenario scenario = files_.load(content);
    EXPECT_EQ(scenario.steps, target.steps) << target.key << " " << target.value;
    EXPECT_EQ(scenario.images, target.images) << target.key << " " << target.value;
  }
}

TEST_F(Scenarios, TakeACatalogByName) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.8xlarge"}};
  const Scenario scenario = files_.load(content);
  EXPECT_EQ(scenario.workers(), 4);
  EXPECT_EQ(scenario.pools[0].price.per_hour, platforms::find_price(platforms::catalog("aws").instance("p3.8xlarge"),
                                                                    "us-east-1", platforms::Market::on_demand)
                                                  ->per_hour);
  EXPECT_EQ(scenario.pools[0].gpu().name, "V100");
}

TEST_F(Scenarios, ChooseTheBatchEntry) {
  traces::StepTrace trace = constant_trace(4);
  trace.batches.push_back(constant_trace(4).batches.front());
  trace.batches[1].batch = 128;
  const ScenarioFiles files(trace);
  EXPECT_EQ(files.load_with("/workload/batch_per_gpu", 128).stages, std::vector<std::size_t>{1});
}

TEST_F(Scenarios, AreChangedByOverrides) {
  const Scenario scenario =
      files_.load(ScenarioFiles::basic(), {{"/platform/nodes", "4"}, {"/synchronization/scheme", "hierarchical-copy"}});
  EXPECT_EQ(scenario.workers(), 4);
  EXPECT_EQ(scenario.synchronization.scheme.name(), "hierarchical-copy");
}

TEST_F(Scenarios, HaveTheSameHashWhereverTheirFilesLie) {
  const std::string hash = files_.load(ScenarioFiles::basic()).hash;
  EXPECT_EQ(files_.load(ScenarioFiles::basic()).hash, hash);
  EXPECT_EQ(ScenarioFiles().load(ScenarioFiles::basic()).hash, hash);
  // The same content under another name has the same hash.
  files_.folder().add("elsewhere/u.json", traces::write_step_trace(constant_trace(40)));
  files_.folder().add("elsewhere/p.json", made_up_platform());
  Json content = ScenarioFiles::basic();
  content["workload"]["trace"] = "elsewhere/u.json";
  content["platform"]["catalog"] = (files_.folder() / "elsewhere/p.json").string();
  EXPECT_EQ(files_.load(content).hash, hash);
}

TEST_F(Scenarios, HaveAnotherHashWhenAnyInputChanges) {
  const std::string hash = files_.load(ScenarioFiles::basic()).hash;
  EXPECT_NE(ScenarioFiles(constant_trace(41)).load(ScenarioFiles::basic()).hash, hash);
  EXPECT_NE(files_.load_with("/seed", 2).hash, hash);
  EXPECT_NE(files_.load(ScenarioFiles::basic(), {{"/seed", "2"}}).hash, hash);
  std::string dearer = made_up_platform();
  dearer.replace(dearer.find("3.60USD/h"), 9, "3.61USD/h");
  files_.folder().add("lab.json", dearer);
  EXPECT_NE(files_.load(ScenarioFiles::basic()).hash, hash);
}

// StyleGAN3 reduces all gradients of a network at once, StyleGAN2-ADA in DDP's buckets; a scenario may say otherwise.
TEST_F(Scenarios, ReduceGradientsAsTheRecipeDoesUnlessToldOtherwise) {
  const auto is_flat = [&](const char* recipe, Json synchronization) {
    Json content = ScenarioFiles::basic();
    content["workload"] = {{"recipe", recipe}, {"images", 100000}, {"batch_per_gpu", 1}};
    content["platform"]["instance"] = "four";
    content["synchronization"] = std::move(synchronization);
    return files_.load(content).synchronization.flat_reduction;
  };
  const Json ring = {{"scheme", "ring"}};
  EXPECT_TRUE(is_flat("stylegan3-t?image=128", ring));
  EXPECT_FALSE(is_flat("stylegan2-ada?image=128", ring));
  EXPECT_FALSE(is_flat("stylegan3-t?image=128", {{"scheme", "ring"}, {"reduction", "bucketed"}}));
  EXPECT_FALSE(is_flat("stylegan3-t?image=128", {{"scheme", "ring"}, {"mode", "gossip"}}));
  EXPECT_FALSE(files_.load(ScenarioFiles::basic()).synchronization.flat_reduction);
}

// The GPU needs 116 MB; memory that the trace labels as the host's does not count.
TEST_F(Scenarios, CountTheMemoryOfTheGpuAlone) {
  EXPECT_EQ(gpu_memory(constant_trace(1).batches.front()), Bytes{116e6});
}

TEST_F(Scenarios, ThatDoNotFitTheGpuAreInfeasibleAndSayWhatWouldFit) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "small"}};
  EXPECT_THAT(message_of<Infeasible>([&] { files_.load(content); }),
              testing::AllOf(HasSubstr("batch 64 of made-up-gan needs 110.6 MiB of GPU memory, GPU-S has 64 MiB"),
                             HasSubstr("it would fit GPU-X (16 GiB), GPU-Y (32 GiB)")));
  traces::StepTrace huge = constant_trace(4);
  huge.batches.front().memory_bytes = {{"activations", 1e15}};
  EXPECT_THAT(message_of<Infeasible>([&] { ScenarioFiles(huge).load(ScenarioFiles::basic()); }),
              HasSubstr("nothing in this platform holds it, not even with a batch of one"));
}

}  // namespace
}  // namespace ganymede::sim

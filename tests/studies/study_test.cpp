#include "studies/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "studies/run_study.hpp"
#include "study_files.hpp"
#include "support/errors.hpp"

namespace ganymede::studies {
namespace {

using testing::ElementsAre;
std::vector<std::string> labels(const Study& study) {
  std::vector<std::string> found;
  for (const auto& run : study.runs) found.push_back(run.label());
  return found;
}

std::string place(const StudyRun& run) {
  const policies::Pool& pool = run.base->pools[0].pool;
  return fmt::format("{} x {}, {} each", pool.nodes, pool.instance, pool.gpus_per_node);
}

TEST(Study, GoesThroughCountsAndSchemesAndRunsOneGpuOnce) {
  EXPECT_THAT(labels(StudyFiles().load(StudyFiles::basic())),
              ElementsAre("lab room-1, 1 x X, seed 1", "lab room-1, 2 x X, ring, seed 1",
                          "lab room-1, 2 x X, reduce-to-one, seed 1", "lab room-1, 4 x X, ring, seed 1",
                          "lab room-1, 4 x X, reduce-to-one, seed 1"));
}

TEST(Study, GoesThroughPlatformsAndSeeds) {
  Json content = StudyFiles::basic();
  content["platforms"].push_back({{"catalog", "aws"}, {"region", "us-east-1"}, {"gpu", "V100"}});
  content["gpus"] = {2};
  content["schemes"] = {"ring"};
  content["seeds"] = {7, 8};
  EXPECT_THAT(labels(StudyFiles().load(content)),
              ElementsAre("lab room-1, 2 x X, ring, seed 7", "lab room-1, 2 x X, ring, seed 8",
                          "aws us-east-1, 2 x V100, ring, seed 7", "aws us-east-1, 2 x V100, ring, seed 8"));
}

TEST(Study, RunsAMachineThatIsNamedTwiceOnce) {
  Json content = StudyFiles::basic();
  content["gpus"] = {8};
  content["schemes"] = {"ring"};
  content["platforms"] = {{{"catalog", "aws"}, {"region", "us-east-1"}, {"gpu", "V100"}},
                          {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.16xlarge"}}};
  EXPECT_THAT(labels(StudyFiles().load(content)), ElementsAre("aws us-east-1, 8 x V100, ring, seed 1"));
}

// Without "seeds" a study has those of `simulate`: 20 if anything is drawn at random in one of its runs, for all of
// them.
TEST(Study, HasSeedsIfItStatesNone) {
  Json content = StudyFiles::basic();
  content.erase("seeds");
  const Study calm = StudyFiles().load(content);
  EXPECT_THAT(calm.seeds, ElementsAre(1));
  EXPECT_EQ(calm.runs.size(), 5U);
  content["faults"] = {{"crash", {{"every", "10h"}}}};
  const Study drawn = StudyFiles().load(content);
  EXPECT_EQ(drawn.seeds.size(), 20U);
  EXPECT_EQ(drawn.seeds.front(), 1U);
  EXPECT_EQ(drawn.seeds.back(), 20U);
  EXPECT_EQ(drawn.runs.size(), 100U);
  EXPECT_EQ(drawn.runs[21].label(), "lab room-1, 2 x X, ring, seed 2");
}

// Four nodes of one GPU cost 14.40 USD/h, one node of four GPUs 10.80, so 4 GPUs go on the latter.
TEST(Study, PutsEachCountOnItsCheapestInstances) {
  const Study study = StudyFiles().load(StudyFiles::basic());
  EXPECT_EQ(place(study.runs[0]), "1 x one, 1 each");
  EXPECT_EQ(place(study.runs[1]), "2 x one, 1 each");
  EXPECT_EQ(place(study.runs[3]), "1 x four, 4 each");
}

// Two nodes of four GPUs would cost 21.60 USD/h, but a run cannot use 4 + 3 GPUs; seven nodes of one GPU cost 25.20.
TEST(Study, PutsACountOnInstancesThatHoldItEvenly) {
  const Study study = StudyFiles().load(StudyFiles::with("/gpus", {7}));
  EXPECT_EQ(place(study.runs[0]), "7 x one, 1 each");
}

TEST(Study, PutsOneV100OfAwsOnTheOneGpuInstance) {
  Json content = StudyFiles::with("/gpus", {1, 4});
  content["platforms"] = {{{"catalog", "aws"}, {"region", "us-east-1"}, {"gpu", "V100"}}};
  const Study study = StudyFiles().load(content);
  EXPECT_EQ(place(study.runs[0]), "1 x p3.2xlarge, 1 each");
  EXPECT_EQ(study.runs[0].scenario().workers(), 1);
  EXPECT_EQ(study.runs[1].scenario().workers(), 4);
}

TEST(Study, TakesAnInstanceByName) {
  const Study study = StudyFiles().load(
      StudyFiles::with("/platforms/0", {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", "four"}}));
  EXPECT_EQ(place(study.runs[0]), "1 x four, 1 each");
  EXPECT_EQ(study.runs[0].label(), "lab room-1, 1 x GPU, seed 1");
  EXPECT_EQ(place(study.runs[3]), "1 x four, 4 each");
}

TEST(Study, CarriesWorkloadSeedAndOverlapIntoItsScenarios) {
  Json content = StudyFiles::basic();
  content["overlap"] = false;
  content["seeds"] = {18446744073709551615U};
  const Study study = StudyFiles().load(content);
  const sim::Scenario two = study.runs[1].scenario();
  EXPECT_EQ(two.steps, 2 * 469);  // two epochs of 60,000 images at 128 a step
  EXPECT_EQ(two.images, 2 * 60000);
  EXPECT_EQ(two.seed, UINT64_MAX);
  EXPECT_FALSE(two.synchronization.overlap);
  EXPECT_EQ(two.synchronization.scheme.name(), "ring");
}

// Trace and platform are found relative to the file that names them, wherever the program was started.
TEST(Study, FindsItsFilesFromAnyWorkingDirectory) {
  const StudyFiles files;
  const std::string hash = files.load(StudyFiles::basic()).runs[1].scenario().hash;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(files.folder().path());
  EXPECT_EQ(files.load(StudyFiles::basic()).runs[1].scenario().hash, hash);
  // A path on the command line starts at the working directory.
  EXPECT_EQ(files.load(StudyFiles::basic(), {{"/workload/trace", "traces/t.json"}}).runs[1].scenario().hash, hash);
  std::filesystem::current_path(before);
}

TEST(Study, GivesTheSameBytesWhateverTheNumberOfProcesses) {
  const Study study = StudyFiles().load(StudyFiles::basic());
  const std::string alone = run_study(study, 1).json;
  EXPECT_TRUE(run_study(study, 2).json == alone);
  const Json sweep = Json::parse(alone);
  EXPECT_EQ(sweep["schema"], "ganymede.sweep/1");
  EXPECT_EQ(sweep["study"], "small");
  ASSERT_EQ(sweep["runs"].size(), 5U);
  // 938 steps of two epochs at 128 images take longer than 469 at 256, apart from communication.
  EXPECT_EQ(sweep["runs"][0]["time"]["steps"], 2 * 938);
  EXPECT_EQ(sweep["runs"][3]["time"]["steps"], 2 * 235);
  for (const auto& run : sweep["runs"]) EXPECT_EQ(run["time"]["images"], 120000);
}

TEST(Study, ReportsProgress) {
  std::size_t last = 0;
  run_study(StudyFiles().load(StudyFiles::basic()), 2, [&](std::size_t done) { last = done; });
  EXPECT_EQ(last, 5U);
}

TEST(Study, NamesTheRunThatFails) {
  Study study = StudyFiles().load(StudyFiles::basic());
  sim::Scenario broken = study.runs[1].scenario();
  platforms::Platform bare = *broken.pools[0].platform;
  for (auto& instance : bare.instances) instance.nic.reset();
  broken.pools[0].platform = std::make_shared<const platforms::Platform>(bare);
  broken.step_fingerprint = "bare";
  study.runs[1].base = std::make_shared<const sim::Scenario>(broken);
  EXPECT_THAT(message_of<ConfigError>([&] { run_study(study, 2); }),
              testing::StartsWith("lab room-1, 2 x X, ring, seed 1: "));
}

}  // namespace
}  // namespace ganymede::studies

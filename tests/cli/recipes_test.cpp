// Recipes on the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RecipeCommands, ListWhatThereIs) {
  const Json rows = Json::parse(run_program("list recipes --format json").out);
  EXPECT_THAT(rows.dump(), AllOf(HasSubstr("stylegan2-ada"), HasSubstr("stylegan3-t"), HasSubstr("paper1024")));
}

TEST(RecipeCommands, TheExampleIsPlanned) {
  Scratch scratch;
  const std::string mine = scratch.write("mine.json", run_program("example recipe").out);
  const Outcome plan =
      run_program("plan --recipe " + mine +
                  " --images 1000000 --gpu V100 --catalog aws --market on-demand --seeds 1 --format json");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_FALSE(Json::parse(plan.out)["chosen"].is_null());
}

// A plan of a recipe's file says where that lies from where the plan lies.
TEST(RecipeCommands, ASavedPlanOfAFileIsSimulatedFromAnywhere) {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "plans");
  const std::string mine = scratch.write("mine.json", run_program("example recipe").out);
  const std::string saved = (scratch / "plans" / "saved.json").string();
  const Outcome plan = run_program("plan --recipe '" + mine + "?batch=32' --images 1M --gpu V100 --catalog aws " +
                                   "--market on-demand --seeds 1 --format json -o " + saved);
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Json content = Json::parse(content_of(saved));
  EXPECT_EQ(content["chosen"]["scenario"]["workload"]["trace"], "recipe:../mine.json?batch=32");
  EXPECT_EQ(content["asked"]["workload"]["recipe"], "../mine.json?batch=32");
  const Outcome simulated = run_program("simulate " + saved);
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  // Also where that is a link to a folder elsewhere, whose ".." is another.
  std::filesystem::create_directories(scratch / "real" / "deep");
  std::filesystem::create_directory_symlink("real/deep", scratch / "link");
  const std::string linked = (scratch / "link" / "saved.json").string();
  const Outcome again = run_program("plan --recipe '" + mine + "?batch=32' --images 1M --gpu V100 --catalog aws " +
                                    "--market on-demand --seeds 1 --format json -o " + linked);
  ASSERT_EQ(again.code, 0) << again.err;
  const Outcome from_link = run_program("simulate " + linked);
  EXPECT_EQ(from_link.code, 0) << from_link.err;
}

TEST(RecipeCommands, AStudyNamesAFileFromWhereItLies) {
  Scratch scratch;
  scratch.write("mine.json", run_program("example recipe").out);
  const std::string study = scratch.write("study.json", R"({ "schema": "ganymede.study/1", "name": "mine",
    "workload": { "recipe": "mine.json?batch=32", "images": 100000 },
    "platforms": [{ "catalog": "aws", "region": "us-east-1", "gpu": "V100" }],
    "gpus": [1], "schemes": ["ring"], "seeds": [1] })");
  const Outcome outcome = run_program("sweep " + study);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // A recipe in place of the step trace that the file names.
  const Outcome other = run_program("sweep " + study + " --set /workload/recipe=stylegan2?batch=32");
  EXPECT_EQ(other.code, 0) << other.err;
}

TEST(RecipeCommands, WhatFitsNowhereSaysSoWithTheLargestPassOfEachGpu) {
  const Outcome plan = run_program(
      "plan --recipe 'stylegan-xl?image=1024' --images 1M --gpu T4 --catalog aws --market on-demand --seeds 1");
  EXPECT_EQ(plan.code, 3);
  EXPECT_THAT(plan.err,
              AllOf(HasSubstr("a pass of 4 images needs "), HasSubstr("of which a T4 has 16 GiB, for at most "),
                    HasSubstr("behind the recipe's \"?\" accumulates")));
}

TEST(RecipeCommands, APlanKeepsTheRecipesBatchOfAllGpus) {
  const std::string common = " --images 1000000 --gpu V100 --catalog aws --market on-demand --seeds 1 --format json";
  const Outcome outcome = run_program("plan --recipe stylegan2-ada/paper512" + common);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json chosen = Json::parse(outcome.out)["chosen"];
  EXPECT_EQ(chosen["batch_per_gpu"].get<int>() * chosen["gpus"].get<int>(), 64);
  const Json other = Json::parse(run_program("plan --recipe stylegan2-ada/paper512 --batch 4" + common).out)["chosen"];
  EXPECT_EQ(other["batch_per_gpu"], 4);
}

TEST(RecipeCommands, AnUnknownLayerIsRefusedAtItsPlace) {
  Scratch scratch;
  std::string content = run_program("example recipe").out;
  const std::size_t at = content.find("\"activation\"");
  ASSERT_NE(at, std::string::npos);
  const std::string mine = scratch.write("mine.json", content.replace(at, 12, "\"actvation\""));
  for (const std::string& command : {"plan --images 1M --recipe " + mine, "fits " + mine}) {
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("mine.json: /layers/networks/"), HasSubstr("did you mean \"activation\"?")));
  }
}

TEST(RecipeCommands, OneMemoryHasOneFigure) {
  Scratch scratch;
  const std::string scenario = scratch.write("scenario.json", R"({ "schema": "ganymede.scenario/1",
    "workload": { "recipe": "stylegan2-ada?image=512", "images": 1000 },
    "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge" },
    "synchronization": { "scheme": "ring" }, "seed": 1 })");
  const Json run = Json::parse(run_program("simulate " + scenario + " --format json").out);
  const Json fits = Json::parse(run_program("fits 'stylegan2-ada?image=512' --batch 8 --gpu V100 --format json").out);
  EXPECT_NEAR(run["utilization"]["memory_bytes"].get<double>(), fits["total"]["bytes"].get<double>(), 1);
  // The figure is of the peaks of fp32 and of tensor cores, as the layers are.
  EXPECT_LT(run["utilization"]["gpu_flops"].get<double>(), 1);
}

TEST(RecipeCommands, AnotherBatchThanTheRecipesIsSaid) {
  const std::string common =
      "plan --recipe stylegan2-ada/paper512 --images 1000000 --gpu V100 --catalog aws --market on-demand --seeds 1";
  const std::string own = run_program(common).out;
  EXPECT_THAT(own, AllOf(HasSubstr("in batches of 64 on all GPUs"), Not(HasSubstr("What a batch size does"))));
  EXPECT_THAT(run_program(common + " --batch 4 --max-gpus 1 --verbose").out,
              HasSubstr("the recipe trains with 64 images a step on all GPUs, and this with 4"));
}

TEST(RecipeCommands, SimulateTakesBatchTargetAndMeasuredStep) {
  Scratch scratch;
  const std::string scenario = scratch.write("scenario.json", R"({ "schema": "ganymede.scenario/1",
    "workload": { "recipe": "stylegan2-ada?image=512" },
    "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge" },
    "synchronization": { "scheme": "ring" }, "seed": 1 })");
  const Outcome outcome = run_program("simulate " + scenario + " --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json run = Json::parse(outcome.out);
  EXPECT_EQ(run["time"]["steps"], 25'000'000 / 8);
  EXPECT_NEAR(run["time"]["step_mean_s"].get<double>(), 73.7 * 8 / 1000, 0.01);
  EXPECT_EQ(run["provenance"]["inputs"], "measured");
  const Outcome wrong = run_program("simulate " + scenario + " --set /workload/recipe=stylegan2-ada/paper512?batch=20");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected a multiple of 8"));
  EXPECT_THAT(run_program("simulate " + scenario + " --set '/workload/recipe=\"\"'").err,
              testing::StartsWith("ganymede: " + scenario + ": /workload/recipe: found \"\""));
}

TEST(RecipeCommands, RefuseWhatIsNotThere) {
  for (const auto& [arguments, says] :
       {std::pair{"plan --recipe stylegan2-ads", "did you mean \"stylegan2-ada\"?"},
        std::pair{"plan --recipe stylegan3-t?image=300", "image of 300"},
        std::pair{"plan --recipe stylegan3-t?image=25", "an image of 25"},
        std::pair{"plan --images 1M --model stylegan2-ada/paper512", "is a recipe, expected \"recipe\" (--recipe)"},
        std::pair{"kernels --gpu V100 --recipe stylegan3-t/papr", "did you mean \"paper\"?"},
        std::pair{"plan --recipe 'stylegan2-ada/paper512?batch=20'", "1 x 8 of a pass on each GPU, such as 24"},
        std::pair{"kernels --gpu V100 --recipe 'stylegan2-ada?image=128&fp16_resolutions=8'", "expected at most 6"},
        std::pair{"fits 'spade?image=300'", "expected one of 256, 512"},
        std::pair{"plan --recipe b/mine", "or a file (.json)"},
        std::pair{"plan --recipe none.json?x", "--recipe: recipe none.json?x: found \"x\""},
        std::pair{"plan --trace recipe:none.json?x --images 1M", "--trace: recipe none.json?x: found \"x\""},
        std::pair{"plan --recipe stylegan2 --set '/workload/recipe=\"\"'", "ganymede: --recipe: found \"\""},
        std::pair{"plan --model b/mine.json --images 1M", "as \"recipe\" (--recipe) if it is a recipe"},
        std::pair{"plan --model stylegan2-adaa --images 1M", "; did you mean \"stylegan2-ada\"?\n"},
        std::pair{"sweep study.json --recipe stylegan2", "--set /workload/recipe=NAME"},
        std::pair{"plan --recipe cyclegan", "the recipe's target is in epochs"}}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << arguments;
  }
  const Scratch scratch;
  const std::string mine = scratch.write("mine.json", run_program("example recipe").out);
  EXPECT_THAT(run_program("plan --images 1M --batch 4 --trace " + mine).err, HasSubstr("\"recipe\" (--recipe)"));
}

}  // namespace
}  // namespace ganymede::cli

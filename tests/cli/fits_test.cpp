#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Fits, SaysWhichGpusHoldIt) {
  const Outcome table = run_program("fits 'stylegan2?image=256' --batch 8 --gpu V100,T4");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("stylegan2-256 with batch 8"), HasSubstr("activations"), HasSubstr("V100")));
  const Json json = Json::parse(run_program("fits stylegan2 --batch 4 --gpu V100 --format json").out);
  EXPECT_EQ(json["schema"], "ganymede.fits/1");
  double sum = 0;
  for (const Json& kind : json["kinds"]) sum += kind["bytes"].get<double>();
  EXPECT_NEAR(sum, json["total"]["bytes"].get<double>(), 1);
  EXPECT_THAT(run_program("fits dcgan-64 --gpu H100 --format csv").out, HasSubstr("gpu,memory_bytes,largest_batch"));
}

TEST(Fits, SaysTheLargestBatchWhereNothingHoldsIt) {
  const Outcome none = run_program("fits stylegan2 --batch 512 --gpu T4");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.out, testing::StartsWith("None of these GPUs holds a step of stylegan2 with batch 512. The largest "
                                            "batch that fits is "));
}

TEST(Fits, SaysWhoseGraphIsCounted) {
  EXPECT_THAT(run_program("fits stylegan2 --gpu V100").out, HasSubstr("a graph executor (TensorFlow) keeps"));
  EXPECT_THAT(run_program("fits stylegan2-ada --gpu V100").out, HasSubstr("PyTorch's autograd keeps"));
}

TEST(Fits, TakesRecipesAndTheirFiles) {
  const Scratch scratch;
  const std::string mine = scratch.write("mine.json", run_program("example recipe").out);
  for (const std::string& name : {mine, std::string("'stylegan2-ada?image=256'")}) {
    const Outcome outcome = run_program("fits " + name + " --gpu V100");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("fp32 and fp16"));
  }
}

TEST(Fits, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run_program("fits " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused("stylegan2-adaa", "did you mean \"stylegan2-ada\"?");
  refused("stylegan2/config-g", "ganymede: recipe stylegan2/config-g: found the configuration");
  refused("stylegan --batch 4", "did you mean \"stylegan2\"?");
  refused("stylegan2 --gpu RTX309O", "did you mean \"RTX3090\"?");
  refused("stylegan2 --batch 0", "--batch");
  refused("stylegan2 --batch many", "--batch");
  refused("stylegan2 --precision fp8", "fp16");
  refused("'stylegan2?image=300'", "300");
  refused("/no/such/file.json", "/no/such/file.json");
}

}  // namespace
}  // namespace ganymede::cli

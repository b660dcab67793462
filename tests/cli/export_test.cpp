// ganymede export skypilot and kubernetes as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "report/results.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ExportLaunch, OfARealSimulation) {
  const Scratch scratch;
  const std::string scenario = scratch.write("scenario.json", run_program("example scenario").out);
  const std::string result = (scratch / "result.json").string();
  ASSERT_EQ(run_program("simulate " + scenario + " --format json -o " + result).code, 0);
  const std::string task = (scratch / "task.yaml").string();
  ASSERT_EQ(run_program("export skypilot " + result + " -o " + task).code, 0);
  EXPECT_THAT(content_of(task), AllOf(HasSubstr("infra: \"aws/us-east-1\""), HasSubstr("accelerators: \"V100:4\""),
                                      HasSubstr("MODEL: \"mlp-gan\""), HasSubstr("image_id: \"docker:ganymede:")));
  const Outcome manifests = run_program("export kubernetes " + result);
  EXPECT_THAT(manifests.out, AllOf(HasSubstr("kind: \"Job\""), HasSubstr("nvidia.com/gpu: \"4\""),
                                   HasSubstr("is a placeholder"), HasSubstr("kind: \"Deployment\"")));
  EXPECT_EQ(run_program("export kubernetes " + result).out, manifests.out);
  for (const char* image : {"registry.example:5000/team/name:1.2", "pytorch/pytorch", "localhost/x"})
    EXPECT_EQ(run_program("export kubernetes " + result + " --image " + image).code, 0) << image;
  for (const char* image : {"'not an image!'", "Upper/case", "name:", "-x", "a//b", "a@sha256:12"})
    EXPECT_EQ(run_program("export kubernetes " + result + " --image=" + image).code, 2) << image;
  const Outcome own = run_program("export kubernetes " + result + " --kind jobset --image mine --command 'a b'");
  EXPECT_THAT(own.out, AllOf(HasSubstr("kind: \"JobSet\""), Not(HasSubstr("Deployment")), HasSubstr("value: \"a b\"")));
}

TEST(ExportLaunch, OfASweepItSaysWhichRun) {
  const Scratch scratch;
  Json cheap = report::a_result();
  cheap["cost"]["total_usd"] = "1.00";
  const std::string sweep = scratch.write("sweep.json", report::a_sweep({report::a_result(), cheap}).dump());
  EXPECT_THAT(run_program("export skypilot " + sweep).err, HasSubstr("taking sweep.json, run 1: the cheapest"));
  EXPECT_EQ(run_program("export skypilot " + sweep + " --run 0").err, "");
}

TEST(ExportLaunch, NamesWhatIsWrong) {
  const Scratch scratch;
  const auto refused = [](const std::string& arguments, const char* why) {
    const Outcome outcome = run_program("export " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(why), Not(HasSubstr("\x1b")))) << arguments;
  };
  Json foreign = report::a_result(), none = report::a_plan();
  foreign["launch"]["model"] = report::kHostile;
  none["chosen"] = nullptr;
  const std::string result = scratch.write("result.json", report::a_result().dump());
  refused("skypilto " + result, "did you mean \"skypilot\"?");
  refused("skypilot " + scratch.write("foreign.json", foreign.dump()), "is no model of ganymede train; --command");
  refused("kubernetes " + scratch.write("none.json", none.dump()), "there is nothing to launch");
  refused("kubernetes " + scratch.write("new.json", R"({ "schema": "ganymede.result/2" })"), "of a newer ganymede");
  refused("kubernetes " + scratch.write("empty.json", report::a_sweep(Json::array()).dump()), "found no run to launch");
  refused("kubernetes " + result + " --name -x", "--name");
  refused("kubernetes " + result + " --kind deployment", "--kind");
  refused("kubernetes " + result + " -o " + result, "is the input too");
  refused("skypilot " + result + " --command \"$(printf '\\377')\"", "UTF-8");
  refused("skypilot " + result + " --disk 0", "--disk");
  refused("skypilot " + result + " --run -1", "--run");
}

}  // namespace
}  // namespace ganymede::cli

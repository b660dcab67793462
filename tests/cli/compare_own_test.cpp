// ganymede compare-own as a user starts it, with the program's own examples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
class CompareOwn : public testing::Test {
 protected:
  /// The example's machines against A100s of one region, so that the search is short.
  Outcome compare(const std::string& more) const {
    return run_program("compare-own " + platform_ + " " + request_ +
                       " --set '/search/catalogs=[\"aws\"]' --set '/search/gpus=[\"A100\"]' --set "
                       "'/search/regions=[\"us-east-1\"]' --set '/search/schemes=[\"ring\"]' --set /search/seeds=2 " +
                       more);
  }
  Scratch scratch_;
  const std::string platform_ = scratch_.write("lab.json", run_program("example platform").out),
                    request_ = scratch_.write("request.json", run_program("example request").out);
};

TEST_F(CompareOwn, AnswersWithTheExamplesAndDrawsThem) {
  const std::string plot = (scratch_ / "own.svg").string();
  const Outcome outcome = compare("--format json --plot " + plot);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["schema"], "ganymede.own-or-rent/1");
  EXPECT_EQ(answer["own"]["instance"], "node");                 // the other one states no ownership
  EXPECT_EQ(answer["own"]["usd_a_year"]["write_off"], 35'000);  // 140,000 USD over four years
  EXPECT_GT(answer["own"]["training"]["kwh"], 0);
  ASSERT_EQ(answer["offers"].size(), 2U);  // the request names two markets
  EXPECT_EQ(answer["offers"][0]["market"], "on-demand");
  EXPECT_TRUE(answer["offers"][0]["offer"].is_string());
  EXPECT_THAT(content_of(plot), HasSubstr("<svg"));
  EXPECT_THAT(compare("").out, AllOf(HasSubstr("own: "), HasSubstr("on-demand: ")));
}

// Two commands: what one would buy is built like an instance type, and flags say what is trained.
TEST_F(CompareOwn, TakesMachinesLikeThoseOfACloudAndFlags) {
  const Outcome example = run_program("example platform --like p3.8xlarge");
  ASSERT_EQ(example.code, 0) << example.err;
  EXPECT_THAT(example.out, AllOf(HasSubstr("\"capital\" is a placeholder"), HasSubstr("built like p3.8xlarge of aws")));
  const std::string like = scratch_.write("like.json", example.out);
  const Outcome outcome =
      run_program("compare-own " + like +
                  " --model dcgan-64 --images 20M --batch 64 --min-gpus 8 --max-gpus 8 --catalog "
                  "aws --gpu V100 --region us-east-1 --market on-demand --scheme ring --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["own"]["instance"], "p3.8xlarge");
  EXPECT_EQ(answer["own"]["gpus"], 8);
  EXPECT_GT(answer["own"]["capital_usd"], 100'000);  // twice a year of a node at more than 6 USD an hour
  EXPECT_EQ(answer["offers"][0]["gpus"], 8);
  const Outcome unknown = run_program("example platform --like p3.9xlarge");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("--like"), HasSubstr("did you mean")));
  EXPECT_EQ(run_program("example study --like p3.8xlarge").code, 2);
}

TEST_F(CompareOwn, NamesWhatIsWrong) {
  const auto refused = [&](const std::string& arguments, int code, const char* why) {
    const Outcome outcome = run_program("compare-own " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused(platform_ + " " + request_ + " --instance nod", 2, "did you mean \"node\"?");
  refused(platform_ + " " + request_ + " --instance old-node", 2, "/instances/old-node/prices");
  refused("aws " + request_, 2, "\"ownership\"");
  refused("", 2, "`ganymede example platform` prints one");
  refused("missing.json " + request_, 2, "missing.json");
  refused(platform_ + " " + platform_, 2, "lab.json: /schema");
  refused(platform_, 2, "compare-own needs a request file, or --model");
  refused(platform_ + " --model dcgan-64 --images 0x", 2, "--images");
  refused(platform_ + " " + request_ + " --plot /nowhere/own.svg", 2, "/nowhere");
  refused(platform_ + " " + request_ + " --set /deadline=1min", 3, "no machine of");
}

}  // namespace
}  // namespace ganymede::cli

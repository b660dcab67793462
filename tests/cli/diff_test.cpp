// ganymede diff as a user and a CI job call it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "report/results.hpp"
#include "run_program.hpp"
#include "schema_faults.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
/// Two runs of the example scenario, of which the second has twice the steps.
class Diff : public testing::Test {
 protected:
  Diff() {
    const std::string scenario = (scratch_ / "scenario.json").string();
    EXPECT_EQ(run_program("example scenario -o " + scenario).code, 0);
    const std::string run = "simulate " + scenario + " --set /workload/epochs=null --format json ";
    EXPECT_EQ(run_program(run + "--set /workload/steps=20000 -o " + before_).code, 0);
    EXPECT_EQ(run_program(run + "--set /workload/steps=40000 -o " + after_).code, 0);
  }
  Scratch scratch_;
  const std::string before_ = (scratch_ / "before.json").string(), after_ = (scratch_ / "after.json").string();
};

TEST_F(Diff, NamesWhatChangedAndIsAGate) {
  const Outcome open = run_program("diff " + before_ + " " + after_ + " --format json");
  EXPECT_EQ(open.code, 0) << open.err;
  const Json diff = Json::parse(open.out);
  ASSERT_EQ(diff["inputs"].size(), 1U) << diff["inputs"];
  EXPECT_EQ(diff["inputs"][0]["pointer"], "/workload/steps");
  EXPECT_EQ(diff["inputs"][0]["after"], 40000);
  EXPECT_GT(diff["quantities"][0]["change"], 0);
  EXPECT_EQ(faults("diff", diff), "");  // inputs are values of any type
  EXPECT_NE(faults("diff", Json{{"schema", "ganymede.diff/1"}}), "");

  const Outcome closed = run_program("diff " + before_ + " " + after_ + " --fail-on cost=+500%,time=+1%");
  EXPECT_EQ(closed.code, 4);
  EXPECT_THAT(closed.out, AllOf(HasSubstr("time at most +1 %: EXCEEDED"), HasSubstr("cost at most +500 %: held")));
  EXPECT_EQ(run_program("diff " + after_ + " " + before_ + " --fail-on +0%").code, 0);
  const std::string table = (scratch_ / "diff.md").string();
  EXPECT_EQ(run_program("diff " + before_ + " " + after_ + " --fail-on +1% --format markdown -o " + table).code, 4);
  EXPECT_THAT(content_of(table), HasSubstr("| scenario /workload/steps | 20000 | 40000 |"));
}

TEST_F(Diff, RefusesUnlikeAndBrokenDocuments) {
  const auto refused = [](const std::string& arguments, const char* why) {
    const Outcome outcome = run_program("diff " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused(before_ + " " + (scratch_ / "scenario.json").string(), "scenario.json: /schema");
  refused(before_ + " missing.json", "missing.json");
  refused(before_ + " " + scratch_.write("no.json", "{"), "no.json");
  refused(before_ + " " + scratch_.write("few.json", R"({ "schema": "ganymede.result/1" })"), "few.json");
  refused(before_ + " " + scratch_.write("plan.json", report::a_plan().dump()), "plan.json: /schema");
  refused(before_ + " " + after_ + " --fail-on 10", "--fail-on: found \"10\"");
  refused(before_ + " " + after_ + " -o " + before_, before_.c_str());
  refused(before_, "after is required");
}

}  // namespace
}  // namespace ganymede::cli

// ganymede report, and the input that it refuses. tests/browser tests the pages in a browser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
class Report : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("scenario.json", run_program("example scenario").out);
    ASSERT_EQ(run_program("simulate " + at("scenario.json") + " --format json -o " + at("result.json")).code, 0);
    result_ = Json::parse(content_of(at("result.json")));
  }
  std::string at(const std::string& name) const { return (scratch_ / name).string(); }
  Outcome report(const std::string& content) const {
    return run_program("report " + scratch_.write("in.json", content) + " -o " + at("out.html"));
  }
  void expect_refused(const std::string& content, const std::string& why) const {
    const std::size_t files = scratch_.files();
    const Outcome outcome = report(content);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("in.json"));
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(at("out.html")));
    EXPECT_LE(scratch_.files(), files + 1);
  }

  Scratch scratch_;
  Json result_;
};

TEST_F(Report, WritesAPageOfEachKindOfDocument) {
  NOT_SANITIZED("makes every kind of document, which other tests do one by one");
  EXPECT_EQ(run_program("report " + at("result.json") + " -o " + at("r.html")).code, 0);
  EXPECT_THAT(content_of(at("r.html")), HasSubstr("id=\"steps\""));
  EXPECT_EQ(run_program("validate stylegan2_ada_v100 --format json -o " + at("v.json")).code, 0);
  EXPECT_EQ(run_program("report " + at("v.json") + " -o " + at("v.html")).code, 0);
  EXPECT_THAT(content_of(at("v.html")), HasSubstr("StyleGAN2-ADA"));
  EXPECT_EQ(
      run_program("plan --model dcgan-28 --images 100000 --deadline 60h --catalog aws --max-gpus 1 --format json -o " +
                  at("p.json"))
          .code,
      0);
  EXPECT_EQ(run_program("report " + at("p.json") + " -o " + at("p.html")).code, 0);
  EXPECT_THAT(content_of(at("p.html")), HasSubstr("Chosen"));
}

TEST_F(Report, IsTheSameBytesEachTime) {
  const std::string once = run_program("report " + at("result.json")).out;
  EXPECT_GT(once.size(), 500'000U);
  EXPECT_EQ(once, run_program("report " + at("result.json")).out);
}

TEST_F(Report, RefusesWhatIsNoResult) {
  expect_refused("", "in.json");
  expect_refused("{", "in.json");
  expect_refused("[]", "object");
  expect_refused("{}", "schema");
  expect_refused(R"({"schema":"ganymede.scenario/1"})", "ganymede.result/1");
  expect_refused(R"({"schema":7})", "schema");
  expect_refused(
      R"({"schema":"ganymede.sweep/1","runs":[{"run":{},"time":{},"utilization":{},"gpu_seconds":{},"cost":null,
                 "life":{},"goals":{},"provenance":{}}]})",
      "/runs/0/run: is not whole, \"platform\" is missing");
  expect_refused(R"({"schema":"ganymede.sweep/1","study":{},"runs":[]})", "/study");
  EXPECT_EQ(run_program("report " + at("nothing.json") + " -o " + at("out.html")).code, 2);
}

TEST_F(Report, SaysThatAResultIsOfANewerVersion) {
  Json newer = result_;
  newer["schema"] = "ganymede.result/2";
  expect_refused(newer.dump(), "newer");
}

TEST_F(Report, RefusesHalfAResult) {
  Json half = result_;
  half.erase("cost");
  expect_refused(half.dump(), "cost");
  half = result_;
  half["time"].erase("total_s");
  expect_refused(half.dump(), "/time: is not whole, \"total_s\" is missing");
  half = result_;
  half["cost"]["items"] = "many";
  expect_refused(half.dump(), "/cost/items: found \"many\", expected an array");
  half = result_;
  half["step_spans"]["rows"][0] = {1, 99, 0, 0.0, 1.0};
  expect_refused(half.dump(), "/step_spans/rows: a row has");
}

TEST_F(Report, ExportsRefuseNumbersThatAreNone) {
  Json odd = result_;
  odd["cost"]["items"][0]["list_price_usd"] = "";
  const Outcome outcome = run_program("export focus " + scratch_.write("odd.json", odd.dump()));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("odd.json: /cost/items/0/list_price_usd: found \"\", expected"));
}

TEST_F(Report, DoesNotWriteOverItsInput) {
  const Outcome outcome = run_program("report " + at("result.json") + " -o " + at("result.json"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(Json::parse(content_of(at("result.json"))), result_);
}

TEST_F(Report, ShowsNoStepsWhereNoneWereKept) {
  ASSERT_EQ(
      run_program("simulate " + at("scenario.json") + " --show-steps 0 --format json -o " + at("short.json")).code, 0);
  const std::string page = run_program("report " + at("short.json")).out;
  EXPECT_EQ(page.find("id=\"steps\""), std::string::npos);
  EXPECT_THAT(page, HasSubstr("id=\"timeline\""));
}

TEST_F(Report, TracesForPerfettoHaveEachWorker) {
  const Outcome outcome = run_program("export perfetto " + at("result.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json trace = Json::parse(outcome.out);
  std::set<std::string> processes;
  double last = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] == "X") last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(processes, (std::set<std::string>{"cluster", "worker 0", "worker 1", "worker 2", "worker 3"}));
  EXPECT_NEAR(last * 1e-6, result_["time"]["total_s"].get<double>(), 1e-3);
}

}  // namespace
}  // namespace ganymede::cli

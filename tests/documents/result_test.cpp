// The description of a document, by way of the result's: what is written, read and said about it is the same.

#include "documents/result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

using testing::HasSubstr;

/// A result in which every member that may be left out is there.
Result whole_result() {
  Result result;
  result.platform = "aws us-east-1";
  result.scheme = "ring";
  result.gpus = 4;
  result.fidelity = "sampled";
  result.launch = {"dcgan-64", "fp32", "faces",
                   64,         256,    {{"aws", "us-east-1", "", "spot", "p3.8xlarge", "V100", 1, 4}}};
  result.quality = {30, 5e6, {4e6, 7e6}, 0.125};
  result.total = Seconds{3600.5};
  result.interval_s = {3500, 3700};
  result.cpu = 0.25;
  result.gpu_seconds.by_use[0] = 14000;
  result.gpu_seconds.total = 14402;
  result.bill.items = {
      {"instance-hours", "p", 1.5, "h", {3'000'000}, {4'500'000}, "aws", "us-east-1", "spot", {9'000'000}},
      {"storage", "", 100, "GB", {10'000}, {1'000'000}}};
  result.usd = result.bill.total();
  result.cost_usd = {5.25, 6};
  result.energy = {1.5, 0.6, {1.4, 1.6}, {0.5, 0.7}, 1, 0.5, "source"};
  result.events = {{Seconds{1}, "lost", "p", 2, "why", 3}, {Seconds{2}, "finished", "", 0, ""}};
  result.spans = {{"forward"}, {{0, 0, 0, Seconds{0.5}, Seconds{0.25}}}};
  result.pools = {{"p", "V100", result.gpu_seconds, 1.5, {4'500'000}, "owned for 3 years"}};
  result.deadline = Seconds{7200};
  result.budget = {10'000'000};
  result.seeds = {1, 20, 19, 18, 0.5, {1, 0.5, 2, 0.25, 3}, {1, 0.5, 2, 0.25, 3}};
  result.tool = "ganymede 0";
  result.hash = "abc";
  result.scenario.text = R"({"seed":1})";
  result.file_hashes.emplace()["/workload/trace"] = "def";
  result.seed = 18'446'744'073'709'551'615U;
  result.inputs = "measured";
  result.warnings = {"one", "two"};
  return result;
}

Result reread(const std::string& text) { return read_result(JsonNode::parse(text, "result.json")); }

std::string refusal(const Json& document) {
  try {
    (void)reread(document.dump());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ResultDocument, WhatIsWrittenIsReadAndWrittenAgainAsTheSameBytes) {
  const std::string text = result_text(whole_result());
  EXPECT_EQ(result_text(reread(text)), text);
  Result without = whole_result();
  without.quality.reset(), without.energy.reset(), without.spans.reset(), without.seeds.reset(), without.cpu.reset();
  without.deadline.reset(), without.budget.reset();
  const std::string shorter = result_text(without);
  EXPECT_EQ(result_text(reread(shorter)), shorter);
}

TEST(ResultDocument, HasEachMemberInItsForm) {
  const Json out = Json::parse(result_text(whole_result()));
  EXPECT_EQ(out["cost"]["total_usd"], "5.50");
  EXPECT_EQ(out["cost"]["interval_usd"], (Json{"5.250000", "6.000000"}));
  EXPECT_EQ(out["cost"]["items"][0]["list_price_usd"], "9.00");
  EXPECT_EQ(out["cost"]["items"][1]["list_price_usd"], "0.01") << "where no other is known it is the price";
  EXPECT_EQ(out["cost"]["items"][1]["usd_number"], 1);
  EXPECT_EQ(out["step_spans"]["rows"], (Json::array({Json::array({0, 0, 0, 0.5, 0.25})})));
  EXPECT_EQ(out["events"][1], (Json{{"at_s", 2}, {"event", "finished"}})) << "what does not apply is left out";
  EXPECT_EQ(out["provenance"]["scenario"]["seed"], 1);
  EXPECT_FALSE(result_row(whole_result())["provenance"].contains("scenario")) << "a sweep holds its study instead";
}

TEST(ResultDocument, OfAnOlderOrANewerProgramIsRead) {
  Json out = Json::parse(result_text(whole_result()));
  out["cost"]["usd"] = 5.5;  // as versions before 0.3 wrote beside total_usd
  out["some"] = {{"day", 1}};
  out["provenance"]["risk"] = "a word of the future";
  for (const char* part : {"life", "goals", "launch", "pools"}) out.erase(part);
  const Result read = reread(out.dump());
  EXPECT_EQ(read.usd, MicroUsd{5'500'000});
  EXPECT_TRUE(read.met);
}

TEST(ResultDocument, ErrorsSayWhereAndWhatIsMissing) {
  const Json good = Json::parse(result_text(whole_result()));
  Json bad = good;
  bad["time"].erase("total_s");
  EXPECT_EQ(refusal(bad),
            "result.json: /time: is not whole, \"total_s\" is missing; simulate again with --format json");
  bad = good;
  bad["cost"]["items"][1]["usd"] = "much";
  EXPECT_THAT(refusal(bad), HasSubstr("/cost/items/1/usd: found \"much\", expected an amount of dollars"));
  bad = good;
  bad["utilization"]["gpu_busy"] = 1.5;
  EXPECT_THAT(refusal(bad), HasSubstr("/utilization/gpu_busy: found 1.5, expected a number from 0 to 1"));
  bad = good;
  bad["step_spans"]["rows"][0] = {1, 2};
  EXPECT_THAT(refusal(bad), HasSubstr("/step_spans/rows/0: found an array of 2, expected 5 cells"));
  bad = good;
  bad["cost"] = nullptr;
  EXPECT_THAT(refusal(bad), HasSubstr("/cost: found null, expected an object"));
}

TEST(ResultDocument, ItsSchemaNamesWhatIsWritten) {
  const Result result = whole_result();
  const Json schema = schema_of(described(result), "ganymede.result/1", "what a run comes to", true);
  const Json out = Json::parse(result_text(result));
  for (const auto& [name, value] : out.items()) EXPECT_TRUE(schema["properties"].contains(name)) << name;
  for (const auto& [name, value] : out["provenance"].items())
    EXPECT_TRUE(schema["properties"]["provenance"]["properties"].contains(name)) << name;
  EXPECT_EQ(schema["properties"]["time"]["properties"]["fidelity"]["enum"], (Json{"sampled", "message"}));
  EXPECT_EQ(schema["properties"]["gpu_seconds"]["$ref"], "#/definitions/gpu_seconds");
  EXPECT_EQ(schema["definitions"]["gpu_seconds"]["properties"].size(), kGpuUseNames.size() + 1);
}

}  // namespace
}  // namespace ganymede::documents

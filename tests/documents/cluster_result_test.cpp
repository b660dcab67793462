// The life of a cluster as a document.

#include "documents/cluster_result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::documents {
namespace {

ClusterResult small_result() {
  ClusterResult result;
  result.scheduler = "fifo";
  result.summary.jobs = 2, result.summary.gpus = 8;
  JobLife job;
  job.job = "a", job.gpus = 4;
  job.stays = {{0, 1.5, "p", 4, "0:0-3", false, false}, {2, 3, "p", 1, "1:0", true, true}};
  result.jobs = {job, job};
  result.jobs[1].priority = 2;
  result.jobs[1].deadline_s = 7, result.jobs[1].in_time = false;
  result.owners = {{"x", 2, 1.5, 1.25, {1'500'000}}, {}};
  result.queue = {{0, 1, 2, 3, 4}, {5.5, 0, 0, 0, 0}};
  result.usd = {2'000'000};
  result.items = {{{"instance-hours", "p", 2, "h", {1'000'000}, {2'000'000}, "aws", "us-east-1", "spot"}}};
  result.provenance.fidelity = "message";
  return result;
}

TEST(ClusterResultDocument, WhatIsWrittenIsReadAndWrittenAgainAsTheSameBytes) {
  const std::string text = cluster_result_text(small_result());
  EXPECT_EQ(cluster_result_text(read_cluster_result(JsonNode::parse(text, "result.json"))), text);
}

TEST(ClusterResultDocument, HasEachMemberInItsForm) {
  const Json out = Json::parse(cluster_result_text(small_result()));
  EXPECT_FALSE(out["jobs"][0].contains("deadline_s") || out["jobs"][0].contains("in_time"));
  EXPECT_EQ(out["jobs"][1]["in_time"], false);
  EXPECT_FALSE(out["jobs"][0]["stays"][0].contains("packed"));
  EXPECT_EQ(out["jobs"][0]["stays"][1]["packed"], true);
  EXPECT_EQ(out["owners"][1]["owner"], nullptr);
  EXPECT_EQ(out["queue"]["rows"][1], (Json::array({5.5, 0, 0, 0, 0})));
  EXPECT_EQ(out["cost"], (Json{{"total_usd", "2.00"},
                               {"items",
                                {{{"item", "instance-hours"},
                                  {"pool", "p"},
                                  {"quantity", 2.0},
                                  {"unit", "h"},
                                  {"unit_price_usd", "1.00"},
                                  {"unit_price_usd_number", 1.0},
                                  {"usd", "2.00"},
                                  {"usd_number", 2.0}}}}}));
}

TEST(ClusterResultDocument, OfAnOlderProgramIsRead) {
  Json out = Json::parse(cluster_result_text(small_result()));
  out["cost"]["usd"] = 2;  // as versions before 0.3 wrote beside total_usd
  out["provenance"].erase("fidelity");
  out["summary"].erase("begin_s");
  EXPECT_EQ(read_cluster_result(JsonNode::wrap(out, "result.json", "/")).usd, MicroUsd{2'000'000});
}

TEST(ClusterResultDocument, ErrorsSayWhereAndWhatIsMissing) {
  Json out = Json::parse(cluster_result_text(small_result()));
  out["jobs"][1].erase("wait_s");
  try {
    (void)read_cluster_result(JsonNode::wrap(out, "result.json", "/"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/jobs/1: is not whole, \"wait_s\" is missing"));
  }
}

}  // namespace
}  // namespace ganymede::documents

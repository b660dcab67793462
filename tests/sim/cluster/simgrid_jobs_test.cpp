// Clusters at message fidelity, every step and message on SimGrid, against the rates of the fast simulation.

#include "sim/cluster/simgrid_jobs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/process.hpp"
#include "sim/engine/simgrid_module.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

Json with_messages(Json document) {
  document["fidelity"] = {{"mode", "message"}};
  const Cluster cluster = read(document);
  simgrid_module();  // once for all children
  return Json::parse(run_child([&] { return cluster_result_json(cluster, simulate_cluster(cluster)); }));
}

/// All ends of jobs, at message fidelity and fast, within a share of each other.
void expect_like_the_fast_one(const Json& document, double relative, double absolute_s = 0) {
  const Json fast = result_of(document), exact = with_messages(document);
  for (std::size_t job = 0; job < fast["jobs"].size(); ++job)
    EXPECT_NEAR(end_of(fast, job), end_of(exact, job), relative * end_of(exact, job) + absolute_s)
        << "job " << job << " off by " << end_of(fast, job) / end_of(exact, job) - 1;
}

TEST(ClusterOnSimGrid, TimedJobsEndAtTheSameTimes) {
  expect_like_the_fast_one(cluster_of({timed("a", 0, 8, 100), timed("b", 10, 8, 50), timed("c", 20, 4, 30)}), 1e-6);
  expect_like_the_fast_one(
      cluster_of({timed("long", 0, 8, 100), timed("short", 10, 8, 20)}, {{"name", "shortest-remaining"}}), 1e-6);
}

TEST(ClusterOnSimGrid, AJobAloneTakesTheFormulasTime) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  document["jobs"].erase(1);
  for (const char* scheme : {"ring", "tree", "nccl", "halving-doubling"}) {
    document["workloads"]["gan"]["synchronization"]["scheme"] = scheme;
    for (const bool overlap : {false, true}) {
      document["workloads"]["gan"]["synchronization"]["overlap"] = overlap;
      SCOPED_TRACE(fmt::format("{} {}", scheme, overlap));
      expect_like_the_fast_one(document, 1e-6);
    }
  }
  EXPECT_GT(with_messages(document)["provenance"]["messages_simulated"], 2000);
}

// 125 epochs of eight steps, after each of which a checkpoint of 48 MB takes a second to write; the last one too.
TEST(ClusterOnSimGrid, AJobWaitsForItsCheckpoints) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  document["jobs"].erase(1);
  document["placement"] = "consolidate";
  const double without_s = end_of(result_of(document), 0);
  document["workloads"]["gan"]["storage"] = {{"checkpoint", "disk"}};
  document["workloads"]["gan"]["checkpoint"] = {{"every", "1epoch"}};
  const Json result = result_of(document);
  EXPECT_NEAR(end_of(result, 0), without_s + 125, 1e-6);
  EXPECT_NEAR(result["jobs"][0]["slowdown"].get<double>(), 1, 1e-9) << "alone it writes them too";
  expect_like_the_fast_one(document, 1e-6);
  // A job that is stopped has saved its state: the next checkpoint is eight steps away.
  document["jobs"].push_back(timed("short", 20, 8, 20));
  document["scheduler"] = {{"name", "shortest-remaining"}};
  expect_like_the_fast_one(document, 0, 1.1);
}

TEST(ClusterOnSimGrid, JobsThatShareNicsTakeTheFoldedTime) {
  const TemporaryFolder folder;
  const Json document = trained(folder);
  const Json alone = [&] {
    Json one = document;
    one["jobs"].erase(1);
    return with_messages(one);
  }();
  EXPECT_GT(end_of(with_messages(document), 0), 1.05 * end_of(alone, 0));
  expect_like_the_fast_one(document, 0.01);
}

/// Three jobs of unlike schemes on each other's nodes, whose phases drift through each other.
Json unlike(const TemporaryFolder& folder) {
  Json document = trained(folder);
  document["jobs"] = Json::array();
  int gpus = 2;
  for (const char* scheme : {"tree", "nccl", "halving-doubling"}) {
    Json& own = document["workloads"][scheme] = document["workloads"]["gan"];
    own["synchronization"]["scheme"] = scheme;
    own["workload"]["steps"] = 400;
    document["jobs"].push_back({{"name", scheme}, {"gpus", gpus}, {"workload", scheme}});
    gpus = gpus == 2 ? 4 : 2;
  }
  return document;
}

TEST(ClusterOnSimGrid, TheBeatOfUnlikeJobsIsNearEveryMessage) {
  const TemporaryFolder folder;
  Json document = unlike(folder);
  const Json exact = with_messages(document), fast = result_of(document);
  expect_like_the_fast_one(document, 0.03);
  EXPECT_EQ(fast["provenance"]["approximate_groups"], 0);
  EXPECT_GT(fast["provenance"]["messages_simulated"], 0);
  EXPECT_LT(fast["provenance"]["messages_simulated"], exact["provenance"]["messages_simulated"]);
  for (const Json& job : fast["jobs"]) {
    EXPECT_LT(job["run_low_s"], job["run_s"]);
    EXPECT_GT(job["run_high_s"], job["run_s"]);
  }
  EXPECT_EQ(fast, result_of(document)) << "the same bytes";
  document["fidelity"] = {{"mode", "sampled"}, {"messages", 0}};
  const Json formulas = result_of(document);
  EXPECT_EQ(formulas["provenance"]["messages_simulated"], 0);
  EXPECT_GT(formulas["provenance"]["approximate_groups"], 0);
  const auto width = [](const Json& job) { return job["run_high_s"].get<double>() / job["run_low_s"].get<double>(); };
  EXPECT_GT(width(formulas["jobs"][0]), 1.5 * width(fast["jobs"][0])) << "formulas are less sure";
}

// The job's own five nodes have half of a rack's uplink in the last rack; the cluster's rack has all of it.
TEST(ClusterOnSimGrid, AJobAloneSeesTheUplinksOfTheWholeCluster) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  document["jobs"].erase(1);
  document["jobs"][0]["gpus"] = 5;
  document["platform"]["nodes"] = 8;
  document["workloads"]["gan"]["workload"]["steps"] = 100;
  document["workloads"]["gan"]["synchronization"]["scheme"] = "double-binary-tree";
  document["platform"]["catalog"]["fabric"] = {
      {"kind", "fat-tree"},
      {"latency", "1us"},
      {"levels", {{{"nodes", 2}, {"oversubscription", 8}, {"latency", "1us"}}}}};
  expect_like_the_fast_one(document, 1e-3);
  document["fidelity"] = {{"mode", "sampled"}, {"messages", 0}};
  const double formula_s = end_of(result_of(document), 0);
  document["fidelity"] = {{"mode", "message"}};
  EXPECT_GT(formula_s, 1.01 * end_of(with_messages(document), 0));
}

TEST(ClusterOnSimGrid, PoolsHaveFabricsOfTheirOwn) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  const Json catalog = document["platform"]["catalog"];
  document["platform"] = {{"pools",
                           {{{"name", "first"}, {"catalog", catalog}, {"instance", "four"}, {"nodes", 2}},
                            {{"name", "second"}, {"catalog", catalog}, {"instance", "four"}, {"nodes", 2}}}}};
  document["jobs"][0]["gpus"] = document["jobs"][1]["gpus"] = 8;  // a whole pool each
  document["workloads"]["gan"]["workload"]["steps"] = 100;
  document["placement"] = "consolidate";
  const Json result = with_messages(document);
  EXPECT_NE(result["jobs"][0]["stays"][0]["pool"], result["jobs"][1]["stays"][0]["pool"]);
  expect_like_the_fast_one(document, 1e-6);
}

TEST(ClusterOnSimGrid, JobsShareTheRateOfAStore) {
  const TemporaryFolder folder;
  expect_like_the_fast_one(reading(folder, {640}, "disk", "none"), 1e-6);
  expect_like_the_fast_one(reading(folder, {640, 640}, "disk", "none"), 1e-6);
  expect_like_the_fast_one(reading(folder, {640, 64, 640}, "disk", "none"), 1e-6);
  expect_like_the_fast_one(reading(folder, {640, 640}, "disk", "memory"), 1e-6);
}

TEST(ClusterOnSimGrid, AStoppedJobLosesAtMostTheStepUnderWay) {
  const TemporaryFolder folder;
  Json document = reading(folder, {640}, "disk", "none");
  document["jobs"].push_back(timed("short", 2, 8, 4));
  document["scheduler"] = {{"name", "shortest-remaining"}};
  const Json result = with_messages(document);
  EXPECT_EQ(result["jobs"][0]["preemptions"], 1);
  expect_like_the_fast_one(document, 0, 0.01);
}

TEST(ClusterOnSimGrid, RefusesWhatItDoesNotSimulate) {
  Json document = cluster_of(Json::array({timed("a", 0, 1, 1)}));
  document["packing"] = 1.1;
  EXPECT_THAT(message_of<ConfigError>([&] { with_messages(document); }), HasSubstr("/fidelity/mode"));
  document.erase("packing");
  document["contention"] = false;
  EXPECT_THAT(message_of<ConfigError>([&] { with_messages(document); }), HasSubstr("without contention"));
  document["contention"] = true;
  document["fidelity"] = {{"mode", "message"}, {"messages", 10}};
  EXPECT_THAT(message_of<ConfigError>([&] { read(document); }), HasSubstr("/fidelity/messages"));
  document["fidelity"] = {{"mode", "sampled"}, {"messages", -1}};
  EXPECT_THAT(message_of<ConfigError>([&] { read(document); }), HasSubstr("/fidelity/messages"));
  document["fidelity"] = {{"mode", "exact"}};
  EXPECT_THAT(message_of<ConfigError>([&] { read(document); }), HasSubstr("\"message\""));
  const TemporaryFolder folder;
  Json long_job = trained(folder);
  long_job["workloads"]["gan"]["workload"]["steps"] = 1'000'000'000;
  EXPECT_THAT(message_of<BudgetExceeded>([&] { with_messages(long_job); }), HasSubstr("1e+09 steps of the job a"));
  Json large = cluster_of(Json::array({timed("a", 0, 9, 1)}));
  EXPECT_THAT(message_of<Infeasible>([&] { with_messages(large); }), HasSubstr("9"));
}

}  // namespace
}  // namespace ganymede::sim

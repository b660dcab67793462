// The life of a cluster: by hand on small ones, bad input, and what holds for all.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "common/errors.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

TEST(Cluster, AJobWaitsForTheOneBeforeIt) {
  const Json result = result_of(cluster_of({timed("a", 0, 8, 100), timed("b", 10, 8, 50)}));
  EXPECT_EQ(start_of(result, 1), 100);
  EXPECT_EQ(result["jobs"][1]["wait_s"], 90);
  EXPECT_EQ(result["jobs"][1]["run_s"], 50);
  EXPECT_DOUBLE_EQ(result["jobs"][1]["slowdown"].get<double>(), 140.0 / 50);
  EXPECT_EQ(result["summary"]["total_s"], 150);
  EXPECT_EQ(result["summary"]["held"], 1);
  EXPECT_EQ(result["queue"]["rows"], Json::parse("[[0.0,0,1,0,8],[10.0,1,1,8,8],[100.0,0,1,0,8],[150.0,0,0,0,0]]"));
}

TEST(Cluster, ALaterJobFillsAGapOnlyIfItDelaysNothing) {
  const auto with_third = [](double seconds) {
    return result_of(cluster_of({timed("a", 0, 4, 100), timed("b", 10, 8, 50), timed("c", 20, 4, seconds)}));
  };
  EXPECT_EQ(start_of(with_third(80), 2), 20) << "it ends at 100, when a does";
  EXPECT_EQ(start_of(with_third(81), 2), 150) << "it would delay b";
  EXPECT_EQ(start_of(with_third(81), 1), 100);
}

TEST(Cluster, APreemptionCostsACheckpointAndARestart) {
  const Json result =
      result_of(cluster_of({timed("long", 0, 8, 100), timed("short", 10, 8, 20)}, {{"name", "shortest-remaining"}}));
  EXPECT_EQ(start_of(result, 1), 10);
  EXPECT_EQ(end_of(result, 1), 30);
  EXPECT_EQ(end_of(result, 0), 30 + 10 + 30 + 90) << "saving, restoring, and what was left";
  EXPECT_EQ(result["jobs"][0]["preemptions"], 1);
  EXPECT_EQ(result["jobs"][0]["restart_s"], 40);
  EXPECT_EQ(result["jobs"][0]["stays"].size(), 2U);
}

TEST(Cluster, AJobWaitsForThoseThatItNames) {
  Json second = timed("second", 0, 1, 10);
  second["after"] = {"first"};
  const Json result = result_of(cluster_of({timed("first", 0, 1, 60), second}));
  EXPECT_EQ(start_of(result, 1), 60);
  EXPECT_EQ(result["jobs"][1]["slowdown"], 1) << "it could not have run before";
}

TEST(Cluster, OwnersAndIdleTimeSumToTheBill) {
  Json a = timed("a", 0, 4, 3600), b = timed("b", 0, 8, 1800);
  a["owner"] = "x";
  b["owner"] = "y";
  const Json result = result_of(cluster_of({a, b}));
  // Two nodes for 5400 s: 2 x 1.5 h x 10.80 USD. Owner x holds a node's GPUs for an hour, y both for half an hour.
  EXPECT_EQ(result["cost"]["total_usd"], "32.40");
  EXPECT_EQ(result["owners"][0]["usd"], "10.80");
  EXPECT_EQ(result["owners"][0]["usd_number"], 10.8);
  EXPECT_EQ(result["owners"][1]["usd"], "10.80");
  EXPECT_EQ(result["owners"][2]["usd"], "10.80") << "nobody's";
}

TEST(Cluster, NodesArePaidFromTheFirstArrivalOn) {
  const Json early = result_of(cluster_of({timed("a", 0, 4, 3600), timed("b", 60, 8, 1800)}));
  const Json late = result_of(cluster_of({timed("a", 1e6, 4, 3600), timed("b", 1e6 + 60, 8, 1800)}));
  EXPECT_EQ(late["summary"]["begin_s"], 1e6);
  EXPECT_EQ(late["summary"]["total_s"], early["summary"]["total_s"]);
  EXPECT_EQ(late["summary"]["held"], early["summary"]["held"]);
  EXPECT_EQ(late["pools"], early["pools"]);
  EXPECT_EQ(late["cost"], early["cost"]);
  EXPECT_EQ(late["owners"], early["owners"]);
}

TEST(Cluster, PackedJobsShareAGpuAtTheirMeasuredSpeeds) {
  Json document = cluster_of(
      {{{"gpus", 1}, {"workload", "a"}, {"steps", 10000}}, {{"gpus", 1}, {"workload", "b"}, {"steps", 3000}}});
  document["workloads"] = {{"a", {{"model", "A3C"}}}, {"b", {{"model", "ResNet-50"}, {"batch_per_gpu", 64}}}};
  Json platform = Json::parse(made_up_platform());
  platform["gpus"]["GPU-X"]["family"] = "K80";
  document["platform"] = {{"catalog", platform}, {"instance", "one"}, {"region", "room-1"}, {"nodes", 1}};
  // Gavel measured these steps per second on the K80: alone 3.4388 and 0.6190, together 1.8687 and 0.3092.
  EXPECT_NEAR(end_of(result_of(document), 1), 10000 / 3.4388 + 3000 / 0.6190, 1e-3) << "one after the other";
  document["packing"] = 1.0;
  const Json packed = result_of(document);
  const double first_s = 10000 / 1.8687;
  EXPECT_NEAR(end_of(packed, 0), first_s, 1e-3);
  EXPECT_NEAR(end_of(packed, 1), first_s + (3000 - 0.3092 * first_s) / 0.6190, 1e-3);
  EXPECT_NEAR(packed["summary"]["held"].get<double>(), 1, 1e-9) << "half of the GPU each";
  document["packing"] = 1.1;  // their speeds sum to 1.04
  EXPECT_EQ(start_of(result_of(document), 1), end_of(result_of(document), 0));
}

// CycleGAN was never measured beside another job: the result says so, of the jobs too.
TEST(Cluster, PackedJobsOfAModelWithoutMeasuredPairsAreMarkedAsEstimated) {
  Json document = cluster_of({{{"gpus", 1}, {"workload", "a"}, {"steps", 1000}},
                              {{"gpus", 1}, {"workload", "b"}, {"steps", 1000}},
                              timed("c", 0, 1, 10)});
  document["workloads"] = {{"a", {{"model", "CycleGAN"}}}, {"b", {{"model", "Transformer"}, {"batch_per_gpu", 16}}}};
  Json platform = Json::parse(made_up_platform());
  platform["gpus"]["GPU-X"]["family"] = "P100";
  document["platform"] = {{"catalog", platform}, {"instance", "one"}, {"region", "room-1"}, {"nodes", 1}};
  EXPECT_THAT(result_of(document)["provenance"]["warnings"].dump(), testing::Not(testing::HasSubstr("share")))
      << "nobody asked for packing";
  document["packing"] = 1.0;
  const Json packed = result_of(document);
  EXPECT_EQ(start_of(packed, 1), 0);
  for (const int job : {0, 1}) {
    EXPECT_EQ(packed["jobs"][job]["stays"][0]["packed"], true);
    EXPECT_EQ(packed["jobs"][job]["stays"][0]["estimated"], true);
  }
  EXPECT_FALSE(packed["jobs"][2]["stays"][0].contains("estimated"));
  EXPECT_THAT(packed["provenance"]["warnings"].get<std::vector<std::string>>(),
              testing::IsSupersetOf({testing::HasSubstr("CycleGAN was not measured beside other jobs on a P100"),
                                     testing::HasSubstr("share no GPU")}));
}

TEST(Cluster, TheSameInputGivesTheSameBytes) {
  const Json document =
      cluster_of({timed("a", 0, 3, 100), timed("b", 1, 4, 70), timed("c", 2, 5, 30)}, {{"name", "gavel"}});
  EXPECT_EQ(result_of(document).dump(), result_of(document).dump());
}

TEST(Cluster, JobsThatShareNicsSlowEachOtherDown) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  const Json together = result_of(document);
  EXPECT_GT(together["provenance"]["contending_groups"], 0);
  EXPECT_THAT(together["provenance"]["warnings"].dump(), testing::Not(HasSubstr("jobs share links")));
  document["fidelity"] = {{"mode", "sampled"}, {"messages", 0}};
  EXPECT_THAT(result_of(document)["provenance"]["warnings"].dump(), HasSubstr("jobs share links"));
  document["contention"] = false;
  const Json apart = result_of(document);
  EXPECT_THAT(apart["provenance"]["warnings"].dump(), testing::Not(HasSubstr("jobs share links")));
  EXPECT_GT(end_of(together, 0), 1.05 * end_of(apart, 0));
  document["jobs"].erase(1);
  document["contention"] = true;
  EXPECT_NEAR(end_of(result_of(document), 0), end_of(apart, 0), 1e-9 * end_of(apart, 0)) << "alone, today's formula";
}

TEST(Cluster, JobsShareTheRateOfAStore) {
  const TemporaryFolder folder;
  // A job alone needs 64 of the 96 MB/s.
  const double alone_s = end_of(result_of(reading(folder, {640}, "disk", "none")), 0);
  EXPECT_NEAR(alone_s, 10, kFill);
  Json document = reading(folder, {640, 640}, "disk", "none");
  EXPECT_NEAR(end_of(result_of(document), 1), 1000 * 0.64 / 48, kFill) << "48 MB/s each";
  document["contention"] = false;
  EXPECT_NEAR(end_of(result_of(document), 1), 10, kFill);
  // Who needs less than a third keeps its step; the others share what is left until it ends.
  const Json three = result_of(reading(folder, {640, 64, 640}, "disk", "none"));
  EXPECT_NEAR(end_of(three, 1), 10, kFill);
  const double done = 10 / (0.64 / ((96 - 6.4) / 2));  // steps of the others at that time
  EXPECT_NEAR(end_of(three, 0), 10 + (1000 - done) * 0.64 / 48, kFill);
  EXPECT_EQ(end_of(three, 2), end_of(three, 0));
}

TEST(Cluster, CachesHoldTheImagesAfterTheFirstEpoch) {
  const TemporaryFolder folder;
  // The first 200 of 1,000 steps read: at 1 MB/s, and 1 ms until the first byte.
  const Json alone = result_of(reading(folder, {640}, "slow", "memory"));
  EXPECT_NEAR(end_of(alone, 0), 200 * 0.641 + 800 * 0.01, kFill);
  EXPECT_NEAR(alone["jobs"][0]["slowdown"].get<double>(), 1, 1e-9) << "the run alone reads too";
  EXPECT_NEAR(end_of(result_of(reading(folder, {640, 640}, "disk", "memory")), 0), 200 * 0.64 / 48 + 800 * 0.01, kFill);
  // A job that is stopped reads them again: it may come to other nodes.
  Json document = reading(folder, {640}, "slow", "memory");
  document["jobs"].push_back(timed("short", 60, 8, 20));
  document["scheduler"] = {{"name", "shortest-remaining"}};
  const Json stopped = result_of(document);
  EXPECT_EQ(stopped["jobs"][0]["preemptions"], 1);
  const double done = 60 / 0.641;
  EXPECT_NEAR(end_of(stopped, 0), 60 + 20 + 40 + 200 * 0.641 + (800 - done) * 0.01, kFill);
}

TEST(Cluster, ASpreadJobIsSlowerThanOneOnANode) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  const double spread_s = end_of(result_of(document), 0);
  document["placement"] = "consolidate";
  EXPECT_LT(end_of(result_of(document), 0), spread_s);
}

// Shapes of 8 to 16 GPUs on nodes of four: with a ring, those with as many nodes are as fast as each other.
TEST(Cluster, BeyondSomeShapesTheNearestOneLendsItsSteps) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  document["platform"]["nodes"] = 8;
  const Cluster cluster = read(document);
  JobSpeeds all(cluster);
  std::vector<PlaceShape> shapes;
  const std::function<void(PlaceShape, int)> add = [&](const PlaceShape& shape, int left) {
    if (left == 0) return shapes.push_back(shape);
    for (int gpus = std::min(left, shape.empty() ? 4 : shape.back()); gpus > 0 && shape.size() < 8; --gpus) {
      PlaceShape longer = shape;
      longer.push_back(gpus);
      add(longer, left - gpus);
    }
  };
  for (int gpus = 8; gpus <= 16; ++gpus) add({}, gpus);
  for (const PlaceShape& shape : shapes) {
    const JobSpeed* speed = all.speed(cluster.jobs[0], 0, shape);
    JobSpeeds one(cluster);
    const JobSpeed* own = one.speed(cluster.jobs[0], 0, shape);
    ASSERT_TRUE(speed && own);
    EXPECT_NEAR(speed->step_s, own->step_s, (speed->borrowed_error + 1e-9) * own->step_s);
    ASSERT_TRUE(speed->traffic && own->traffic);
    EXPECT_EQ(speed->traffic->messages, own->traffic->messages) << "its own, borrowed or not";
    EXPECT_EQ(speed->traffic->between.size(), own->traffic->between.size());
  }
  EXPECT_GT(all.borrowed_shapes(), 20U);
  EXPECT_GE(static_cast<int>(shapes.size() - all.borrowed_shapes()), JobSpeeds::kMostShapes);
}

TEST(Cluster, ElasticJobsGrowIntoFreeGpus) {
  const TemporaryFolder folder;
  Json document = trained(folder);
  document["jobs"] = Json::array({{{"gpus", {{"min", 1}, {"ask", 2}, {"max", 4}}}, {"workload", "gan"}}});
  document["scheduler"] = {{"name", "pollux"}};
  EXPECT_EQ(result_of(document)["jobs"][0]["stays"][0]["gpus"], 4);
}

// ---- bad input ----

TEST(Cluster, RefusesWhatCannotBeRun) {
  EXPECT_THAT(message_of<Infeasible>([] { read(cluster_of(Json::array({timed("big", 0, 9, 1)}))); }),
              HasSubstr("the job big asks for 9 GPUs; the largest pool has 8"));
  EXPECT_THAT(message_of<ConfigError>([] {
                read(cluster_of({timed("a", 5, 1, 1), timed("b", 4, 1, 1)}));
              }),
              HasSubstr("cluster.json: /jobs/1: b arrives at 4 s after a"));
  Json a = timed("a", 0, 1, 1), b = timed("b", 0, 1, 1);
  a["after"] = {"b"};
  b["after"] = {"a"};
  EXPECT_THAT(message_of<ConfigError>([&] { read(cluster_of({a, b})); }), HasSubstr("in a circle"));
  a["after"] = {"c"};
  EXPECT_THAT(message_of<ConfigError>([&] { read(cluster_of(Json::array({a}))); }), HasSubstr("the name of no job"));
  Json both = timed("a", 0, 1, 1);
  both["steps"] = 5;
  EXPECT_THAT(message_of<ConfigError>([&] { read(cluster_of(Json::array({both}))); }),
              HasSubstr("/jobs/0/steps: the job runs for its \"duration\""));
  EXPECT_THAT(message_of<ConfigError>([] {
                read(cluster_of(Json::array({timed("a", 0, 1, 1)}), {{"name", "fifo-backfil"}}));
              }),
              HasSubstr("did you mean \"fifo-backfill\"?"));
}

TEST(Cluster, SaysWhomASchedulerStarves) {
  const Json idle = {{"name", "external"}, {"command", "sed -u 's/.*/{\"run\": []}/'"}};
  EXPECT_THAT(message_of<Infeasible>([&] { result_of(cluster_of(Json::array({timed("a", 0, 1, 1)}), idle)); }),
              HasSubstr("the scheduler external starves the job a for ever"));
  const Json busy = {{"name", "external"}, {"command", "sed -u 's/.*/{\"run\": [], \"again_in_s\": 1}/'"}};
  EXPECT_THAT(message_of<Infeasible>([&] { result_of(cluster_of(Json::array({timed("a", 0, 1, 1)}), busy)); }),
              HasSubstr("no job gets on"));
}

TEST(Cluster, AsksAProgramOfTheUser) {
  const Json external = {{"name", "external"}, {"command", "sed -u 's/.*/{\"run\": [{\"job\": \"a\"}]}/'"}};
  EXPECT_EQ(end_of(result_of(cluster_of(Json::array({timed("a", 0, 4, 10)}), external)), 0), 10);
  const Json wrong = {{"name", "external"}, {"command", "sed -u 's/.*/{\"run\": [{\"job\": \"z\"}]}/'"}};
  EXPECT_THAT(message_of<Failure>([&] { result_of(cluster_of(Json::array({timed("a", 0, 4, 10)}), wrong)); }),
              HasSubstr("a job that is there"));
}

TEST(Jain, IsOneIfAllAreEqualAndOneNthIfOneHasAll) {
  EXPECT_DOUBLE_EQ(jain_index({2, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(jain_index({5, 0, 0, 0}), 0.25);
}

// ---- what holds for every scheduler and placement ----

TEST(Cluster, EverySchedulerFinishesEveryJobOnGpusThatNobodyElseHolds) {
  Json jobs = Json::array();
  for (int i = 0; i < 40; ++i) {
    Json job = timed("", 7.0 * i, 1 + i * 5 % 8, 20 + i * 37 % 90);
    job["name"] = fmt::format("job-{}", i);
    job["owner"] = i % 3 == 0 ? "x" : "y";
    job["priority"] = i % 4;
    jobs.push_back(job);
  }
  for (const policies::Scheduler& scheduler : policies::schedulers()) {
    if (scheduler.decide == nullptr) continue;
    for (const std::string& placement : policies::placement_names()) {
      Json document = cluster_of(jobs, {{"name", scheduler.name}});
      document["placement"] = placement;
      document["owners"] = {{"x", {{"quota", 3}}}, {"y", {{"quota", 5}}}};
      const Cluster cluster = read(document);
      const ClusterRecord record = simulate_cluster(cluster);
      for (const JobRecord& job : record.jobs) {
        EXPECT_GE(job.end_s, job.ready_s + job.alone_s * (1 - 1e-9)) << scheduler.name;
        double worked_s = -job.restart_s;
        for (const Stay& stay : job.stays) worked_s += stay.to_s - stay.from_s;
        EXPECT_GE(worked_s, job.alone_s * (1 - 1e-9)) << scheduler.name;
        if (job.preemptions == 0) {
          EXPECT_NEAR(worked_s, job.alone_s, 1e-6) << scheduler.name;
        }
      }
      for (std::size_t a = 0; a < record.jobs.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          for (const Stay& one : record.jobs[a].stays)
            for (const Stay& other : record.jobs[b].stays)
              if (one.from_s < other.to_s && other.from_s < one.to_s) {
                for (const GpuSlot& slot : one.slots) {
                  EXPECT_EQ(std::count(other.slots.begin(), other.slots.end(), slot), 0) << scheduler.name;
                }
              }
    }
  }
}

}  // namespace
}  // namespace ganymede::sim

// Events of a run besides its steps, calculated by hand: a step of 10 ms on one GPU, a boot of 90 s, a checkpoint of
// one second.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;
constexpr double kTraining = 3600;  // 360,000 steps

class SimulatedRuns : public testing::Test {
 protected:
  static Json one_node() {
    Json content = ScenarioFiles::with("/platform/nodes", 1);
    content["workload"]["steps"] = 360'000;
    return content;
  }
  static Json saving(const char* every) {
    Json content = one_node();
    content["storage"] = {{"checkpoint", "disk"}};
    content["checkpoint"] = {{"every", every}};
    return content;
  }
  static Json with_event(Json content, const Json& event) {
    content["faults"]["events"].push_back(event);
    return content;
  }
  Json run(const Json& content) const { return Json::parse(documents::result_text(simulate(files_.load(content)))); }
  static std::vector<std::string> events(const Json& run) {
    std::vector<std::string> names;
    for (const auto& event : run["events"]) names.push_back(event["event"]);
    return names;
  }
  ScenarioFiles files_;
};

TEST_F(SimulatedRuns, ACrashWithoutCheckpointsLosesAllThatWasDone) {
  const Json result = run(with_event(one_node(), {{"at", "1890s"}, {"kind", "crash"}}));
  EXPECT_NEAR(number(result, "/time/total_s"), 1890 + kBoot + kTraining, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/lost"), 1800, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/provisioning"), 2 * kBoot, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/compute"), kTraining, 1e-6);
  EXPECT_NEAR(number(result, "/life/lost_training_s"), 1800, 1e-6);
  EXPECT_EQ(result["time"]["steps"], 360'000);
  EXPECT_EQ(result["life"]["losses"], 1);
  EXPECT_THAT(events(result), testing::ElementsAre("requested", "ready", "crashed", "requested", "provisioned",
                                                   "restored", "finished"));
  // Two nodes, each billed for its own seconds: 1,890 and 3,690 at 0.001 USD.
  EXPECT_EQ(result["cost"]["total_usd"], "5.58");
}

// A cycle is ten minutes of training and a second of writing: after 1,800 s the third cycle has trained for 598 s, and
// two checkpoints are durable.
TEST_F(SimulatedRuns, ACrashLosesWhatTheLastCheckpointDoesNotHold) {
  const Json result = run(with_event(saving("10min"), {{"at", "1890s"}, {"kind", "crash"}}));
  EXPECT_NEAR(number(result, "/gpu_seconds/lost"), 1800 - 2 * 601, 1e-6);
  // The rest: 3,600 - 1,200 s in four stretches with three checkpoints between them, one at the end, and half a second
  // to read.
  EXPECT_NEAR(number(result, "/time/total_s"), 1890 + kBoot + 0.5 + 2400 + 3 + 1, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/checkpoint"), 2 + 0.5 + 3 + 1, 1e-6);
  EXPECT_EQ(result["life"]["checkpoints"], 6);
  EXPECT_NEAR(number(result, "/gpu_seconds/compute"), kTraining, 1e-6);
}

TEST_F(SimulatedRuns, ACheckpointCountsOnlyWhenItIsComplete) {
  // The crash comes half a second after the writing of the first checkpoint begins.
  const Json result = run(with_event(saving("10min"), {{"at", "690.5s"}, {"kind", "crash"}}));
  EXPECT_NEAR(number(result, "/life/lost_training_s"), 600, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/lost"), 600, 1e-6);
}

TEST_F(SimulatedRuns, WithNoticeACheckpointSavesAll) {
  Json content = saving("10min");
  content["platform"]["notice"] = "120s";
  const Json result = run(with_event(content, {{"at", "1000s"}, {"kind", "interruption"}}));
  EXPECT_NEAR(number(result, "/life/lost_training_s"), 0, 1e-6);
  EXPECT_THAT(result["events"].dump(), HasSubstr("notice"));
  // A new node boots within the two minutes, and the run moves to it.
  EXPECT_THAT(events(result), testing::Contains("resized"));
  content["platform"]["notice"] = "60s";
  const Json saved = run(with_event(content, {{"at", "1000s"}, {"kind", "interruption"}}));
  EXPECT_NEAR(number(saved, "/life/lost_training_s"), 0, 1e-6);
  EXPECT_THAT(events(saved), testing::Contains("restored"));
  content["checkpoint"]["on_notice"] = false;
  const Json careless = run(with_event(content, {{"at", "1000s"}, {"kind", "interruption"}}));
  // Lost at 1,060 s: 970 s of training and writing since the boot, 601 of them durable.
  EXPECT_NEAR(number(careless, "/life/lost_training_s"), 970 - 601, 1e-6);
}

TEST_F(SimulatedRuns, ASlowNodeSlowsEveryoneForAWhile) {
  Json content = with_event(one_node(), {{"at", "190s"}, {"kind", "straggler"}, {"factor", 2}, {"for", "100s"}});
  EXPECT_NEAR(number(run(content), "/time/total_s"), kBoot + kTraining + 50, 1e-3);
  content["platform"]["nodes"] = 2;
  const Json two = run(content);
  EXPECT_GT(number(two, "/gpu_seconds/straggler"), 30);
}

// Half of the speed for 100 s: 3,550 s of training with a checkpoint after each 600 s, and one at the end.
TEST_F(SimulatedRuns, ASlowNodeLeavesCheckpointsWhenTheyWereDue) {
  Json content = with_event(saving("10min"), {{"at", "490s"}, {"kind", "straggler"}, {"factor", 2}, {"for", "100s"}});
  content["workload"]["steps"] = 350'000;
  const Json result = run(content);
  EXPECT_EQ(result["life"]["checkpoints"], 5 + 1);
  EXPECT_NEAR(number(result, "/gpu_seconds/checkpoint"), 6, 1e-6);
  EXPECT_NEAR(number(result, "/time/total_s"), kBoot + 3550 + 6, 1e-6);
  // The first checkpoint is complete at 691 s: a crash before that loses all training, a later crash only the training
  // since then.
  const Json before = run(with_event(content, {{"at", "690.9s"}, {"kind", "crash"}}));
  EXPECT_NEAR(number(before, "/life/lost_training_s"), 600, 1e-6);
  const Json after = run(with_event(content, {{"at", "692s"}, {"kind", "crash"}}));
  EXPECT_NEAR(number(after, "/life/lost_training_s"), 1, 1e-6);
}

// The node becomes slow, or fast again, half a second after the writing of the first checkpoint begins; the writing
// still takes one second.
TEST_F(SimulatedRuns, ASlowNodeLetsACheckpointBeWrittenToItsEnd) {
  const auto result = [&](const char* at) {
    Json content = with_event(saving("10min"), {{"at", at}, {"kind", "straggler"}, {"factor", 2}, {"for", "100s"}});
    content["workload"]["steps"] = 350'000;
    return run(content);
  };
  for (const char* at : {"590.5s", "690.5s"}) {
    const Json slow = result(at);
    EXPECT_EQ(slow["life"]["checkpoints"], 5 + 1) << at;
    EXPECT_NEAR(number(slow, "/gpu_seconds/checkpoint"), 6, 1e-6) << at;
    // Half a second of the 100 s is writing, which does not slow down.
    EXPECT_NEAR(number(slow, "/time/total_s"), kBoot + 3500 + 99.5 / 2 + 6, 1e-6) << at;
  }
}

TEST_F(SimulatedRuns, ASlowNetworkSlowsWhatIsExposed) {
  Json content = one_node();
  content["platform"]["nodes"] = 4;
  content["synchronization"]["overlap"] = false;
  const double before = number(run(content), "/time/total_s");
  const double exposed = number(run(content), "/gpu_seconds/exposed_communication") / 4;
  content = with_event(content, {{"at", "90s"}, {"kind", "network"}, {"factor", 0.5}, {"for", "10h"}});
  // The bandwidth is halved; latency and reduction stay the same.
  EXPECT_NEAR(number(run(content), "/time/total_s") - before, exposed, 0.05 * exposed);
}

TEST_F(SimulatedRuns, ALossWithoutNoticeStopsAllAndWithNoticeAnElasticRunGoesOn) {
  Json content = saving("10min");
  content["platform"]["nodes"] = 2;
  content["platform"]["notice"] = "60s";
  const Json event = {{"at", "1000s"}, {"kind", "interruption"}};
  const Json fixed = run(with_event(content, event));
  content["policy"] = {{"name", "resource-aware"}, {"low", 0}};
  const Json elastic = run(with_event(content, event));
  const auto has = [&](const Json& result, const char* what) {
    const auto names = events(result);
    return std::find(names.begin(), names.end(), what) != names.end();
  };
  EXPECT_TRUE(has(elastic, "resized"));
  EXPECT_EQ(number(elastic, "/life/lost_training_s"), 0);
  EXPECT_TRUE(has(fixed, "restored"));
  EXPECT_EQ(number(fixed, "/life/lost_training_s") < 1e-6, true);  // saved within the notice
}

TEST_F(SimulatedRuns, CapacityThatNeverComesIsSaidSo) {
  files_.folder().add("none.csv", "time_s,nodes\n0,1\n100,0\n");
  Json content = one_node();
  content["platform"]["nodes"] = 2;
  content["platform"]["capacity"] = "none.csv";
  EXPECT_THAT(message_of<Infeasible>([&] { run(content); }),
              testing::AllOf(HasSubstr("never finishes"), HasSubstr("never come")));
}

TEST_F(SimulatedRuns, ARunThatIsLostAgainAndAgainIsGivenUp) {
  Json content = one_node();
  content["faults"] = {{"crash", {{"every", "60s"}}}};
  EXPECT_THAT(message_of<Infeasible>([&] { run(content); }),
              testing::AllOf(HasSubstr("never finishes"), HasSubstr("writes no checkpoints")));
}

// Three gigabytes of records after 43 s, and no end.
TEST_F(SimulatedRuns, ARunWithSlowdownsBeyondMeasureIsGivenUp) {
  for (const auto& [kind, factor] : {std::pair{"network", 0.5}, {"storage", 0.5}, {"straggler", 2.0}}) {
    Json content = one_node();
    content["faults"] = {{kind, {{"every", "1us"}, {"factor", factor}, {"for", "1h"}}}};
    EXPECT_THAT(message_of<Infeasible>([&] { run(content); }),
                testing::AllOf(HasSubstr("never finishes"), HasSubstr(std::string("/faults/") + kind)));
  }
}

TEST_F(SimulatedRuns, ARecordedCapacityTakesNodesAndGivesThemBack) {
  files_.folder().add("c.csv", "time_s,nodes\n0,2\n1000,1\n2000,2\n");
  Json content = saving("10min");
  content["platform"]["nodes"] = 2;
  content["platform"]["capacity"] = "c.csv";
  const Json fixed = run(content);
  EXPECT_EQ(fixed["life"]["losses"], 1);
  // One node waits for the other from 1,000 to 2,000 s, and during its boot.
  EXPECT_NEAR(number(fixed, "/gpu_seconds/idle"), 1000 + kBoot, 1);
  content["policy"] = {{"name", "predictive"}};
  EXPECT_LT(number(run(content), "/time/total_s"), number(fixed, "/time/total_s"));
}

TEST_F(SimulatedRuns, DalysIntervalIsThatOfTheRate) {
  Json content = saving("daly");
  content["faults"] = {{"crash", {{"every", "20000h"}}}};
  const Json rarely = run(content);
  EXPECT_EQ(rarely["life"]["checkpoints"], 1);  // sqrt(2 * 1 s * 7.2e7 s) is longer than the run
  content["faults"] = {{"crash", {{"every", "2000h"}}}};
  content["workload"]["steps"] = 3'600'000;  // ten hours
  const Json often = run(content);
  if (often["life"]["losses"] == 0) {  // sqrt(2 * 1 * 7.2e6) - 1 = 3,793.7 s: nine and one at the end
    EXPECT_EQ(often["life"]["checkpoints"], 10);
  }
}

TEST_F(SimulatedRuns, ProvisioningHasItsPhases) {
  Json content = one_node();
  content["provisioning"] = {{"queue", "30s"},
                             {"boot", "20s"},
                             {"image_pull", "10s"},
                             {"framework_start", "5s"},
                             {"communicator_start", "3s"}};
  EXPECT_NEAR(number(run(content), "/time/total_s"), 65 + kTraining, 1e-6);
  // Time in the queue is not paid for.
  EXPECT_NEAR(number(run(content), "/gpu_seconds/provisioning"), 35, 1e-6);
  content["platform"]["nodes"] = 2;
  content["workload"]["steps"] = 1;
  EXPECT_NEAR(number(run(content), "/gpu_seconds/provisioning"), 2 * 38, 1e-6);
  content["provisioning"]["boot"] = {{"median", "20s"}, {"spread", 0.5}};
  content["seed"] = 2;
  EXPECT_NE(number(run(content), "/gpu_seconds/provisioning"), 2 * 38);
}

// One process starts the replicas of its node one after the other, at each start of the program.
TEST_F(SimulatedRuns, ReplicasOfANodeStartOneAfterTheOther) {
  Json content = one_node();
  content["provisioning"] = {{"boot", "20s"}, {"framework_start", "5s"}, {"replica_start", "2s"}};
  EXPECT_NEAR(number(run(content), "/gpu_seconds/provisioning"), 25, 1e-6);
  content["platform"]["instance"] = "four";
  content["workload"]["steps"] = 1;
  EXPECT_NEAR(number(run(content), "/gpu_seconds/provisioning"), 4 * (25 + 3 * 2), 1e-6);
  content["platform"]["gpus_per_node"] = 3;
  EXPECT_NEAR(number(run(content), "/events/1/at_s"), 25 + 2 * 2, 1e-6);
}

// 64 images of 784 bytes at 1 MB/s are 50 ms, five times the step; the second epoch is read from memory.
TEST_F(SimulatedRuns, TheFirstEpochIsReadFromStorage) {
  Json content = one_node();
  content["workload"].erase("steps");
  content["workload"]["epochs"] = 2;
  content["storage"] = {{"dataset", "slow"}, {"images_per_request", 64}};
  const Json run_two = run(content);
  constexpr double kEpoch = 938;
  const double first = kEpoch * (64 * 784 / 1e6 + 1e-3);
  EXPECT_NEAR(number(run_two, "/time/total_s"), kBoot + first + kEpoch * 10e-3, 0.2);
  EXPECT_NEAR(number(run_two, "/gpu_seconds/input_stall"), first - kEpoch * 10e-3, 0.3);
  content["storage"]["cache"] = "none";
  EXPECT_NEAR(number(run(content), "/time/total_s"), kBoot + 2 * first, 0.2);
  content["storage"]["compressed"] = 0.5;
  EXPECT_NEAR(number(run(content), "/time/total_s"), kBoot + 2 * kEpoch * (64 * 392 / 1e6 + 1e-3), 0.2);
  // With one image for each request, the limit of 1,000 requests a second determines the time.
  content["storage"]["images_per_request"] = 1;
  EXPECT_NEAR(number(run(content), "/time/total_s"), kBoot + 2 * kEpoch * (64 / 1e3 + 1e-3), 0.2);
}

// A loader that takes 0.4 of the host's time needs one of eight processors, and 47 MB of images a part of the memory.
TEST_F(SimulatedRuns, ResourceAwareReservesTheProcessorsAndMemoryThatAreUsed) {
  Json content = one_node();
  content["storage"] = {{"dataset", "disk"}, {"images_per_request", 64}};
  const Json fixed = run(content);
  EXPECT_EQ(number(fixed, "/utilization/cpu_reserved"), 1);
  content["policy"] = {{"name", "resource-aware"}};
  const Json aware = run(content);
  EXPECT_LT(number(aware, "/utilization/cpu_reserved"), 0.5);
  EXPECT_NEAR(number(aware, "/time/total_s"), number(fixed, "/time/total_s"), 1);
}

// Four nodes make 256 requests in a step of 10 ms, which is 25,600 a second: fewer than the 64,000 of the burst, but
// more than the 6,400 that are left when the credits are used up.
TEST_F(SimulatedRuns, BurstCreditsRunOut) {
  Json content = one_node();
  content["workload"]["steps"] = 30'000;
  content["storage"] = {{"dataset", "burst"}, {"cache", "none"}};
  content["platform"]["nodes"] = 4;
  const Json result = run(content);
  EXPECT_THAT(result["events"].dump(), HasSubstr("burst credits used up"));
  EXPECT_GT(number(result, "/gpu_seconds/input_stall"), 0);
}

TEST_F(SimulatedRuns, GoalsAreJudged) {
  Json content = one_node();
  content["deadline"] = "2h";
  content["budget"] = "4.00USD";
  EXPECT_EQ(run(content)["goals"]["met"], true);
  content["deadline"] = "1h";
  EXPECT_EQ(run(content)["goals"]["met"], false);
  content["deadline"] = "2h";
  content["budget"] = "3.60USD";
  EXPECT_EQ(run(content)["goals"]["met"], false);
}

}  // namespace
}  // namespace ganymede::sim

// ganymede simulate of a service, and plan --serve.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Serving, TheExampleRunsAndAMissedGoalIsExitCode4) {
  const TemporaryFolder folder;
  const std::string file = folder.add("service.json", run_program("example service").out).string();
  const Outcome table = run_program("simulate " + file + " --set '/duration=\"10min\"'");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("latency, p95"), HasSubstr("USD for 1,000 images"), HasSubstr("egress")));
  const Outcome missed =
      run_program("simulate " + file + " --set '/duration=\"10min\"' --set '/goals/p95=\"1ms\"' --format json");
  EXPECT_EQ(missed.code, 4);
  EXPECT_EQ(Json::parse(missed.out)["goals"]["met"], false);
  EXPECT_EQ(run_program("simulate " + file + " --set /arrivals/per_second=-1").code, 2);
}

// The chosen service is written as one that simulate takes, and is no dearer than what one GPU of each kind must cost.
TEST(Serving, APlanRentsWhatHoldsTheGoal) {
  const std::string command = "plan --serve 30/s --p95 300ms --recipe stylegan2?image=256 --catalog aws --gpu T4,V100 ";
  const Outcome outcome = run_program(command + "--format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  ASSERT_GE(plan["offers"].size(), 2U);
  EXPECT_LE(plan["offers"][0]["usd_per_hour"].get<double>(), plan["offers"][1]["usd_per_hour"].get<double>());
  for (const Json& offer : plan["offers"]) EXPECT_LE(offer["p95_interval_s"][1].get<double>(), 0.3);
  const TemporaryFolder folder;
  Json service = plan["service"];
  const auto simulated = [&] {
    return run_program("simulate " + folder.add("service.json", service.dump()).string() + " --format json");
  };
  const Outcome chosen = simulated();
  EXPECT_EQ(chosen.code, 0) << chosen.out << chosen.err;
  EXPECT_EQ(Json::parse(chosen.out)["latency"]["p95_s"], plan["offers"][0]["p95_s"]);
  EXPECT_THAT(run_program(command).out, HasSubstr("Rent "));
  EXPECT_THAT(run_program(command + "--format csv").out, HasSubstr("gpu,provider,region"));
  const Outcome nothing = run_program("plan --serve 30/s --p95 1us --model dcgan --catalog aws --format json");
  EXPECT_EQ(nothing.code, 3);
  EXPECT_TRUE(Json::parse(nothing.out)["offers"].empty());
}

// The manifests do what was simulated: the same replicas, batches, bounds and rule of scaling; a pod has one GPU.
TEST(Serving, AServiceIsExportedForKubernetes) {
  const TemporaryFolder folder;
  const std::string file = folder.add("service.json", run_program("example service").out).string();
  const std::string command = "export kubernetes " + file + " --image registry/ganymede ";
  EXPECT_THAT(run_program(command).out,
              AllOf(HasSubstr("kind: \"HorizontalPodAutoscaler\""), HasSubstr("minReplicas: 1\n  maxReplicas: 12"),
                    HasSubstr("averageValue: \"600m\""), HasSubstr("- \"--batch\"\n            - \"16\""),
                    HasSubstr("stabilizationWindowSeconds: 300"), HasSubstr("instance-type: \"g4dn.xlarge\"")));
  Json document = Json::parse(run_program("simulate " + file + " --set '/duration=\"1min\"' --format json").out);
  EXPECT_EQ(document["instance"], "g4dn.xlarge");
  Json queue = Json::parse(R"({"schema": "ganymede.service/1", "generator": {"measured": {"1": "5ms"}},
      "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "nodes": 2, "market": "spot"},
      "arrivals": {"per_second": 5}, "autoscaling": {"min": 1, "max": 3, "queue": 20}})");
  const std::string several = folder.add("several.json", queue.dump()).string();
  EXPECT_THAT(run_program("export kubernetes " + several).out,
              AllOf(HasSubstr("\n  replicas: 8\n"), HasSubstr("maxReplicas: 12"),
                    HasSubstr("ganymede_generator_waiting"), HasSubstr("averageValue: \"5000m\"")));
  queue.erase("autoscaling");
  EXPECT_THAT(run_program("export kubernetes " + folder.add("fixed.json", queue.dump()).string()).out,
              testing::Not(HasSubstr("HorizontalPodAutoscaler")));
  EXPECT_EQ(run_program(command + "--name 'A b'").code, 2);
  queue["batching"]["largest"] = 4096;
  EXPECT_THAT(run_program("export kubernetes " + folder.add("large.json", queue.dump()).string()).err,
              HasSubstr("/batching/largest: found 4096, expected at most 256"));
  EXPECT_EQ(run_program("export slurm " + file).code, 2);
}

// Nodes that live shorter than their notice never take a batch: there is no latency, and nothing says that it is 0.
TEST(Serving, NothingServedHasNoLatency) {
  const TemporaryFolder folder;
  const std::string file = folder.add("service.json", run_program("example service").out).string();
  const std::string command = "simulate " + file +
                              " --set '/platform/market=\"spot\"' --set '/platform/lifetimes={\"mean\":\"1h\"}' --set "
                              "'/platform/notice=\"1000h\"' --set '/duration=\"10min\"' ";
  const Json result = Json::parse(run_program(command + "--format json").out);
  EXPECT_TRUE(result["latency"]["p95_s"].is_null());
  EXPECT_TRUE(result["usd_per_1000_images"].is_null());
  EXPECT_EQ(run_program(command).code, 4);
  EXPECT_THAT(run_program(command).out, AllOf(HasSubstr("p95 -;"), HasSubstr("no request was served")));
}

TEST(Serving, WhatIsNoServiceIsRefused) {
  for (const auto& [flags, message] :
       {std::pair("--serve 0/s --p95 1s --model dcgan", "--serve 0/s: expected requests such as 50/s"),
        {"--serve 5/day --p95 1s --model dcgan", "--serve 5/day: expected requests"},
        {"--serve 5 --model dcgan", "--p95 is missing"},
        {"--serve 5 --p95 1 --model dcgan", "\"1\" has no unit"},
        {"--serve 5 --p95 1s", "expected one of --model, --recipe and --trace"},
        {"--serve 5 --p95 1s --model dcgan --deadline 5h", "--deadline: says nothing of a service"},
        {"--p95 1s --model dcgan", "--p95: is of a service"},
        {"--serve 5 --p95 1s --model dcgan --save x.json", "--save: is of a training's plan"},
        {"--serve 5 --p95 1s --model dcgan --set /x=1", "--set: says nothing of a service"},
        {"--serve 5 --p95 1s --model dcgan --step 1s --on V100", "--step: says nothing of a service"},
        {"--serve 5 --p95 1s --model dcgan --gpu nosuch", "no catalog has such a GPU"}}) {
    const Outcome outcome = run_program(std::string("plan ") + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << flags;
  }
}

TEST(Serving, OptionsOfAPageSayNothingOfAGenerator) {
  EXPECT_THAT(run_program("serve --listen 127.0.0.1:1").err, HasSubstr("--listen: says nothing without --generator"));
  EXPECT_THAT(run_program("serve --generator run --port 4").err, HasSubstr("--port: says nothing with --generator"));
  EXPECT_THAT(run_program("serve --generator nosuch").err, HasSubstr("--generator: nosuch: found no checkpoint"));
}

}  // namespace
}  // namespace ganymede::cli

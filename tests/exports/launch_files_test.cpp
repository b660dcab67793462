// Compares SkyPilot tasks and Kubernetes manifests with files in golden/, and tries them with malicious input.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/kubernetes.hpp"
#include "exports/skypilot.hpp"
#include "report/results.hpp"
#include "support/errors.hpp"
#include "support/golden.hpp"

namespace ganymede::exports {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Launch launch_of(const Json& content) { return read_launch(report::document_of(content), std::nullopt); }

const KubernetesOptions kJob{.image = "ganymede:test", .dataset = "builtin"};
const SkypilotOptions kTask{.image = "ganymede:test", .dataset = "builtin"};

TEST(Skypilot, SeveralSpotNodes) {
  expect_golden("exports/golden/skypilot-nodes.yaml", skypilot_task(launch_of(report::a_result()), kTask));
}

TEST(Skypilot, TheChosenOfAPlan) {
  SkypilotOptions options = kTask;
  options.dataset = "gs://bucket/celeba";
  expect_golden("exports/golden/skypilot-plan.yaml", skypilot_task(launch_of(report::a_plan()), options));
}

TEST(Skypilot, ACommandOfOnesOwn) {
  const SkypilotOptions options{
      .name = "mine", .command = "torchrun --nnodes $NUM_NODES train.py", .dataset = "builtin", .disk_gb = 100};
  expect_golden("exports/golden/skypilot-command.yaml", skypilot_task(launch_of(report::a_result()), options));
}

TEST(Skypilot, NamesWhatItCannotRent) {
  for (const char* provider : {"genesis", "private", "lab"}) {
    Json result = report::a_result();
    result["launch"]["pools"][0]["provider"] = provider;
    EXPECT_THAT(message_of<ConfigError>([&] { skypilot_task(launch_of(result), kTask); }),
                AllOf(HasSubstr(provider), HasSubstr("export kubernetes")));
  }
}

// Where a cloud has no object store, SkyPilot chooses one. Its types imply their GPUs, whose names differ by cloud.
TEST(Skypilot, KeepsTheCloud) {
  Json result = report::a_result();
  Json& pool = result["launch"]["pools"][0];
  const auto task = [&] { return skypilot_task(launch_of(result), kTask); };
  pool["provider"] = "lambda";
  pool["instance"] = "gpu_4x_a6000";
  pool["gpu"] = "RTXA6000";
  EXPECT_THAT(task(), AllOf(HasSubstr("infra: \"lambda/us-east-1\"\n"), HasSubstr("instance_type: \"gpu_4x_a6000\""),
                            Not(HasSubstr("accelerators")), Not(HasSubstr("store:"))));
  pool["provider"] = "cudo";
  pool["region"] = "any";
  pool["instance"] = "GPU+";
  EXPECT_THAT(task(), AllOf(HasSubstr("infra: \"cudo\"\n"), HasSubstr("instance_type: \"GPU+\"")));
  pool["provider"] = "nebius";
  EXPECT_THAT(task(), AllOf(HasSubstr("infra: \"nebius\"\n"), HasSubstr("store: \"nebius\"")));
  pool["provider"] = "digitalocean";
  EXPECT_THAT(task(), HasSubstr("infra: \"do\"\n"));
}

// A task that asks for what SkyPilot refuses on a cloud is never launched.
TEST(Skypilot, AsksForNothingThatItRefusesThere) {
  Json result = report::a_result();
  Json& pool = result["launch"]["pools"][0];
  SkypilotOptions options = kTask;
  const auto task = [&](const char* provider) {
    pool["provider"] = provider;
    return skypilot_task(launch_of(result), options);
  };
  EXPECT_THAT(task("lambda"), AllOf(HasSubstr("image_id:"), HasSubstr("MOUNT_CACHED"), Not(HasSubstr("refuses"))));
  for (const char* single : {"runpod", "vast", "verda"})
    EXPECT_THAT(message_of<ConfigError>([&] { task(single); }),
                HasSubstr(fmt::format("runs on 2 nodes of {}, where SkyPilot rents single nodes only", single)));
  pool["nodes"] = 1;
  EXPECT_THAT(task("runpod"),
              AllOf(HasSubstr("# SkyPilot mounts no bucket on runpod: checkpoints lie on the node's disk"),
                    HasSubstr("gone with it, also after an interruption"), HasSubstr("image_id:"),
                    HasSubstr("num_nodes: 1\n"), Not(HasSubstr("file_mounts"))));
  options.image.clear();
  options.dataset = "s3://bucket/images";
  EXPECT_THAT(task("verda"), AllOf(HasSubstr("# SkyPilot runs no container on verda"), HasSubstr("s3://bucket/images"),
                                   Not(HasSubstr("image_id")), Not(HasSubstr("MOUNT_CACHED"))));
  pool["nodes"] = 2;
  EXPECT_THAT(task("oci"), AllOf(HasSubstr("# SkyPilot runs no container on oci"), HasSubstr("MOUNT_CACHED"),
                                 HasSubstr("num_nodes: 2\n")));
}

TEST(Skypilot, ZonesAndGpusAsItCallsThem) {
  Json result = report::a_result();
  Json& pool = result["launch"]["pools"][0];
  const auto task = [&] { return skypilot_task(launch_of(result), kTask); };
  pool["zone"] = "us-east-1b";
  EXPECT_THAT(task(), HasSubstr("infra: \"aws/us-east-1/us-east-1b\""));
  pool["zone"] = "use1-az1";  // an id, which stands for another zone in every account
  EXPECT_THAT(task(), AllOf(HasSubstr("infra: \"aws/us-east-1\"\n"), HasSubstr("# Simulated in zone use1-az1")));
  pool["gpus_per_node"] = 2;  // of the instance's four
  EXPECT_THAT(task(), AllOf(HasSubstr("accelerators: \"V100:4\""), HasSubstr("NUM_GPUS_PER_NODE=2")));
  pool["instance"] = "p4de.24xlarge";
  pool["gpu"] = "A100-80GB";
  EXPECT_THAT(task(), HasSubstr("accelerators: \"A100-80GB:8\""));
  pool["provider"] = "azure";
  pool["instance"] = "Standard_NC40ads_H100_v5";
  pool["gpu"] = "H100-NVL";  // its name in SkyPilot is not certain
  EXPECT_THAT(task(), AllOf(HasSubstr("instance_type: \"Standard_NC40ads_H100_v5\""), Not(HasSubstr("accelerators"))));
  pool["provider"] = "aws";
  pool["instance"] = "c5.2xlarge";
  pool["gpu"] = "cpu-8-c5";
  EXPECT_THAT(task(), AllOf(Not(HasSubstr("accelerators")), HasSubstr("--backend cpu")));
}

TEST(Skypilot, OnDemandWhereSpotHasNoneIfThePolicyRentsIt) {
  Json result = report::a_result();
  const auto task = [&] { return skypilot_task(launch_of(result), kTask); };
  EXPECT_THAT(task(), AllOf(HasSubstr("\n  use_spot: true\n"), Not(HasSubstr("any_of"))));
  result["run"]["policy"] = "spot-first";
  EXPECT_THAT(task(), AllOf(HasSubstr("\n  any_of:\n    - use_spot: true\n    - use_spot: false\n"),
                            HasSubstr("as in the policy spot-first"), HasSubstr("strategy: \"FAILOVER\"")));
}

/// A row of a plan like its chosen one, elsewhere.
Json elsewhere(Json row, const std::string& provider, const std::string& region, const std::string& instance,
               const std::string& gpu, double usd) {
  row["provider"] = provider, row["region"] = region, row["instance"] = instance, row["gpu"] = gpu;
  row["usd"]["median"] = usd;
  row["chosen"] = false;
  return row;
}

// A plan's other places are those that meet its goals with as many nodes and GPUs, each once, cheapest first;
// Hyperstack is no place of SkyPilot's.
TEST(Skypilot, APlanInSeveralClouds) {
  Json plan = report::a_plan();
  const Json chosen = plan["chosen"];
  Json slow = elsewhere(chosen, "aws", "eu-west-1", "p3.8xlarge", "V100", 9);
  slow["verdict"] = "misses";
  Json half = elsewhere(chosen, "aws", "us-west-2", "p3.16xlarge", "V100", 8);
  half["part_of_instance"] = true;
  plan["simulated"] = Json::array({chosen, elsewhere(chosen, "aws", "us-east-1", "p3.8xlarge", "V100", 15), slow, half,
                                   elsewhere(chosen, "lambda", "us-east-1", "gpu_4x_a6000", "RTXA6000", 13),
                                   elsewhere(chosen, "hyperstack", "CANADA-1", "n3-A100x4", "A100-80GB", 13),
                                   elsewhere(chosen, "lambda", "us-east-1", "gpu_4x_a6000", "RTXA6000", 14)});
  SkypilotOptions options = kTask;
  options.places = 3;
  const std::string task = skypilot_task(launch_of(plan), options);
  EXPECT_THAT(task, HasSubstr("  any_of:\n"
                              "    - infra: \"gcp/us-central1\"\n"
                              "      instance_type: \"n1-standard-32\"\n"
                              "      accelerators: \"V100:4\"\n"
                              "      use_spot: false\n"
                              "    - infra: \"lambda/us-east-1\"\n"
                              "      instance_type: \"gpu_4x_a6000\"\n"
                              "      use_spot: false\n"
                              "    - infra: \"aws/us-east-1\"\n"
                              "      instance_type: \"p3.8xlarge\"\n"
                              "      accelerators: \"V100:4\"\n"
                              "      use_spot: false\n"));
  EXPECT_THAT(task, testing::Not(HasSubstr("hyperstack")));
  // On spot with a policy that falls back, each place is tried on both markets, and a lost job may move on.
  for (Json* row : {&plan["chosen"], &plan["simulated"][1]}) {
    (*row)["market"] = "spot";
    (*row)["policy"] = "spot-first";
  }
  options.places = 2;
  const std::string spot = skypilot_task(launch_of(plan), options);
  EXPECT_THAT(spot, AllOf(HasSubstr("      accelerators: \"V100:4\"\n      use_spot: true\n    - infra: \"gcp/us-"),
                          HasSubstr("- infra: \"aws/us-east-1\"\n      instance_type: \"p3.8xlarge\"\n      "
                                    "accelerators: \"V100:4\"\n      use_spot: false\n"),
                          HasSubstr("strategy: \"EAGER_NEXT_REGION\"")));
}

TEST(Kubernetes, SeveralSpotNodes) {
  KubernetesOptions options = kJob;
  options.placeholder = true;
  expect_golden("exports/golden/kubernetes-nodes.yaml", kubernetes_manifests(launch_of(report::a_result()), options));
}

TEST(Kubernetes, TheChosenOfAPlan) {
  KubernetesOptions options = kJob;
  options.dataset = "celeba";
  expect_golden("exports/golden/kubernetes-plan.yaml", kubernetes_manifests(launch_of(report::a_plan()), options));
}

TEST(Kubernetes, AJobSetWithACommandOfOnesOwn) {
  const KubernetesOptions options{
      .name = "mine", .jobset = true, .image = "mine:1", .command = "python train.py", .dataset = "builtin"};
  expect_golden("exports/golden/kubernetes-jobset.yaml", kubernetes_manifests(launch_of(report::a_result()), options));
}

TEST(Kubernetes, SpotNodesAsEachProviderMarksThem) {
  Json result = report::a_result();
  Json& pool = result["launch"]["pools"][0];
  const auto manifests = [&] { return kubernetes_manifests(launch_of(result), kJob); };
  EXPECT_THAT(manifests(), HasSubstr("eks.amazonaws.com/capacityType: \"SPOT\""));
  pool["provider"] = "gcp";
  EXPECT_THAT(manifests(), HasSubstr("cloud.google.com/gke-spot: \"true\""));
  pool["provider"] = "azure";
  EXPECT_THAT(manifests(), AllOf(HasSubstr("kubernetes.azure.com/scalesetpriority: \"spot\""),
                                 HasSubstr("- key: \"kubernetes.azure.com/scalesetpriority\"")));
  pool["provider"] = "lab";
  EXPECT_THAT(manifests(), AllOf(Not(HasSubstr("nodeSelector:")), HasSubstr("add their label to nodeSelector")));
  pool["market"] = "on-demand";
  EXPECT_THAT(manifests(), Not(HasSubstr("podFailurePolicy")));
}

TEST(Kubernetes, NamesWhatIsWrong) {
  const auto refused = [](const KubernetesOptions& options) {
    return message_of<ConfigError>([&] { kubernetes_manifests(launch_of(report::a_result()), options); });
  };
  EXPECT_THAT(refused({.name = "Not A Label", .image = "i", .dataset = "builtin"}), HasSubstr("not-a-label"));
  EXPECT_THAT(refused({.image = "i", .dataset = "../etc"}), HasSubstr("--dataset"));
  EXPECT_THAT(refused({.image = "i", .dataset = "/etc"}), HasSubstr("--dataset"));
}

/// Expects each line that holds the injected text to be a comment, or one quoted scalar and nothing else.
void expect_harmless(const std::string& text) {
  const std::regex harmless("^ *(#.*|(- )?([A-Za-z0-9_./-]+: )?\"([^\"\\\\]|\\\\.)*\")$");
  std::istringstream lines(text);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.find_first_of("\x1b\r"), std::string::npos);
    if (line.find("PWNED") == std::string::npos) continue;
    ++found;
    EXPECT_TRUE(std::regex_match(line, harmless)) << line;
  }
  EXPECT_GT(found, 2U);
}

TEST(LaunchFiles, NothingInAFileOrAFlagIsRunOrBreaksOut) {
  Json result = report::a_result();
  result["launch"]["model"] = report::kHostile;
  result["launch"]["dataset"] = report::kHostile;
  result["run"]["policy"] = report::kHostile;
  result["run"]["scheme"] = report::kHostile;
  result["run"]["mode"] = report::kHostile;
  result["run"]["placement"] = report::kHostile;
  for (const char* key : {"region", "zone", "instance", "gpu", "market"})
    result["launch"]["pools"][0][key] = report::kHostile;
  const Launch launch = launch_of(result);
  for (const std::string& command : {std::string(), report::kHostile}) {
    const std::string task = skypilot_task(
        launch,
        {.command = command, .image = report::kHostile, .setup = report::kHostile, .dataset = report::kHostile});
    expect_harmless(task);
    for (const bool jobset : {false, true}) {
      const std::string manifests = kubernetes_manifests(
          launch, {.jobset = jobset, .image = report::kHostile, .command = command, .dataset = report::kHostile});
      expect_harmless(manifests);
      // Kubernetes replaces $(NAME) in values of variables, where $$ is a plain $.
      EXPECT_THAT(manifests, HasSubstr("$$(touch PWNED)"));
    }
  }
}

}  // namespace
}  // namespace ganymede::exports

// Tasks, scripts and manifests as their own tools document them, and what they ask for.

#include "studies/task_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/errors.hpp"
#include "studies/task_offers.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::studies {
namespace {

using testing::Contains;
using testing::HasSubstr;

AskedResources asked(const std::string& text) {
  const TemporaryFolder folder;
  return read_task_file(folder.add("job.yaml", text));
}

std::string refusal(const std::string& text) {
  try {
    (void)asked(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct Case {
  const char* text;
  const char *gpu, *cloud, *region, *instance;
  int gpus_per_node, nodes;
  bool spot;
};

// docs.skypilot.co: accelerators as text, as a map, in any_of; infra; instance types.
// slurm.schedmd.com/sbatch.html: --gres, --gpus-per-node, --gpus, short options, several on a line.
// kubernetes.io, kubeflow.org, volcano.sh, kueue.sigs.k8s.io, jobset.sigs.k8s.io: pods times replicas or parallelism.
const Case kCases[] = {
    {"resources:\n  cloud: aws\n  accelerators: A100:8\n  use_spot: true\nnum_nodes: 2\nrun: python t.py\n", "A100",
     "aws", "", "", 8, 2, true},
    {"resources:\n  accelerators: {V100: 4}\n  region: us-east-1\nrun: |\n  python t.py\n", "V100", "", "us-east-1", "",
     4, 1, false},
    {"resources:\n  any_of:\n    - infra: gcp/us-central1\n      accelerators: H100:8\n    - accelerators: A100:8\n",
     "H100", "gcp", "us-central1", "", 8, 1, false},
    {"name: big\nresources:\n  infra: aws\n  instance_type: p4d.24xlarge\nnum_nodes: 4\n", "", "aws", "",
     "p4d.24xlarge", 0, 4, false},
    {"resources:\n  accelerators: [L4, T4:2]\nrun: x\n", "L4", "", "", "", 1, 1, false},
    {"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:a100:8\n#SBATCH --time=1-12:00:00\nsrun x\n", "a100", "", "",
     "", 8, 2, false},
    {"#!/bin/bash\n#SBATCH -N 4 --gpus-per-node=4 # all\nsrun x\n", "", "", "", "", 4, 4, false},
    {"#!/bin/sh\n#SBATCH -N2\n#SBATCH -G v100:16\n#SBATCH -t 30\n", "v100", "", "", "", 8, 2, false},
    {"#!/bin/sh\n#SBATCH --gres=gpu\n", "", "", "", "", 1, 1, false},
    {"#!/bin/sh\n#SBATCH --gpus=h100:16\n#SBATCH --gpus-per-node=h100:8\nsrun x\n", "h100", "", "", "", 8, 2, false},
    {"#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-task=a100:1 --time=infinite\n", "a100", "", "", "", 4,
     2, false},
    {"#!/bin/sh\n#SBATCH --exclusive --gres=\"lscratch:100,gpu:v100:4\"\n", "v100", "", "", "", 4, 1, false},
    {"apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 4\n  template:\n    spec:\n      nodeSelector: "
     "{cloud.google.com/gke-accelerator: nvidia-tesla-a100}\n      containers:\n      - name: t\n        resources: "
     "{limits: "
     "{nvidia.com/gpu: 8}}\n",
     "nvidia-tesla-a100", "gcp", "", "", 8, 4, false},
    {"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n   "
     "   "
     "template: {spec: {containers: [{name: p, resources: {limits: {nvidia.com/gpu: 8}}}]}}\n    Worker:\n      "
     "replicas: "
     "3\n      template: {spec: {nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}, containers: [{name: "
     "p, "
     "resources: {limits: {nvidia.com/gpu: \"8\"}}}]}}\n",
     "", "", "", "p4d.24xlarge", 8, 4, false},
    {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n  tasks:\n  - name: ps\n    replicas: 1\n    template: "
     "{spec: "
     "{containers: [{name: c}]}}\n  - name: worker\n    replicas: 2\n    template: {spec: {nodeSelector: "
     "{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, karpenter.sh/capacity-type: spot}, containers: [{name: c, "
     "resources: "
     "{requests: {nvidia.com/gpu: 4}}}]}}\n",
     "NVIDIA-H100-80GB-HBM3", "", "", "", 4, 2, true},
    {"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n---\napiVersion: jobset.x-k8s.io/v1alpha2\nkind: "
     "JobSet\nmetadata: "
     "{labels: {kueue.x-k8s.io/queue-name: team}}\nspec:\n  replicatedJobs:\n  - name: w\n    replicas: 2\n    "
     "template: "
     "{spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: c, resources: {limits: "
     "{nvidia.com/gpu: 8}}}]}}}}\n",
     "", "", "", "", 8, 4, false},
    // Nodes that follow from tasks; GPUs by --tres-per-node; a feature that is a GPU, and one that is none.
    {"#!/bin/sh\n#SBATCH -n 16 --ntasks-per-node=4 --gpus-per-task=1 --constraint=h100\n", "h100", "", "", "", 4, 4,
     false},
    {"#!/bin/sh\n#SBATCH -N2 --tres-per-node=gres/gpu:v100:4 -C skylake\n", "v100", "", "", "", 4, 2, false},
    {"#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --tres-per-node=gres/gpu=8 -C skylake\n", "", "", "", "", 8, 2, false},
    // Labels that a node must have; Kubeflow's trainer; TPUs of GKE, of which v4 has two cores a chip.
    {"apiVersion: v1\nkind: Pod\nspec:\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
     "{nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: "
     "[NVIDIA-A100-SXM4-80GB]}]}]}}}\n  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]\n",
     "NVIDIA-A100-SXM4-80GB", "", "", "", 2, 1, false},
    {"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  trainer:\n    numNodes: 2\n    "
     "resourcesPerNode: {limits: {nvidia.com/gpu: 4}}\n",
     "", "", "", "", 4, 2, false},
    {"apiVersion: v1\nkind: Pod\nspec:\n  nodeSelector: {cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice}\n"
     "  containers: [{name: c, resources: {limits: {google.com/tpu: 4}}}]\n",
     "", "gcp", "", "tpu-v5litepod-4", 0, 1, false},
    {"apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 2\n  template: {spec: {nodeSelector: "
     "{cloud.google.com/gke-tpu-accelerator: tpu-v4-podslice, cloud.google.com/gke-tpu-topology: 2x2x2}, containers: "
     "[{name: c, resources: {limits: "
     "{google.com/tpu: 4}}}]}}\n",
     "", "gcp", "", "tpu-v4-16", 0, 1, false},
    {"resources: {accelerators: 'A10:0.5'}\nrun: x\n", "A10", "", "", "", 1, 1, false},
    {"command: x\nresources:\n  instance_type: Standard_ND96isr_H100_v5\n  instance_count: 2\n", "", "azure", "",
     "Standard_ND96isr_H100_v5", 0, 2, false},
    {"kind: Pod\nspec: {nodeSelector: {eks.amazonaws.com/instance-gpu-name: a100}, containers: [{resources: {limits: "
     "{nvidia.com/gpu: 8}}}]}\n",
     "a100", "aws", "", "", 8, 1, false},
};

TEST(TaskFile, ReadsWhatIsAsked) {
  for (const Case& one : kCases) {
    const AskedResources found = asked(one.text);
    EXPECT_EQ(found.gpu, one.gpu) << one.text;
    EXPECT_EQ(found.cloud, one.cloud) << one.text;
    EXPECT_EQ(found.region, one.region) << one.text;
    EXPECT_EQ(found.instance, one.instance) << one.text;
    EXPECT_EQ(found.gpus_per_node, one.gpus_per_node) << one.text;
    EXPECT_EQ(found.nodes, one.nodes) << one.text;
    EXPECT_EQ(found.spot, one.spot) << one.text;
  }
  EXPECT_DOUBLE_EQ(asked(kCases[5].text).time->si, 36 * 3600);
  EXPECT_DOUBLE_EQ(asked(kCases[7].text).time->si, 30 * 60);
}

/// A manifest around the pods of GKE with 4 chips of TPU v4 and this topology.
AskedResources tpus(const std::string& before, const std::string& after, const std::string& topology,
                    const std::string& kind = "tpu-v4-podslice") {
  return asked("apiVersion: v1\nkind: X\nspec: " + before + "{nodeSelector: {cloud.google.com/gke-tpu-accelerator: " +
               kind + (topology.empty() ? "" : ", cloud.google.com/gke-tpu-topology: " + topology) +
               "}, containers: [{name: c, resources: {limits: {google.com/tpu: 4}}}]}" + after + "\n");
}

// cloud.google.com/kubernetes-engine/docs/concepts/tpus: a job's pods share slices of the topology.
TEST(TaskFile, CountsSlicesOfTpus) {
  const auto expect = [](const AskedResources& found, const char* instance, int nodes) {
    EXPECT_EQ(found.instance, instance);
    EXPECT_EQ(found.nodes, nodes);
  };
  const std::string job = "{parallelism: 2, template: {spec: ", deployment = "{replicas: 3, template: {spec: ";
  expect(tpus(job, "}}", "2x2x2"), "tpu-v4-16", 1);
  expect(tpus(job, "}}", "2x2x1"), "tpu-v4-8", 2);
  expect(tpus(deployment, "}}", "2x2x1"), "tpu-v4-8", 3);
  expect(tpus("{replicatedJobs: [{replicas: 3, template: {spec: " + job, "}}}}]}", "2x2x2"), "tpu-v4-16", 3);
  expect(tpus("{replicatedJobs: [{replicas: 3, template: {spec: {parallelism: 1, template: {spec: ", "}}}}]}", "2x2x2"),
         "tpu-v4-16", 3);
  const AskedResources separate = tpus(deployment, "}}", "2x2", "tpu-v5-lite-podslice");
  expect(separate, "tpu-v5litepod-4", 3);
  EXPECT_TRUE(std::ranges::any_of(task_offers(separate, "").offers, &report::LikeOffer::asked)) << "without a network";
  const AskedResources alone = tpus(job, "}}", "");
  expect(alone, "tpu-v4-8", 2);
  EXPECT_THAT(alone.notes, Contains(HasSubstr("no label cloud.google.com/gke-tpu-topology")));
  EXPECT_THAT(message_of<ConfigError>([&] { (void)tpus(job, "}}", "2x4", "tpu-v5-lite-podslice"); }),
              HasSubstr("job.yaml: a slice of 2x4 of tpu-v5-lite-podslice is the instance type tpu-v5litepod-8, which "
                        "no catalog has; there are tpu-v5litepod-1, tpu-v5litepod-4"));
  for (const char* topology : {"2x1", "2xmany"})
    EXPECT_THAT(message_of<ConfigError>([&] { (void)tpus(job, "}}", topology); }),
                HasSubstr("gke-tpu-topology: found \"" + std::string(topology)));
}

// kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node: terms are alternatives, as the values of a rule are.
TEST(TaskFile, TakesTheFirstOfAlternatives) {
  const std::string rule = "{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: ";
  const AskedResources found = asked(
      "apiVersion: v1\nkind: Pod\nspec:\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
      "{nodeSelectorTerms: [" +
      rule + "[NVIDIA-A100, NVIDIA-L4]}]}, " + rule +
      "[NVIDIA-H100]}]}]}}}\n"
      "  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]\n");
  EXPECT_EQ(found.gpu, "NVIDIA-A100");
  EXPECT_THAT(found.notes, testing::ElementsAre("nodeSelectorTerms: the first of 2 is taken",
                                                "nvidia.com/gpu.product: the first of 2 values is taken"));
  EXPECT_TRUE(asked("resources:\n  accelerators: {A100: 8,, }\n").notes.empty());
  const AskedResources train = asked(
      "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  trainer: {numNodes: 2, resourcesPerNode: "
      "{limits: {nvidia.com/gpu: 4}}}\n  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: "
      "{nvidia.com/gpu.product: NVIDIA-L4}}}]\n");
  EXPECT_EQ(train.gpu, "NVIDIA-L4");
  EXPECT_EQ(train.nodes, 2);
}

// slurm.schedmd.com/sbatch.html: features joined by & and |; no options behind the first command.
TEST(TaskFile, ReadsConstraintsOfSlurm) {
  const auto script = [](const std::string& constraint) {
    return asked("#!/bin/sh\n#SBATCH --gpus-per-node=4 --constraint=" + constraint + "\nsrun x\n");
  };
  EXPECT_EQ(script("a100|v100").gpu, "a100");
  EXPECT_THAT(script("a100|v100").notes, testing::ElementsAre("--constraint a100|v100: the first GPU is taken, a100"));
  EXPECT_EQ(script("\"ib&a100\"").gpu, "a100");
  EXPECT_EQ(script("'(a100|h100)'").gpu, "a100");
  EXPECT_EQ(script("'ib & v100*2'").gpu, "v100");
  EXPECT_TRUE(script("ib").gpu.empty());
  const AskedResources late = asked("#!/bin/sh\n#SBATCH --gres='gpu:a100:8'\n\nsrun x\n#SBATCH --nodes=4\n");
  EXPECT_EQ(late.gpu, "a100");
  EXPECT_EQ(late.nodes, 1);
  EXPECT_THAT(late.notes, testing::ElementsAre("line 5: an #SBATCH behind the first command has no effect"));
}

TEST(TaskFile, KnowsGpusByOtherNames) {
  EXPECT_THAT(gpus_meant("nvidia-tesla-a100"), Contains("A100-40GB"));
  EXPECT_THAT(gpus_meant("A100-80GB"), testing::ElementsAre("A100-80GB"));
  EXPECT_THAT(gpus_meant("NVIDIA-H100-80GB-HBM3"), Contains("H100"));
  EXPECT_THAT(gpus_meant("v100"), Contains("V100"));
  EXPECT_TRUE(gpus_meant("abacus").empty());
}

// Two p4d.24xlarge cost twice 21.9576 USD/h on demand; whatever is cheaper has 8 GPUs a node that are no worse.
TEST(TaskFile, PricesWhatIsAskedAndWhatIsCheaper) {
  const report::LikeAnswer answer =
      task_offers(asked("resources: {cloud: aws, accelerators: 'A100:8', region: us-east-1}\nnum_nodes: 2\n"), "");
  bool seen = false;
  double most = 0;
  for (const report::LikeOffer& offer : answer.offers) {
    EXPECT_GE(offer.gpus, 16);
    if (offer.asked && offer.instance == "p4d.24xlarge") seen = true, most = offer.usd_per_hour;
  }
  EXPECT_TRUE(seen);
  EXPECT_NEAR(most, 2 * 21.9576, 1e-6);
  EXPECT_TRUE(std::all_of(answer.offers.begin(), answer.offers.end(),
                          [&](const report::LikeOffer& offer) { return offer.asked || offer.usd_per_hour < most; }));
}

// Where the cloud has no such GPU, what is offered instead is no worse than those of other clouds.
TEST(TaskFile, OffersNothingSlowerWhereTheCloudLacksTheGpu) {
  const report::LikeAnswer answer = task_offers(asked("resources: {cloud: aws, accelerators: 'RTX4090:2'}\n"), "");
  EXPECT_THAT(answer.notes, Contains(HasSubstr("no catalog has a price for exactly that")));
  ASSERT_FALSE(answer.offers.empty());
  for (const report::LikeOffer& offer : answer.offers) {
    EXPECT_NE(offer.gpu, "T4");
    EXPECT_NE(offer.gpu, "RTXA4000");
  }
}

TEST(TaskFile, TakesTheCheapestAlternative) {
  const TemporaryFolder folder;
  const auto taken = [&](const char* text) { return read_priced_task(folder.add("job.yaml", text).string(), ""); };
  EXPECT_EQ(taken("resources:\n  accelerators: {H100:8, T4:8}\n").gpu, "T4");
  EXPECT_EQ(taken("resources:\n  accelerators: ['H100:8', 'T4:8']\n").gpu, "H100");
  EXPECT_EQ(taken("resources:\n  accelerators: ['nothing:8', 'T4:4']\n").gpu, "T4");
  const AskedResources nested = taken(
      "resources:\n  any_of:\n    - accelerators: {H100: 8, A100: 8}\n    - {cloud: AWS, accelerators: 'T4:8'}\n");
  EXPECT_EQ(nested.gpu, "T4");
  EXPECT_EQ(nested.cloud, "aws");
  EXPECT_THAT(nested.notes, Contains(HasSubstr("of several alternatives the cheapest is taken")));
  // Each list obeys its own rule: the first of a list that has a price, and the cheapest of a set.
  const AskedResources first = taken(
      "resources:\n  ordered:\n    - any_of: [{accelerators: 'H100:8'}, {accelerators: 'T4:8'}]\n"
      "    - {accelerators: 'V100:1'}\n");
  EXPECT_EQ(first.gpu, "T4");
  EXPECT_THAT(first.notes, Contains(HasSubstr("cheapest of each set and the first with a price of each list")));
  EXPECT_EQ(taken("resources:\n  any_of:\n    - {accelerators: ['H100:8', 'T4:1']}\n    - {accelerators: 'A100:8'}\n"
                  "    - {cloud: nowhere, accelerators: 'T4:1'}\n")
                .gpu,
            "A100");
  for (const char* text : {"resources:\n  any_of: [{accelerators: 'T4:1'}, {cpus: 4}]\n",
                           "resources:\n  any_of: [{cpus: 4}, {accelerators: 'T4:1'}]\n"}) {
    EXPECT_EQ(taken(text).gpu, "T4");
    EXPECT_THAT(taken(text).notes, Contains("alternatives without a GPU are left out"));
  }
  EXPECT_THAT(message_of<ConfigError>([&] { taken("resources:\n  any_of: [{cpus: 4}, {cpus: 8}]\n"); }),
              HasSubstr("job.yaml: none of its alternatives asks for a GPU"));
}

TEST(TaskFile, RefusesWithAPlace) {
  EXPECT_THAT(refusal("just words\n"), HasSubstr("asks for no GPU; expected a SkyPilot task"));
  EXPECT_THAT(refusal("resources:\n  accelerators: A100:many\n"),
              HasSubstr("line 2: accelerators: found \"A100:many\""));
  EXPECT_THAT(refusal("resources:\n  accelerators: A100\n  use_spot: maybe\n"),
              HasSubstr("line 3: use_spot: found \"maybe\", expected true or false"));
  const auto offers = [](const char* text) { return message_of<ConfigError>([&] { task_offers(asked(text), ""); }); };
  EXPECT_THAT(offers("resources: {instance_type: p4d.24xlarg}\n"), HasSubstr("did you mean \"p4d.24xlarge\"?"));
  EXPECT_THAT(offers("resources: {instance_type: p4d.24xlarge, cloud: gcp}\n"),
              HasSubstr("\"gcp\" has no instance type \"p4d.24xlarge\""));
  for (const char* retired : {"Standard_NC24s_v3", "standard_nc24s_v3"})
    EXPECT_THAT(
        offers(
            ("command: x\nresources:\n  instance_type: " + std::string(retired) + "\n  instance_count: 2\n").c_str()),
        HasSubstr("of azure is retired: Azure announced the end of NCv3"));
  EXPECT_THAT(refusal("command: x\nresources:\n  instance_type: Standard_ND96asr_v4\n  instance_count: 0\n"),
              HasSubstr("line 4: instance_count: found \"0\", expected a count above 0"));
  EXPECT_THAT(refusal("resources: {accelerators: A100}\nnum_nodes: 0\n"), HasSubstr("line 2: num_nodes: found \"0\""));
  EXPECT_THAT(refusal("command: x\nresources: {instance_count: 4}\n"), HasSubstr("resources have instance_type"));
  EXPECT_THAT(refusal("command: x\nresources:\n  instance_type: [a, b]\n  instance_count: 2\n"),
              HasSubstr("line 3: instance_type: expected one name"));
  EXPECT_THAT(refusal("a: [1, 2\nb: }\n"), HasSubstr("line "));
  EXPECT_THAT(refusal("#SBATCH --nodes=none --gres=gpu:8\n"), HasSubstr("line 1: --nodes: found \"none\""));
  EXPECT_THAT(refusal("#SBATCH --gres=gpu:8 --time=soon\n"), HasSubstr("--time: found \"soon\""));
  EXPECT_THAT(refusal("apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: x}}}]}\n"),
              HasSubstr("nvidia.com/gpu: expected a count"));
  EXPECT_THAT(refusal("apiVersion: v1\nspec: {replicas: 60000, a: {replicas: 60000, containers: [{}]}}\n"),
              HasSubstr("more than 65536 pods"));
  // Aliases that repeat each other would be a million containers.
  std::string bomb = "apiVersion: v1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("too large or too deep"));
  for (const char* choices : {"any_of", "ordered"})
    EXPECT_THAT(refusal("resources: &r\n  accelerators: A100:8\n  " + std::string(choices) + ": [*r]\n"),
                HasSubstr("levels of choices"));
  EXPECT_THAT(refusal("resources: {accelerators: {A100: {x: y}}}\n"), HasSubstr("expected a count"));
  EXPECT_THAT(refusal(" - n: p\n,\n"), HasSubstr("line 2: expected YAML, found a character that is none"))
      << "yaml-cpp finds documents there for ever";
}

// Whatever is changed in a file, it is read or refused with a message.
TEST(TaskFile, SurvivesChangedFiles) {
  std::mt19937 random(1);
  int refused = 0;
  for (const Case& one : kCases)
    for (int i = 0; i < 40; ++i) {
      std::string text = one.text;
      for (int k = 0; k < 3; ++k) {
        const std::size_t at = random() % text.size();
        if (random() % 2 == 0)
          text.erase(at, random() % 9);
        else
          text[at] = static_cast<char>(random() % 128);
        if (text.empty()) text = "x";
      }
      refused += refusal(text).empty() ? 0 : 1;
    }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace ganymede::studies

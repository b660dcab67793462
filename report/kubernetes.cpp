#include "report/kubernetes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/errors.hpp"
#include "report/kubernetes_parts.hpp"
#include "report/yaml.hpp"

namespace ganymede {
namespace {

using OrderedJson = nlohmann::ordered_json;
using kubernetes::Names;

/// A pod's name has the job's before its own part; both are labels of 63 characters at most.
constexpr std::size_t kNameMost = 40;
constexpr const char* kFolder = "/data";
/// Failures of the training itself before the job is given up; pods that are taken back do not count.
constexpr int kBackoffLimit = 6;

OrderedJson metadata(const std::string& name, const Names& names) {
  return {{"name", name},
          {"labels", {{"app.kubernetes.io/name", names.base}, {"app.kubernetes.io/part-of", "ganymede"}}}};
}

OrderedJson claim(const Launch& launch, const KubernetesOptions& options, const Names& names) {
  OrderedJson out;
  out["#claim"] =
      fmt::format("Dataset and checkpoints.{}", launch.nodes == 1 ? ""
                                                                  : " Several nodes write to it: the storage "
                                                                    "class must offer ReadWriteMany (a file "
                                                                    "system: EFS, Filestore, Azure Files, NFS).");
  out["apiVersion"] = "v1";
  out["kind"] = "PersistentVolumeClaim";
  out["metadata"] = metadata(names.claim(), names);
  out["spec"] = {{"accessModes", {launch.nodes == 1 ? "ReadWriteOnce" : "ReadWriteMany"}},
                 {"resources", {{"requests", {{"storage", fmt::format("{}Gi", options.disk_gb)}}}}}};
  return out;
}

OrderedJson scripts(const Launch& launch, const TrainCommand& command, const Names& names) {
  OrderedJson out;
  out["apiVersion"] = "v1";
  out["kind"] = "ConfigMap";
  out["metadata"] = metadata(names.scripts(), names);
  out["data"] = {{"train.sh", kubernetes::train_script(launch, command)}};
  return out;
}

/// Names for pods, as hosts; they must be found before they are ready, for they wait for each other.
OrderedJson headless_service(const Names& names) {
  OrderedJson out;
  out["apiVersion"] = "v1";
  out["kind"] = "Service";
  out["metadata"] = metadata(names.base, names);
  out["spec"] = {{"clusterIP", "None"},
                 {"publishNotReadyAddresses", true},
                 {"selector", {{"job-name", names.base}}},
                 {"ports", {{{"name", "rendezvous"}, {"port", 29500}}}}};
  return out;
}

/// What a Job and a JobSet's job have in common.
OrderedJson job_spec(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                     const Names& names) {
  OrderedJson out;
  out["completionMode"] = "Indexed";
  out["completions"] = launch.nodes;
  out["parallelism"] = launch.nodes;
  out["backoffLimit"] = options.jobset ? 0 : kBackoffLimit;
  if (launch.spot() && !options.jobset) {
    out["#spot"] = "A node that is taken back is no failure of the training.";
    out["podFailurePolicy"] = {
        {"rules", {{{"action", "Ignore"}, {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}}}}};
  }
  OrderedJson pod;
  pod["metadata"] = {{"labels", {{"app.kubernetes.io/name", names.base}}}};
  pod["spec"] = kubernetes::training_pod(launch, options, command, names);
  out["template"] = std::move(pod);
  return out;
}

OrderedJson job(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                const Names& names) {
  OrderedJson out;
  out["apiVersion"] = "batch/v1";
  out["kind"] = "Job";
  out["metadata"] = metadata(names.base, names);
  out["spec"] = job_spec(launch, options, command, names);
  return out;
}

OrderedJson jobset(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                   const Names& names) {
  OrderedJson out;
  out["#jobset"] = "Needs the JobSet controller in the cluster (github.com/kubernetes-sigs/jobset).";
  out["apiVersion"] = "jobset.x-k8s.io/v1alpha2";
  out["kind"] = "JobSet";
  out["metadata"] = metadata(names.base, names);
  OrderedJson replicated;
  replicated["name"] = Names::kReplicated;
  replicated["replicas"] = 1;
  replicated["template"]["spec"] = job_spec(launch, options, command, names);
  out["spec"]["network"] = {
      {"enableDNSHostnames", true}, {"publishNotReadyAddresses", true}, {"subdomain", names.base}};
  out["spec"]["failurePolicy"] = {{"maxRestarts", kBackoffLimit}};
  out["spec"]["replicatedJobs"] = OrderedJson::array({replicated});
  return out;
}

}  // namespace

std::string kubernetes_manifests(const Launch& launch, const KubernetesOptions& options) {
  if (!options.name.empty()) check_label("--name", options.name, kNameMost);
  if (options.dataset.find("..") != std::string::npos || options.dataset.starts_with('/'))
    throw ConfigError(fmt::format("--dataset: found {}, expected a folder in the claim, such as celeba, or builtin",
                                  options.dataset));
  const Names names{options.name.empty() ? label_of(launch.model + "-" + launch.instance, kNameMost) : options.name,
                    options.jobset};
  const TrainCommand command{options.command,
                             options.dataset == "builtin" ? "builtin" : fmt::format("{}/{}", kFolder, options.dataset),
                             fmt::format("{}/checkpoints", kFolder)};

  std::string out = yaml_comment(launch_summary(launch, command) + kubernetes::head(launch, options, names));
  std::vector<OrderedJson> documents = {claim(launch, options, names), scripts(launch, command, names)};
  if (options.jobset) {
    documents.push_back(jobset(launch, options, command, names));
  } else {
    documents.push_back(headless_service(names));
    documents.push_back(job(launch, options, command, names));
  }
  if (options.command.empty())
    for (OrderedJson& document : kubernetes::show(options, names)) documents.push_back(std::move(document));
  for (const OrderedJson& document : documents) out += "---\n" + yaml(document);
  return out;
}

}  // namespace ganymede

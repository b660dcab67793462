#include "exports/kubernetes.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/exporter.hpp"
#include "exports/kubernetes_pod.hpp"
#include "exports/kubernetes_service.hpp"
#include "exports/sweep_job.hpp"
#include "exports/yaml.hpp"

namespace ganymede::exports {
namespace {
using kubernetes::manifest;
using kubernetes::Names;

/// Characters in the name of a job. The name of a pod is that of its job and a suffix, together at most 63 characters.
constexpr std::size_t kMaxJobName = 40;
constexpr const char* kFolder = "/data";
constexpr int kShowPort = 8765;  // of `ganymede serve`, in the pod
/// Failures of the training itself after which the job is given up. Pods whose node is taken back do not count.
constexpr int kMaxFailures = 6;

OrderedJson labels_of(const Names& names) {
  return {{"app.kubernetes.io/name", names.base}, {"app.kubernetes.io/part-of", "ganymede"}};
}

OrderedJson claim(const Launch& launch, const KubernetesOptions& options, const Names& names) {
  OrderedJson out = manifest("v1", "PersistentVolumeClaim", names.claim(), labels_of(names),
                             fmt::format("Dataset and checkpoints.{}",
                                         launch.nodes == 1 ? ""
                                                           : " Several nodes write to it: the storage class must offer "
                                                             "ReadWriteMany (a file system: EFS, Filestore, Azure "
                                                             "Files, NFS)."));
  out["spec"] = {{"accessModes", {launch.nodes == 1 ? "ReadWriteOnce" : "ReadWriteMany"}},
                 {"resources", {{"requests", {{"storage", fmt::format("{}Gi", options.disk_gb)}}}}}};
  return out;
}

OrderedJson scripts(const Launch& launch, const TrainCommand& command, const Names& names) {
  OrderedJson out = manifest("v1", "ConfigMap", names.scripts(), labels_of(names));
  out["data"] = {{"train.sh", kubernetes::train_script(launch, command)}};
  return out;
}

/// The Service that gives pods host names. Names resolve before pods are ready, since pods wait for each other.
OrderedJson headless_service(const Names& names) {
  OrderedJson out = manifest("v1", "Service", names.base, labels_of(names));
  out["spec"] = {{"clusterIP", "None"},
                 {"publishNotReadyAddresses", true},
                 {"selector", {{"job-name", names.base}}},
                 {"ports", {{{"name", "rendezvous"}, {"port", 29500}}}}};
  return out;
}

/// The specification that a Job and the job of a JobSet have in common.
OrderedJson job_spec(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                     const Names& names) {
  OrderedJson out;
  out["completionMode"] = "Indexed";
  out["completions"] = launch.nodes;
  out["parallelism"] = launch.nodes;
  out["backoffLimit"] = options.jobset ? 0 : kMaxFailures;
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
  OrderedJson out = manifest("batch/v1", "Job", names.base, labels_of(names));
  out["spec"] = job_spec(launch, options, command, names);
  return out;
}

OrderedJson jobset(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                   const Names& names) {
  OrderedJson out = manifest("jobset.x-k8s.io/v1alpha2", "JobSet", names.base, labels_of(names),
                             "Needs the JobSet controller in the cluster (github.com/kubernetes-sigs/jobset).");
  OrderedJson replicated;
  replicated["name"] = Names::kReplicated;
  replicated["replicas"] = 1;
  replicated["template"]["spec"] = job_spec(launch, options, command, names);
  out["spec"]["network"] = {
      {"enableDNSHostnames", true}, {"publishNotReadyAddresses", true}, {"subdomain", names.base}};
  out["spec"]["failurePolicy"] = {{"maxRestarts", kMaxFailures}};
  out["spec"]["replicatedJobs"] = OrderedJson::array({replicated});
  return out;
}

/// The Deployment that draws images from the newest checkpoint, and its Service.
std::vector<OrderedJson> checkpoint_viewer(const KubernetesOptions& options, const Names& names) {
  const OrderedJson labels = {{"app.kubernetes.io/name", names.show()}};
  const OrderedJson mount = OrderedJson::array({{{"name", kubernetes::kVolume}, {"mountPath", "/data"}}});
  OrderedJson deployment =
      manifest("apps/v1", "Deployment", names.show(), labels,
               fmt::format("Draws images from the newest checkpoint on a page, when there is one:\n"
                           "  kubectl scale deployment/{0} --replicas=1\n"
                           "  kubectl logs deployment/{0}                          the page's address, with its token\n"
                           "  kubectl port-forward service/{0} {1}:{1}\n"
                           "The page listens on the pod's own loopback alone: port-forward reaches it, nothing else in "
                           "the cluster does.",
                           names.show(), kShowPort));
  OrderedJson serve;
  serve["name"] = "serve";
  serve["image"] = options.image;
  serve["command"] = {"ganymede", "serve",      "--port",       std::to_string(kShowPort),
                      "--data",   "/data/show", "--checkpoint", "/data/checkpoints"};
  serve["volumeMounts"] = mount;
  deployment["spec"] = {{"replicas", 0}, {"selector", {{"matchLabels", labels}}}};
  deployment["spec"]["template"] = {{"metadata", {{"labels", labels}}},
                                    {"spec",
                                     {{"containers", OrderedJson::array({serve})},
                                      {"volumes", OrderedJson::array({kubernetes::volume_claim(names)})}}}};
  OrderedJson service = manifest("v1", "Service", names.show(), labels);
  service["spec"] = {{"selector", labels}, {"ports", {{{"name", "http"}, {"port", kShowPort}}}}};
  return {deployment, service};
}

}  // namespace

std::string kubernetes_manifests(const Launch& launch, const KubernetesOptions& options) {
  if (!options.name.empty()) check_label("--name", options.name, kMaxJobName);
  if (options.dataset.find("..") != std::string::npos || options.dataset.starts_with('/'))
    throw ConfigError(fmt::format("--dataset: found {}, expected a folder in the claim, such as celeba, or builtin",
                                  options.dataset));
  const Names names{options.name.empty() ? label_of(launch.model + "-" + launch.instance, kMaxJobName) : options.name,
                    options.jobset};
  const TrainCommand command{options.command,
                             options.dataset == "builtin" ? "builtin" : fmt::format("{}/{}", kFolder, options.dataset),
                             fmt::format("{}/checkpoints", kFolder)};

  std::string out = write_yaml_comment(launch_summary(launch, command) + kubernetes::head(launch, options, names));
  std::vector<OrderedJson> documents = {claim(launch, options, names), scripts(launch, command, names)};
  if (options.jobset) {
    documents.push_back(jobset(launch, options, command, names));
  } else {
    documents.push_back(headless_service(names));
    documents.push_back(job(launch, options, command, names));
  }
  if (options.command.empty())
    for (OrderedJson& document : checkpoint_viewer(options, names)) documents.push_back(std::move(document));
  for (const OrderedJson& document : documents) out += "---\n" + write_yaml(document);
  return out;
}

namespace {

std::vector<ExportOption> kubernetes_options() {
  std::vector<ExportOption> options = launch_options(
      {{.name = "image", .summary = "container image; default: a placeholder"},
       {.name = "kind",
        .summary = "job, or jobset, which needs the JobSet controller",
        .default_value = "job",
        .choices = {"job", "jobset"}},
       {.name = "dataset", .summary = "a folder in the claim, or builtin", .default_value = "builtin"},
       {.name = "sweep",
        .summary = "simulate a study in shards, instead of training",
        .kind = ExportOption::Kind::flag},
       {.name = "study", .summary = "of a study: its path in the pods; default: the manifests hold it"}});
  for (ExportOption& option : sweep_job_options()) options.push_back(std::move(option));
  return options;
}

}  // namespace

Exporter kubernetes_exporter() {
  return {
      .name = "kubernetes",
      .summary = "manifests of a Job or JobSet that trains on nodes as simulated",
      .examples =
          "  ganymede export kubernetes plan.json --image registry/ganymede -o manifests.yaml\n"
          "  kubectl apply -f manifests.yaml\n"
          "  ganymede export kubernetes result.json --kind jobset --command 'python train.py' --image "
          "pytorch/pytorch\n"
          "  ganymede export kubernetes study.json --sweep --shards 64 --cpus 4 --image registry/ganymede -o "
          "sweep.yaml\n",
      .about =
          "Writes a claim for data and checkpoints, a Job with one pod for each node and its Service (or a JobSet),\n"
          "and a Deployment that shows the checkpoint. Node selectors are those of EKS, GKE and AKS. With --sweep, it\n"
          "writes an indexed Job with a pod for each shard of a study (docs/shards.md). A service becomes a\n"
          "Deployment, its Service and a HorizontalPodAutoscaler (docs/serving.md).",
      .reads = {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan,
                report::DocumentKind::study, report::DocumentKind::service},
      .options = kubernetes_options(),
      .write = [](const report::Document& document, const ExportValues& values, const ExportConsole& console) {
        const bool needs_image = values.text("image").empty();
        const bool study = document.kind == report::DocumentKind::study;
        if (study != values.flag("sweep"))
          throw ConfigError(fmt::format(
              "{}: {}", document.node.file(),
              study ? "is a study; --sweep writes the Job of its shards" : "is no study, which --sweep needs"));
        if (document.kind == report::DocumentKind::service) return kubernetes_service(document, values);
        if (study) return kubernetes_sweep(document, values, image_of(values));
        const Launch launch = launch_of(document, values, console);
        return kubernetes_manifests(launch, {.name = values.text("name"),
                                             .jobset = values.text("kind") == "jobset",
                                             .image = image_of(values),
                                             .placeholder = needs_image,
                                             .command = values.text("command"),
                                             .dataset = values.text("dataset"),
                                             .disk_gb = values.integer("disk")});
      }};
}

}  // namespace ganymede::exports

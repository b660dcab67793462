#include "exports/kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/exporter.hpp"
#include "exports/kubernetes_pod.hpp"
#include "exports/launch.hpp"
#include "exports/yaml.hpp"
#include "kernel/session/draw_images.hpp"
#include "platforms/providers.hpp"
#include "sim/service/service.hpp"

namespace ganymede::exports {

// Manifests of a service that was simulated: a claim with the checkpoint, a Deployment of `ganymede serve --generator`,
// its Service, and a HorizontalPodAutoscaler with the rule that was simulated.

namespace {

constexpr int kPort = 8080;
constexpr const char* kCheckpoint = "/data/checkpoints";

/// A pod has one GPU, so a replica with several of them is as many pods.
int pods_of(const sim::Service& service, int replicas) {
  return replicas * service.scenario.pools.front().pool.gpus_per_node;
}

Launch nodes_of(const sim::Service& service) {
  const sim::ScenarioPool& pool = service.scenario.pools.front();
  Launch launch;
  launch.provider = pool.platform->provider, launch.region = pool.pool.region, launch.zone = pool.zone;
  launch.market = platforms::to_string(pool.pool.market);
  launch.instance = pool.instance().name, launch.gpu = pool.gpu().name;
  launch.cpu = pool.gpu().kind == platforms::Gpu::Kind::cpu;
  return launch;
}

OrderedJson deployment(const sim::Service& service, const std::string& name, const std::string& image, int waiting,
                       const OrderedJson& labels) {
  const Launch nodes = nodes_of(service);
  OrderedJson container = {{"name", "serve"}, {"image", image}};
  container["command"] = {"ganymede",    "serve",
                          "--generator", kCheckpoint,
                          "--backend",   nodes.cpu ? "cpu" : "cuda",
                          "--listen",    fmt::format("0.0.0.0:{}", kPort),
                          "--batch",     std::to_string(service.largest_batch),
                          "--window",    fmt::format("{}s", service.window.si),
                          "--waiting",   std::to_string(waiting),
                          "--timeout",   fmt::format("{}s", service.timeout.si)};
  container["ports"] = {{{"name", "http"}, {"containerPort", kPort}}};
  container["readinessProbe"] = {{"httpGet", {{"path", "/health"}, {"port", "http"}}}, {"periodSeconds", 2}};
  if (!nodes.cpu) container["resources"]["limits"]["nvidia.com/gpu"] = "1";
  container["volumeMounts"] = {{{"name", kubernetes::kVolume}, {"mountPath", "/data"}, {"readOnly", true}}};
  OrderedJson pod = {{"containers", OrderedJson::array({container})}};
  kubernetes::place(nodes, pod);
  pod["volumes"] = OrderedJson::array({kubernetes::volume_claim({name})});
  OrderedJson out = kubernetes::manifest("apps/v1", "Deployment", name, labels);
  out["spec"]["replicas"] = pods_of(service, service.scenario.pools.front().pool.nodes);
  out["spec"]["selector"]["matchLabels"] = labels;
  out["spec"]["template"] = {
      {"metadata",
       {{"labels", labels},
        {"annotations", {{"prometheus.io/scrape", "true"}, {"prometheus.io/port", std::to_string(kPort)}}}}},
      {"spec", pod}};
  return out;
}

OrderedJson autoscaler(const sim::Service& service, const std::string& name, const OrderedJson& labels) {
  const sim::Autoscaling& scaling = *service.autoscaling;
  const bool by_queue = scaling.metric == sim::Autoscaling::Metric::queue;
  const char* metric = by_queue ? "ganymede_generator_waiting" : "ganymede_generator_busy";
  OrderedJson out = kubernetes::manifest(
      "autoscaling/v2", "HorizontalPodAutoscaler", name, labels,
      fmt::format("Needs Prometheus and its adapter (sigs.k8s.io/prometheus-adapter), which serves {} as a metric of "
                  "pods:\n  {}\nThe tolerance and the interval of {:g} s are those of the cluster's controller.",
                  metric,
                  by_queue ? "the gauge of that name"
                           : "rate(ganymede_generator_busy_seconds_total[30s]), the busy share of a pod's GPU",
                  scaling.every.si));
  OrderedJson& spec = out["spec"];
  spec["scaleTargetRef"] = {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", name}};
  spec["minReplicas"] = pods_of(service, scaling.least);
  spec["maxReplicas"] = pods_of(service, scaling.most);
  const int a_replica = pods_of(service, 1);
  const double target = by_queue ? scaling.target / a_replica : scaling.target;
  spec["metrics"] = {
      {{"type", "Pods"},
       {"pods",
        {{"metric", {{"name", metric}}},
         {"target", {{"type", "AverageValue"}, {"averageValue", fmt::format("{:.0f}m", 1000 * target)}}}}}}};
  const auto seconds = [](Seconds window) { return static_cast<std::int64_t>(window.si); };
  spec["behavior"]["scaleUp"] = {{"stabilizationWindowSeconds", seconds(scaling.up_window)},
                                 {"selectPolicy", "Max"},
                                 {"policies",
                                  {{{"type", "Pods"}, {"value", pods_of(service, 4)}, {"periodSeconds", 15}},
                                   {{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}}}};
  spec["behavior"]["scaleDown"] = {{"stabilizationWindowSeconds", seconds(scaling.down_window)},
                                   {"policies", {{{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}}}};
  return out;
}

/// YAML documents separated by "---". Throws ConfigError for a file that read_service() refuses and for a name that is
/// no label.
std::string kubernetes_service(const report::Document& document, const ExportValues& values) {
  const sim::Service service = sim::read_service(document.node);
  const Launch nodes = nodes_of(service);
  if (service.largest_batch > kernel::kMostDrawnAtOnce)
    document.node.child("batching")
        .child("largest")
        .expected(fmt::format("at most {}: `ganymede serve` draws no more at once", kernel::kMostDrawnAtOnce));
  const int waiting = std::clamp(service.queue, 1, kernel::kMostWaiting);
  constexpr std::size_t kMostLetters = 40;
  if (!values.text("name").empty()) check_label("--name", values.text("name"), kMostLetters);
  const std::string name =
      values.text("name").empty() ? label_of("serve-" + nodes.instance, kMostLetters) : values.text("name");
  const std::string image = image_of(values);
  const OrderedJson labels = {{"app.kubernetes.io/name", name}};
  OrderedJson claim = kubernetes::manifest(
      "v1", "PersistentVolumeClaim", kubernetes::Names{name}.claim(), labels,
      fmt::format("Holds the checkpoint in {} (ganymede train --checkpoint). All pods read it: the storage class must "
                  "offer ReadOnlyMany.",
                  kCheckpoint));
  claim["spec"] = {{"accessModes", {"ReadOnlyMany"}},
                   {"resources", {{"requests", {{"storage", values.text("disk") + "Gi"}}}}}};
  OrderedJson front = kubernetes::manifest("v1", "Service", name, labels);
  front["spec"] = {{"selector", labels}, {"ports", {{{"name", "http"}, {"port", 80}, {"targetPort", "http"}}}}};
  std::vector<OrderedJson> documents = {claim, deployment(service, name, image, waiting, labels), front};
  if (service.autoscaling) documents.push_back(autoscaler(service, name, labels));
  std::string words = fmt::format(
      "A generator that answers requests, as simulated in {}: POST /generate at the Service {}.\nkubectl apply -f "
      "FILE\n",
      document.node.file(), name);
  if (waiting != service.queue)
    words += fmt::format("{} requests may wait, where {} were simulated: `ganymede serve` has 1 to {}.\n", waiting,
                         service.queue, kernel::kMostWaiting);
  if (nodes.spot())
    words += fmt::format("The nodes are spot. {}\n", platforms::provider_of(nodes.provider).kubernetes.spot_remark);
  std::string out = write_yaml_comment(words);
  for (const OrderedJson& one : documents) out += "---\n" + write_yaml(one);
  return out;
}

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

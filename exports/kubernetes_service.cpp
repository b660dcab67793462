// Manifests of a service that was simulated: a claim with the checkpoint, a Deployment of `ganymede serve --generator`,
// its Service, and a HorizontalPodAutoscaler with the rule that was simulated.

#include "exports/kubernetes_service.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "exports/kubernetes_pod.hpp"
#include "exports/yaml.hpp"
#include "kernel/session/draw_images.hpp"
#include "platforms/providers.hpp"
#include "sim/service/service.hpp"

namespace ganymede::exports {
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

}  // namespace

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

}  // namespace ganymede::exports

#include "report/kubernetes_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/providers.hpp"

namespace ganymede::kubernetes {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kShowPort = 8765;

/// Several processes of `ganymede train` are started over SSH.
bool over_ssh(const Launch& launch, const std::string& own_command) { return own_command.empty() && launch.nodes > 1; }

/// Kubernetes replaces $(NAME) in the values of variables; "$$" stands for one "$".
std::string literal(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '$' ? "$$" : std::string(1, c);
  return out;
}

OrderedJson variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", literal(value)}};
}

/// Labels by which the nodes of the launch are told in a cluster of its provider.
OrderedJson node_selector(const Launch& launch) {
  OrderedJson out = OrderedJson::object();
  const KubernetesNodes& nodes = provider_of(launch.provider).kubernetes;
  if (nodes.type_labels) out["node.kubernetes.io/instance-type"] = launch.instance.substr(0, launch.instance.find('+'));
  if (nodes.region_label && !launch.region.empty()) out["topology.kubernetes.io/region"] = launch.region;
  if (nodes.type_labels && launch.zone.starts_with(launch.region) && launch.zone.size() > launch.region.size())
    out["topology.kubernetes.io/zone"] = launch.zone;
  if (!nodes.attached_gpu.empty() && launch.instance.find('+') != std::string::npos)
    for (const auto& [ours, theirs] : nodes.attached_gpus)
      if (launch.gpu == ours) out[std::string(nodes.attached_gpu)] = theirs;
  if (launch.spot() && !nodes.spot.key.empty()) out[std::string(nodes.spot.key)] = nodes.spot.value;
  return out;
}

OrderedJson tolerations(const Launch& launch) {
  OrderedJson out = OrderedJson::array();
  if (!launch.cpu) out.push_back({{"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  const KubernetesNodes& nodes = provider_of(launch.provider).kubernetes;
  if (launch.spot() && nodes.spot_taint)
    out.push_back(
        {{"key", nodes.spot.key}, {"operator", "Equal"}, {"value", nodes.spot.value}, {"effect", "NoSchedule"}});
  return out;
}

OrderedJson volume_claim(const Names& names) {
  return {{"name", kVolume}, {"persistentVolumeClaim", {{"claimName", names.claim()}}}};
}

OrderedJson environment(const Launch& launch, const TrainCommand& command, const Names& names) {
  OrderedJson out = OrderedJson::array();
  const OrderedJson variables = train_environment(launch, command);
  for (const auto& [name, value] : variables.items()) out.push_back(variable(name, value.get<std::string>()));
  out.push_back(variable("NUM_NODES", std::to_string(launch.nodes)));
  out.push_back(variable("NUM_GPUS_PER_NODE", std::to_string(launch.gpus_per_node)));
  out.push_back(variable("PODS", names.pods()));
  out.push_back(variable("SUBDOMAIN", names.base));
  if (over_ssh(launch, command.own))
    out.push_back(
        {{"name", "JOB_UID"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.labels['controller-uid']"}}}}}});
  return out;
}

// Open MPI starts the processes of the other nodes over SSH: every pod but the first serves it until the first is done,
// which it says with a file of this job in the shared claim.
constexpr const char* kOverSsh = R"SH(
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$CHECKPOINT_DIR"
finished="$CHECKPOINT_DIR/.finished-$JOB_UID"
if [ "$NODE_RANK" != 0 ]; then
  mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f /tmp/host_key
  "$(command -v sshd)" -f /dev/null -p 2222 -h /tmp/host_key -o AuthorizedKeysFile=/keys/authorized_keys -o StrictModes=no \
    -o PermitRootLogin=prohibit-password -o PidFile=none
  until [ -e "$finished" ]; do sleep 5; done
  exit 0
fi
ssh_options=(-i /keys/id_ed25519 -p 2222 -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null)
hosts="$PODS-0.$SUBDOMAIN:$NUM_GPUS_PER_NODE"
for ((i = 1; i < NUM_NODES; i++)); do
  until ssh "${ssh_options[@]}" -o ConnectTimeout=5 "$PODS-$i.$SUBDOMAIN" true; do sleep 5; done
  hosts="$hosts,$PODS-$i.$SUBDOMAIN:$NUM_GPUS_PER_NODE"
done
)SH";

}  // namespace

std::string head(const Launch& launch, const KubernetesOptions& options, const Names& names) {
  std::string out = "kubectl apply -f manifests.yaml; kubectl logs -f ";
  out += options.jobset ? fmt::format("job/{}\n", names.pods()) : fmt::format("job/{}\n", names.base);
  if (options.placeholder)
    out += fmt::format("The image {} is a placeholder: none is published. --image names yours, with ganymede{}.\n",
                       options.image, over_ssh(launch, options.command) ? ", Open MPI, ssh, sshd and ssh-keygen" : "");
  if (over_ssh(launch, options.command))
    out += fmt::format(
        "Before, a key by which the pods reach each other:\n"
        "  ssh-keygen -q -t ed25519 -N '' -f key\n"
        "  kubectl create secret generic {} --from-file=id_ed25519=key --from-file=authorized_keys=key.pub\n",
        names.keys());
  const KubernetesNodes& nodes = provider_of(launch.provider).kubernetes;
  if (!nodes.type_labels)
    out +=
        fmt::format("Which nodes are {} only your cluster knows: add their label to nodeSelector.\n", launch.instance);
  if (launch.spot()) out += nodes.spot_remark;
  return out;
}

std::string train_script(const Launch& launch, const TrainCommand& command) {
  std::string out =
      "set -euo pipefail\n"
      "export NODE_RANK=\"${JOB_COMPLETION_INDEX:-0}\"\n"
      "export MASTER_ADDR=\"$PODS-0.$SUBDOMAIN\" MASTER_PORT=29500\n";
  if (!over_ssh(launch, command.own)) return out + train_line(launch, command, "");
  out += kOverSsh + 1;
  std::string mpirun =
      "mpirun --host \"$hosts\" -np \"$((NUM_NODES * NUM_GPUS_PER_NODE))\" --mca plm_rsh_args \"${ssh_options[*]}\"";
  if (train_environment(launch, command).contains("NCCL_ALGO")) mpirun += " -x NCCL_ALGO";
  mpirun += " \\\n  ${LD_LIBRARY_PATH:+-x LD_LIBRARY_PATH}";
  std::string line = train_line(launch, command, mpirun);
  line.insert(line.size() - 1, " &");
  return out + line +
         "training=$!\n"
         "trap 'kill -TERM \"$training\"; wait \"$training\"' TERM\n"
         "wait \"$training\"\n"
         "touch \"$finished\"\n";
}

OrderedJson training_pod(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                         const Names& names) {
  OrderedJson container;
  container["name"] = "train";
  container["image"] = options.image;
  container["command"] = {"bash", "/scripts/train.sh"};
  container["env"] = environment(launch, command, names);
  if (!launch.cpu) {
    // A pod gets the whole node: others on it would not have been simulated.
    const int gpus = launch.instance_gpus > 0 ? launch.instance_gpus : launch.gpus_per_node;
    container["resources"] = {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}};
  }
  container["volumeMounts"] = {{{"name", kVolume}, {"mountPath", "/data"}},
                               {{"name", "scripts"}, {"mountPath", "/scripts"}},
                               {{"name", "shared-memory"}, {"mountPath", "/dev/shm"}}};
  OrderedJson volumes = {volume_claim(names),
                         {{"name", "scripts"}, {"configMap", {{"name", names.scripts()}}}},
                         {{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}}}}};
  if (over_ssh(launch, command.own)) {
    container["volumeMounts"].push_back({{"name", "keys"}, {"mountPath", "/keys"}});
    volumes.push_back({{"name", "keys"}, {"secret", {{"secretName", names.keys()}, {"defaultMode", 0400}}}});
  }
  OrderedJson out;
  out["restartPolicy"] = "Never";
  if (!names.jobset) out["subdomain"] = names.base;
  if (OrderedJson selector = node_selector(launch); !selector.empty()) out["nodeSelector"] = std::move(selector);
  if (OrderedJson tolerated = tolerations(launch); !tolerated.empty()) out["tolerations"] = std::move(tolerated);
  if (launch.nodes > 1) {
    const OrderedJson others = {{"labelSelector", {{"matchLabels", {{"app.kubernetes.io/name", names.base}}}}},
                                {"topologyKey", "kubernetes.io/hostname"}};
    out["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = OrderedJson::array({others});
  }
  out["containers"] = OrderedJson::array({container});
  out["volumes"] = std::move(volumes);
  return out;
}

std::vector<OrderedJson> show(const KubernetesOptions& options, const Names& names) {
  const OrderedJson labels = {{"app.kubernetes.io/name", names.show()}};
  const OrderedJson mount = OrderedJson::array({{{"name", kVolume}, {"mountPath", "/data"}}});
  OrderedJson deployment;
  deployment["#show"] = fmt::format(
      "Draws images from the newest checkpoint on a page, when there is one:\n"
      "  kubectl scale deployment/{0} --replicas=1\n"
      "  kubectl logs deployment/{0}                          the page's address, with its token\n"
      "  kubectl port-forward service/{0} {1}:{1}\n"
      "The page listens on the pod's own loopback alone: port-forward reaches it, nothing else in the cluster does.",
      names.show(), kShowPort);
  deployment["apiVersion"] = "apps/v1";
  deployment["kind"] = "Deployment";
  deployment["metadata"] = {{"name", names.show()}, {"labels", labels}};
  OrderedJson serve;
  serve["name"] = "serve";
  serve["image"] = options.image;
  serve["command"] = {"ganymede", "serve",      "--port",       std::to_string(kShowPort),
                      "--data",   "/data/show", "--checkpoint", "/data/checkpoints"};
  serve["volumeMounts"] = mount;
  deployment["spec"] = {{"replicas", 0}, {"selector", {{"matchLabels", labels}}}};
  deployment["spec"]["template"] = {
      {"metadata", {{"labels", labels}}},
      {"spec", {{"containers", OrderedJson::array({serve})}, {"volumes", OrderedJson::array({volume_claim(names)})}}}};
  OrderedJson service;
  service["apiVersion"] = "v1";
  service["kind"] = "Service";
  service["metadata"] = {{"name", names.show()}, {"labels", labels}};
  service["spec"] = {{"selector", labels}, {"ports", {{{"name", "http"}, {"port", kShowPort}}}}};
  return {deployment, service};
}

}  // namespace ganymede::kubernetes

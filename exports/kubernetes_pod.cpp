#include "exports/kubernetes_pod.hpp"

#include <fmt/format.h>

#include "platforms/providers.hpp"

namespace ganymede::exports::kubernetes {
namespace {
/// True if a pod starts processes in other pods over SSH, which is the case for `ganymede train` on several nodes.
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

/// Labels that select the launch's nodes in a cluster of its provider.
OrderedJson node_selector(const Launch& launch) {
  OrderedJson out = OrderedJson::object();
  const platforms::KubernetesNodes& nodes = platforms::provider_of(launch.provider).kubernetes;
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
  const platforms::KubernetesNodes& nodes = platforms::provider_of(launch.provider).kubernetes;
  if (launch.spot() && nodes.spot_taint)
    out.push_back(
        {{"key", nodes.spot.key}, {"operator", "Equal"}, {"value", nodes.spot.value}, {"effect", "NoSchedule"}});
  return out;
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

// Open MPI starts the processes of the other nodes over SSH. Every pod but the first runs an SSH server until the first
// pod is done, which the first pod says by a file in the shared claim, named after this job.
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

OrderedJson volume_claim(const Names& names) {
  return {{"name", kVolume}, {"persistentVolumeClaim", {{"claimName", names.claim()}}}};
}

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
  const platforms::KubernetesNodes& nodes = platforms::provider_of(launch.provider).kubernetes;
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

void place(const Launch& launch, OrderedJson& pod) {
  if (OrderedJson selector = node_selector(launch); !selector.empty()) pod["nodeSelector"] = std::move(selector);
  if (OrderedJson tolerated = tolerations(launch); !tolerated.empty()) pod["tolerations"] = std::move(tolerated);
}

OrderedJson training_pod(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                         const Names& names) {
  OrderedJson container;
  container["name"] = "train";
  container["image"] = options.image;
  container["command"] = {"bash", "/scripts/train.sh"};
  container["env"] = environment(launch, command, names);
  if (!launch.cpu) {
    // A pod gets the whole node, because the simulation has no other work on it.
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
  place(launch, out);
  if (launch.nodes > 1) {
    const OrderedJson others = {{"labelSelector", {{"matchLabels", {{"app.kubernetes.io/name", names.base}}}}},
                                {"topologyKey", "kubernetes.io/hostname"}};
    out["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = OrderedJson::array({others});
  }
  out["containers"] = OrderedJson::array({container});
  out["volumes"] = std::move(volumes);
  return out;
}

}  // namespace ganymede::exports::kubernetes

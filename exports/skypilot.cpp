#include "exports/skypilot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "exports/exporter.hpp"
#include "exports/yaml.hpp"
#include "platforms/providers.hpp"

namespace ganymede::exports {
namespace {
/// Characters in the name of a cluster; SkyPilot appends some of its own.
constexpr std::size_t kMaxTaskName = 40;
constexpr const char* kData = "/data/dataset";
constexpr const char* kCheckpoints = "/data/checkpoints";

/// Our names of GPUs and those of `sky show-gpus`. For a GPU that is not here, the instance type alone decides.
struct Accelerator {
  const char *ours, *theirs;
};
constexpr Accelerator kAccelerators[] = {{"K80", "K80"},
                                         {"P100", "P100"},
                                         {"V100", "V100"},
                                         {"V100-PCIE-16GB", "V100"},
                                         {"V100-32GB", "V100-32GB"},
                                         {"T4", "T4"},
                                         {"A10G", "A10G"},
                                         {"L4", "L4"},
                                         {"A100-40GB", "A100"},
                                         {"H100", "H100"},
                                         {"A100-80GB", "A100-80GB"},
                                         {"A100-80GB-PCIE", "A100-80GB"},
                                         {"H200", "H200"}};

/// What SkyPilot refuses on a cloud (the unsupported features of sky/clouds/*.py, 0.14.1).
struct Refused {
  std::string_view provider;
  bool images = false, buckets = false, several_nodes = false;
};
constexpr Refused kRefused[] = {{.provider = "cudo", .images = true},
                                {.provider = "hyperbolic", .images = true, .buckets = true, .several_nodes = true},
                                {.provider = "ibm", .images = true},
                                {.provider = "oci", .images = true},
                                {.provider = "primeintellect", .images = true, .several_nodes = true},
                                {.provider = "runpod", .buckets = true, .several_nodes = true},
                                {.provider = "scp", .images = true},
                                {.provider = "seeweb", .buckets = true, .several_nodes = true},
                                {.provider = "shadeform", .images = true, .buckets = true, .several_nodes = true},
                                {.provider = "vast", .buckets = true, .several_nodes = true},
                                {.provider = "verda", .images = true, .buckets = true, .several_nodes = true},
                                {.provider = "vsphere", .images = true, .several_nodes = true},
                                {.provider = "yotta", .buckets = true, .several_nodes = true}};

Refused refused_on(std::string_view provider) {
  for (const Refused& refused : kRefused)
    if (refused.provider == provider) return refused;
  return {.provider = provider};
}

/// SkyPilot's name of the cloud. ConfigError if SkyPilot does not rent there.
std::string cloud_of(const Launch& launch) {
  if (const std::string_view cloud = platforms::sky_cloud_of(launch.provider); !cloud.empty())
    return std::string(cloud);
  std::vector<std::string> known;
  for (const platforms::Provider& provider : platforms::providers())
    if (!platforms::sky_cloud_of(provider.name).empty()) known.emplace_back(provider.name);
  throw ConfigError(
      fmt::format("{}: runs on {}, which SkyPilot does not rent from (of ours it knows {}); "
                  "`ganymede export kubernetes` writes manifests for a cluster of your own, which SkyPilot can use as "
                  "infra: k8s, and of a sweep --run takes another run",
                  launch.source, OrderedJson(launch.provider).dump_ascii(), fmt::join(known, ", ")));
}

/// "aws/us-east-1", with the zone if the provider's API knows it by that name. AWS's zone ids (use1-az1) are no such
/// names: an id stands for another zone name in each account. Where a list names no region, SkyPilot has none either.
std::string infra_of(const Launch& launch) {
  std::string infra = cloud_of(launch);
  if (launch.region.empty() || launch.region == platforms::kAnyRegion) return infra;
  infra += "/" + launch.region;
  return launch.zone.starts_with(launch.region) && launch.zone != launch.region ? infra + "/" + launch.zone : infra;
}

/// True for the providers whose GPUs kAccelerators names.
bool is_of_table(std::string_view provider) {
  return provider == "aws" || provider == "gcp" || provider == "azure" || provider == "ibm";
}

/// The machine without the GPUs that are attached to it: "n1-standard-32" of "n1-standard-32+4xV100", "GPU+" of "GPU+".
std::string instance_type(const Launch& launch) {
  const std::size_t plus = launch.instance.find('+');
  const bool attached = plus != std::string::npos && launch.instance.find('x', plus) != std::string::npos;
  return attached ? launch.instance.substr(0, plus) : launch.instance;
}

/// Where to rent which machine.
OrderedJson machine(const Launch& launch) {
  OrderedJson out;
  out["infra"] = infra_of(launch);
  if (!launch.zone.empty() && !infra_of(launch).ends_with(launch.zone))
    out["#zone"] = fmt::format("Simulated in zone {}: a zone's id, whose name differs by account.", launch.zone);
  out["instance_type"] = instance_type(launch);
  const auto* accelerator = std::find_if(std::begin(kAccelerators), std::end(kAccelerators),
                                         [&](const Accelerator& known) { return launch.gpu == known.ours; });
  const int gpus = launch.instance_gpus > 0 ? launch.instance_gpus : launch.gpus_per_node;
  // SkyPilot gives the H100s of this machine type a name of their own.
  const bool mega = launch.instance.starts_with("a3-megagpu");
  const std::size_t attached = launch.instance.find('x', instance_type(launch).size());
  // Other clouds call the same GPUs by names of their own, which their instance types imply.
  if (!is_of_table(launch.provider)) {
    if (attached != std::string::npos)
      out["accelerators"] = fmt::format("{}:{}", launch.instance.substr(attached + 1), gpus);
  } else if (accelerator != std::end(kAccelerators))
    out["accelerators"] = fmt::format("{}:{}", mega ? "H100-MEGA" : accelerator->theirs, gpus);
  return out;
}

/// The places that the task may run in, the chosen one first: those of the plan that SkyPilot rents from, and where it
/// takes the same task.
std::vector<const Launch*> places_of(const Launch& launch, std::size_t most) {
  std::vector<const Launch*> places = {&launch};
  const Refused here = refused_on(launch.provider);
  for (const Launch& other : launch.others) {
    const Refused there = refused_on(other.provider);
    const bool same = here.images == there.images && here.buckets == there.buckets &&
                      (launch.nodes == 1 || here.several_nodes == there.several_nodes);
    if (places.size() < most && same && !platforms::sky_cloud_of(other.provider).empty()) places.push_back(&other);
  }
  return places;
}

OrderedJson resources(const Launch& launch, const SkypilotOptions& options) {
  const std::vector<const Launch*> places = places_of(launch, static_cast<std::size_t>(options.places));
  const bool one = places.size() == 1;
  OrderedJson out = one ? machine(launch) : OrderedJson::object();
  if (launch.falls_back())
    out["#market"] = fmt::format(
        "Spot, and on demand where spot has none, as in the policy {}. Unlike that, SkyPilot does not return to spot "
        "while nodes on demand last.",
        launch.policy);
  if (!one)
    out["#places"] = "SkyPilot tries the cheapest first, by its own prices, and the others where that has none.";
  if (!one || launch.falls_back()) {
    out["any_of"] = OrderedJson::array();
    for (const Launch* place : places)
      for (const bool spot : {true, false}) {
        if (!launch.falls_back() && spot != launch.spot()) continue;
        OrderedJson way = one ? OrderedJson::object() : machine(*place);
        way.erase("#zone");
        way["use_spot"] = spot;
        out["any_of"].push_back(std::move(way));
      }
  } else {
    out["use_spot"] = launch.spot();
  }
  if (launch.market.starts_with("reserved"))
    out["#reserved"] = fmt::format(
        "Simulated at the price {}: what is reserved SkyPilot uses only if it is told "
        "(~/.sky/config.yaml).",
        launch.market);
  out["disk_size"] = options.disk_gb;
  if (!options.image.empty()) out["image_id"] = "docker:" + options.image;
  // The region stays the one whose price was simulated, if there is one; the default strategy would leave it.
  if (launch.spot())
    out["job_recovery"] = {{"strategy", one ? "FAILOVER" : "EAGER_NEXT_REGION"}, {"max_restarts_on_errors", 3}};
  return out;
}

OrderedJson file_mounts(const Launch& launch, const SkypilotOptions& options, const std::string& name) {
  OrderedJson out = OrderedJson::object();
  if (!refused_on(launch.provider).buckets) {
    out["#checkpoints"] =
        "Checkpoints survive the nodes in this bucket, whose name must be free in the whole cloud: change it if it is "
        "not.\nMOUNT_CACHED, because a checkpoint is renamed when it is whole.";
    out[kCheckpoints] = {{"name", name + "-checkpoints"}};
    // Without a store SkyPilot takes one that it has access to.
    if (const std::string_view store = platforms::provider_of(launch.provider).store; !store.empty())
      out[kCheckpoints]["store"] = store;
    out[kCheckpoints]["mode"] = "MOUNT_CACHED";
  }
  if (options.dataset != "builtin") out[kData] = options.dataset;
  return out;
}

/// Open MPI reaches the other nodes by SSH with the key that SkyPilot puts on them; in a container its sshd listens on
/// port 10022 (sky/skylet/constants.py).
std::string mpirun_script(const SkypilotOptions& options) {
  std::string out =
      "# Processes on all nodes are started by mpirun on the first.\n"
      "if [ \"$NODE_RANK\" != 0 ]; then exit 0; fi\n"
      "hosts=\"$(printf '%s\\n' \"$SKYPILOT_NODE_IPS\" | sed \"s/\\$/:$NUM_GPUS_PER_NODE/\" | paste -sd, -)\"\n"
      "key=\"$HOME/.ssh/id_rsa\"\n"
      "for other in sky-key sky-cluster-key; do\n"
      "  if [ -f \"$HOME/.ssh/$other\" ]; then key=\"$HOME/.ssh/$other\"; fi\n"
      "done\n"
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
  return out + fmt::format("ssh_options=\"-i $key{} -o BatchMode=yes -o StrictHostKeyChecking=no\"\n",
                           options.image.empty() ? "" : " -p 10022");
}

std::string run_script(const Launch& launch, const SkypilotOptions& options, const TrainCommand& command) {
  std::string out =
      "set -euo pipefail\n"
      "MASTER_ADDR=\"$(printf '%s\\n' \"$SKYPILOT_NODE_IPS\" | head -n 1)\"\n"
      "export MASTER_ADDR MASTER_PORT=29500\n"
      "export NODE_RANK=\"$SKYPILOT_NODE_RANK\" NUM_NODES=\"$SKYPILOT_NUM_NODES\"\n";
  out += launch.cpu || launch.instance_gpus > launch.gpus_per_node
             ? fmt::format("export NUM_GPUS_PER_NODE={}\n", launch.gpus_per_node)
             : "export NUM_GPUS_PER_NODE=\"$SKYPILOT_NUM_GPUS_PER_NODE\"\n";
  std::string prefix;
  if (command.own.empty() && launch.nodes > 1) {
    out += mpirun_script(options);
    prefix = "mpirun --host \"$hosts\" -np \"$((NUM_NODES * NUM_GPUS_PER_NODE))\" --mca plm_rsh_args \"$ssh_options\"";
    if (train_environment(launch, command).contains("NCCL_ALGO")) prefix += " -x NCCL_ALGO";
  }
  return out + train_line(launch, command, prefix);
}

/// Throws ConfigError if SkyPilot does not rent there, or not as many nodes.
void check_place(const Launch& launch) {
  const std::string cloud = cloud_of(launch);
  if (launch.nodes > 1 && refused_on(launch.provider).several_nodes)
    throw ConfigError(
        fmt::format("{}: runs on {} nodes of {}, where SkyPilot rents single nodes only; expected a result on one node "
                    "or on another cloud",
                    launch.source, launch.nodes, cloud));
}

/// What the cloud keeps SkyPilot from doing for this task.
std::vector<std::string> refusals(const Launch& launch) {
  const Refused refused = refused_on(launch.provider);
  std::vector<std::string> out;
  if (refused.images)
    out.push_back(fmt::format(
        "SkyPilot runs no container on {}: the machine's own image is used, and --setup must install what the training "
        "needs.",
        launch.provider));
  if (refused.buckets)
    out.push_back(
        fmt::format("SkyPilot mounts no bucket on {}: checkpoints lie on the node's disk and are gone with it{}.",
                    launch.provider, launch.spot() ? ", also after an interruption" : ""));
  return out;
}

std::string setup_script(const SkypilotOptions& options) {
  if (!options.setup.empty()) return "set -e\nbash -c \"$SETUP_COMMAND\"\n";
  if (options.command.empty()) return "set -e\nganymede doctor\n";
  return "set -e\nif [ -f requirements.txt ]; then pip install -r requirements.txt; fi\n";
}

}  // namespace

std::string skypilot_task(const Launch& launch, const SkypilotOptions& options) {
  check_place(launch);  // before anything else is checked
  if (!options.name.empty()) check_label("--name", options.name, kMaxTaskName);
  const std::string name =
      options.name.empty() ? label_of(launch.model + "-" + launch.instance, kMaxTaskName) : options.name;
  const TrainCommand command{options.command, options.dataset == "builtin" ? "builtin" : kData, kCheckpoints};

  OrderedJson task;
  task["#head"] = launch_summary(launch, command) +
                  (launch.spot() ? "Launch with: sky jobs launch task.yaml (a managed job: it comes back after an "
                                   "interruption)"
                                 : "Launch with: sky launch task.yaml (afterwards: sky down)");
  task["name"] = name;
  if (!options.command.empty()) {
    task["#workdir"] = "Copied to the nodes; the command runs there.";
    task["workdir"] = ".";
  }
  if (const auto lacks = refusals(launch); !lacks.empty()) task["#refused"] = fmt::format("{}", fmt::join(lacks, "\n"));
  task["num_nodes"] = launch.nodes;
  if (!options.image.empty() && options.command.empty())
    task["#image"] =
        "image_id: a Debian image with ganymede (the GPU backend and MPI built in) and an SSH server; none is "
        "published, --image names yours.";
  task["resources"] = resources(launch, options);
  task["envs"] = train_environment(launch, command);
  if (!options.setup.empty()) task["envs"]["SETUP_COMMAND"] = options.setup;
  if (OrderedJson mounts = file_mounts(launch, options, name); !mounts.empty()) task["file_mounts"] = std::move(mounts);
  task["setup"] = setup_script(options);
  task["run"] = run_script(launch, options, command);
  return write_yaml(task);
}

Exporter skypilot_exporter() {
  return {
      .name = "skypilot",
      .summary = "a SkyPilot task that rents what was simulated and trains there",
      .examples =
          "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --save plan.json\n"
          "  ganymede export skypilot plan.json --image registry/ganymede -o task.yaml && sky launch task.yaml\n"
          "  ganymede export skypilot sweep.json --run 3 --dataset s3://my-bucket/celeba -o task.yaml\n"
          "  ganymede export skypilot result.json --command 'torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK "
          "--nproc-per-node $NUM_GPUS_PER_NODE --master-addr $MASTER_ADDR train.py' -o task.yaml\n",
      .about =
          "The task has the cloud, region, instance type, nodes and market that were simulated. It trains with\n"
          "ganymede train or with a command of your own; its comments say what differs from the simulation.",
      .reads = {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan},
      .options = launch_options(
          {{.name = "image", .summary = "container image; default: a placeholder, or with --command SkyPilot's own"},
           {.name = "setup", .summary = "a line for bash that prepares each node"},
           {.name = "dataset",
            .summary = "a local folder or a bucket, as s3://bucket/folder; or builtin",
            .default_value = "builtin"},
           {.name = "places",
            .summary = "of a plan: in how many of its places (regions of clouds) the task may run, the chosen one and "
                       "the cheapest others that run the same training within its goals",
            .kind = ExportOption::Kind::integer,
            .default_value = "1",
            .min = 1,
            .max = 100}}),
      .write = [](const report::Document& document, const ExportValues& values, const ExportConsole& console) {
        const Launch launch = launch_of(document, values, console);
        check_place(launch);
        const std::size_t asked = static_cast<std::size_t>(values.integer("places"));
        const std::size_t all = places_of(launch, 100).size();
        if (asked > all)
          throw ConfigError(fmt::format("--places {}: {} has {} in which SkyPilot can run this training", asked,
                                        launch.source, counted(all, "place")));
        if (asked == 1 && all > 1)
          console.remark(fmt::format("the plan's goals are met in {} too: --places {} lets SkyPilot run there",
                                     counted(all - 1, "other place"), all));
        const bool takes_image = !refused_on(launch.provider).images;
        if (!takes_image && !values.text("image").empty())
          throw ConfigError(fmt::format(
              "--image {}: SkyPilot runs no container on {}; without --image the task uses the machine's own "
              "image, and --setup must install what the training needs",
              values.text("image"), launch.provider));
        for (const std::string& lacks : refusals(launch)) console.remark(lacks);
        const bool needs_image = takes_image && values.text("image").empty() && values.text("command").empty();
        return skypilot_task(launch, {.name = values.text("name"),
                                      .command = values.text("command"),
                                      .image = values.text("image").empty() && !needs_image ? "" : image_of(values),
                                      .setup = values.text("setup"),
                                      .dataset = values.text("dataset"),
                                      .disk_gb = values.integer("disk"),
                                      .places = values.integer("places")});
      }};
}

}  // namespace ganymede::exports

// ganymede export skypilot and kubernetes: files that rent what was simulated and train on it.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "common/errors.hpp"
#include "kernel/models/models.hpp"
#include "report/kubernetes.hpp"
#include "report/skypilot.hpp"
#include "report/yaml.hpp"

namespace ganymede::cli {
namespace {

constexpr const char* kPlaceholder = "ganymede:" GANYMEDE_VERSION;

struct LaunchOptions {
  std::string document, name, image, command, setup, dataset = "builtin", kind = "job";
  std::optional<std::size_t> run;
  int disk_gb = 256;
};

Launch launch_of(const LaunchOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.document);
  const Document document = load_document(options.document);
  Launch launch = read_launch(document, options.run);
  if (document.kind == DocumentKind::sweep && !options.run)
    remark(shared, fmt::format("taking {}: the cheapest that met its goals, {} x {} on {} {}; --run takes another",
                               launch.source, launch.nodes, launch.instance, launch.provider, launch.region));
  const auto models = kernel::models();
  const bool ours = std::any_of(models.begin(), models.end(), [&](const auto& of) { return of.name == launch.model; });
  if (options.command.empty() && !ours)
    throw ConfigError(
        fmt::format("{}: is of {}, which is no model of ganymede train; --command says how it is "
                    "trained, as --command 'python train.py'",
                    options.document, yaml_string(launch.model)));
  return launch;
}

/// Of both commands.
void add_launch_options(CLI::App& command, LaunchOptions& options, Shared& shared) {
  command
      .add_option("document", options.document,
                  "a result, a sweep or a plan: what simulate, sweep or plan wrote with --format json")
      ->required();
  command
      .add_option("--run", options.run,
                  "of a sweep: which run, as in its /runs, from 0; default: the cheapest that met its goals")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--name", options.name, "of what is made; default: model and instance");
  command.add_option("--command", options.command, "what trains, instead of ganymede train: a line for bash");
  command.add_option("--disk", options.disk_gb, "GB for data and checkpoints")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  add_output(command, shared);
}

void add_skypilot(CLI::App& exports, Shared& shared) {
  auto options = std::make_shared<LaunchOptions>();
  auto* command = exports.add_subcommand(
      "skypilot",
      "a SkyPilot task that rents what was simulated and trains there\n"
      "Examples:\n"
      "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --save plan.json\n"
      "  ganymede export skypilot plan.json --image registry/ganymede -o task.yaml && sky launch task.yaml\n"
      "  ganymede export skypilot sweep.json --run 3 --dataset s3://my-bucket/celeba -o task.yaml\n"
      "  ganymede export skypilot result.json --command 'torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK "
      "--nproc-per-node $NUM_GPUS_PER_NODE --master-addr $MASTER_ADDR train.py' -o task.yaml\n"
      "\n"
      "A SkyPilot task for what was simulated: cloud, region, instance, spot, nodes. It trains with ganymede train or\n"
      "a command of your own; comments in it say what differs from the simulation.");
  add_launch_options(*command, *options, shared);
  command->add_option("--image", options->image,
                      "container image; default: a placeholder, with --command SkyPilot's own");
  command->add_option("--setup", options->setup, "a line for bash that prepares each node");
  command->add_option("--dataset", options->dataset, "a folder here or a bucket, as s3://bucket/folder; or builtin")
      ->capture_default_str();
  command->callback([options, &shared] {
    const Launch launch = launch_of(*options, shared);
    const bool placeholder = options->image.empty() && options->command.empty();
    emit(shared, skypilot_task(launch, {.name = options->name,
                                        .command = options->command,
                                        .image = placeholder ? kPlaceholder : options->image,
                                        .setup = options->setup,
                                        .dataset = options->dataset,
                                        .disk_gb = options->disk_gb}));
  });
}

void add_kubernetes(CLI::App& exports, Shared& shared) {
  auto options = std::make_shared<LaunchOptions>();
  auto* command = exports.add_subcommand(
      "kubernetes",
      "manifests of a Job or JobSet that trains on nodes as simulated\n"
      "Examples:\n"
      "  ganymede export kubernetes plan.json --image registry/ganymede -o manifests.yaml\n"
      "  kubectl apply -f manifests.yaml\n"
      "  ganymede export kubernetes result.json --kind jobset --command 'python train.py' --image pytorch/pytorch\n"
      "\n"
      "Manifests for what was simulated: a claim for data and checkpoints, a Job (one pod a node, indexed) with its\n"
      "Service or a JobSet, and a Deployment that shows the checkpoint. Node selectors are those of EKS, GKE and AKS.");
  add_launch_options(*command, *options, shared);
  command->add_option("--image", options->image, "container image; default: a placeholder");
  command->add_option("--kind", options->kind, "job, or jobset: needs the JobSet controller")
      ->check(CLI::IsMember({"job", "jobset"}))
      ->capture_default_str();
  command->add_option("--dataset", options->dataset, "a folder in the claim, or builtin")->capture_default_str();
  command->callback([options, &shared] {
    const Launch launch = launch_of(*options, shared);
    emit(shared, kubernetes_manifests(launch, {.name = options->name,
                                               .jobset = options->kind == "jobset",
                                               .image = options->image.empty() ? kPlaceholder : options->image,
                                               .placeholder = options->image.empty(),
                                               .command = options->command,
                                               .dataset = options->dataset,
                                               .disk_gb = options->disk_gb}));
  });
}

}  // namespace

void add_export_launch(CLI::App& exports, Shared& shared) {
  add_skypilot(exports, shared);
  add_kubernetes(exports, shared);
}

}  // namespace ganymede::cli

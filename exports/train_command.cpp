// The training that a launch file starts: environment, shell lines, and how it differs from the simulation.

#include <fmt/format.h>

#include <cmath>

#include "common/json_value.hpp"
#include "exports/launch.hpp"
#include "report/numbers.hpp"

namespace ganymede::exports {
namespace {

/// Steps between two checkpoints if the document does not say: the default of `ganymede train`.
constexpr std::int64_t kCheckpointEvery = 1000;
/// The most steps that `ganymede train` accepts (kernel/train.hpp).
constexpr std::int64_t kMaxSteps = 1'000'000'000;

/// The value of NCCL_ALGO (NCCL's environment variable) for a scheme that NCCL has; empty: NCCL chooses.
std::string nccl_algorithm(const Launch& launch) {
  if (launch.scheme == "ring" || launch.scheme == "multi-ring") return "Ring";
  if (launch.scheme == "tree" || launch.scheme == "double-binary-tree") return "Tree";
  return "";
}

bool has_precision(const Launch& launch) {
  return !launch.cpu && (launch.precision == "tf32" || launch.precision == "bf16" || launch.precision == "fp32");
}

bool forces_algorithm(const Launch& launch) {
  return !launch.cpu && launch.gpus() > 1 && !nccl_algorithm(launch).empty();
}

std::int64_t checkpoint_every(const Launch& launch) {
  return launch.checkpoint_every > 0 ? launch.checkpoint_every : kCheckpointEvery;
}

/// "; simulated: 1:00:00, 7.35 USD". If several seeds were simulated, their median and interval instead: one seed may
/// have been lucky.
std::string simulated(const Launch& launch) {
  if (!launch.seeds)
    return fmt::format("; simulated: {}, {} USD", report::clock(launch.time_s), report::usd(launch.usd));
  const documents::SeedRuns& seeds = *launch.seeds;
  std::string out;
  const auto say = [&](const SeedQuantiles& quantiles, auto&& shown, const char* unit) {
    if (std::isfinite(quantiles.median) && std::isfinite(quantiles.low) && std::isfinite(quantiles.high))
      out += fmt::format("{}{} ({}){}", out.empty() ? "" : ", ", shown(quantiles.median),
                         report::range(quantiles.low, quantiles.high, shown), unit);
  };
  say(seeds.time_s, report::clock, "");
  say(seeds.usd, report::usd, " USD");
  std::string counted = fmt::format("; {} of {} seeds meet the goals", seeds.met, seeds.count);
  if (seeds.finished < seeds.count) counted += fmt::format(", {} never finish", seeds.count - seeds.finished);
  return fmt::format("; simulated with {} seeds{}{}{}", seeds.count, out.empty() ? "" : ", median and interval: ", out,
                     counted);
}

}  // namespace

OrderedJson train_environment(const Launch& launch, const TrainCommand& command) {
  OrderedJson out;
  if (!command.own.empty()) out["TRAIN_COMMAND"] = command.own;
  out["MODEL"] = launch.model;
  out["DATASET"] = command.dataset;
  out["BATCH_PER_GPU"] = std::to_string(launch.batch_per_gpu);
  out["STEPS"] = std::to_string(std::min(launch.steps, kMaxSteps));
  out["SEED"] = std::to_string(launch.seed);
  out["CHECKPOINT_DIR"] = command.folder;
  out["CHECKPOINT_EVERY"] = std::to_string(checkpoint_every(launch));
  if (has_precision(launch)) out["PRECISION"] = launch.precision;
  if (forces_algorithm(launch)) out["NCCL_ALGO"] = nccl_algorithm(launch);
  return out;
}

std::string train_line(const Launch& launch, const TrainCommand& command, const std::string& prefix) {
  if (!command.own.empty()) return "exec bash -c \"$TRAIN_COMMAND\"\n";
  // exec: the training itself must receive the signal that ends a pod, because it then writes a checkpoint.
  std::string line = prefix.empty() ? "exec " : prefix + " \\\n  ";
  line += "\"$(command -v ganymede)\" train --model \"$MODEL\" --dataset \"$DATASET\" --batch \"$BATCH_PER_GPU\"";
  line += " \\\n  --steps \"$STEPS\" --seed \"$SEED\"";
  line += launch.cpu ? " --backend cpu" : " --backend cuda";
  // Several processes take one GPU each.
  if (!launch.cpu && prefix.empty()) line += " --gpus \"$NUM_GPUS_PER_NODE\"";
  if (has_precision(launch)) line += " --precision \"$PRECISION\"";
  return line + " \\\n  --checkpoint \"$CHECKPOINT_DIR\" --checkpoint-every \"$CHECKPOINT_EVERY\" --resume\n";
}

namespace {

/// Sentences that say how the launched training differs from the simulated one.
std::vector<std::string> launch_remarks(const Launch& launch, const TrainCommand& command) {
  std::vector<std::string> out;
  const auto remark = [&](const std::string& text) { out.push_back(text); };
  const bool own = !command.own.empty();
  if (own)
    remark(
        "The command finds MASTER_ADDR, MASTER_PORT, NODE_RANK, NUM_NODES and NUM_GPUS_PER_NODE in its environment; "
        "that it trains the same model with the same batch is its own affair.");
  if (launch.mode != "all-reduce" && !launch.mode.empty())
    remark(fmt::format("Simulated with mode {}; {} reduces gradients in every step.", launch.mode,
                       own ? "unless the command does the same, this" : "ganymede train"));
  if (launch.placement != "data-parallel" && !launch.placement.empty())
    remark(
        fmt::format("Simulated with placement {}; here every GPU has a replica of both networks.", launch.placement));
  if (const std::int64_t all = launch.gpus() * std::int64_t{launch.batch_per_gpu};
      launch.global_batch > 0 && launch.global_batch < all)
    remark(fmt::format("Simulated with {} images a step that count; here {} do, and as many images take fewer steps.",
                       launch.global_batch, all));
  if (launch.policy != "fixed" && !launch.policy.empty())
    remark(fmt::format("Simulated with policy {}, which may change what is rented; here the {} node{} asked for stay.",
                       launch.policy, launch.nodes, launch.nodes == 1 ? "" : "s"));
  if (launch.gpus() > 1 && !own) {
    if (forces_algorithm(launch))
      remark(fmt::format("Simulated with scheme {}: NCCL_ALGO={}.", launch.scheme, nccl_algorithm(launch)));
    else if (launch.scheme != "nccl" && !launch.scheme.starts_with("nccl:"))
      remark(fmt::format("Simulated with scheme {}, which {} does not have: it takes its own.", launch.scheme,
                         launch.cpu ? "MPI cannot be told and perhaps" : "NCCL"));
  }
  if (launch.instance_gpus > launch.gpus_per_node)
    remark(fmt::format("Of the {} GPUs of {} {} train.", launch.instance_gpus, launch.instance, launch.gpus_per_node));
  if (launch.steps > kMaxSteps)
    remark(fmt::format("{} steps were simulated; ganymede train takes {} at most.", launch.steps, kMaxSteps));
  if (!own) {
    remark(launch.checkpoint_every > 0
               ? fmt::format("Checkpoints every {} steps, about as often as simulated.", launch.checkpoint_every)
               : fmt::format("No interval of checkpoints in steps is known from the simulation: every {} steps.",
                             kCheckpointEvery));
    remark("Loss and learning rates are the model's defaults.");
    if (command.dataset == "builtin" && !launch.dataset.empty() && launch.dataset != "builtin")
      remark(
          fmt::format("Simulated with the dataset {}; --dataset says where it is, without it the built-in images "
                      "are taken.",
                      launch.dataset));
  }
  return out;
}

}  // namespace

std::string launch_summary(const Launch& launch, const TrainCommand& command) {
  std::string out = fmt::format("{} on {} x {} ({}, {} {}, {}): {} GPU{} x batch {}, {} steps, {} images.\nFrom {}",
                                launch.model, launch.nodes, launch.instance, launch.gpu, launch.provider, launch.region,
                                launch.market, launch.gpus(), launch.gpus() == 1 ? "" : "s", launch.batch_per_gpu,
                                launch.steps, launch.images, launch.source);
  out += simulated(launch) + ". Quota and availability are not known.\n";
  for (const std::string& remark : launch_remarks(launch, command)) out += "- " + remark + "\n";
  return out;
}

}  // namespace ganymede::exports

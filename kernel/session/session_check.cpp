#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/plain_text.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/session/session.hpp"
#include "traces/quality_curve.hpp"

namespace ganymede::kernel {
namespace {

void check_measurements(const SessionOptions& options) {
  if (options.samples_every < 0 || (options.samples_every > 0 && options.samples.empty()))
    throw ConfigError(fmt::format("--samples-every: found {}, expected 1 or more, and --samples with the file's name",
                                  options.samples_every));
  if (options.quality != 0 && find_model(options.train.model).build_default().takes_images())
    throw ConfigError(fmt::format("--quality: found {}, expected none: {} draws no images from random numbers",
                                  options.quality, options.train.model));
  if (options.quality_every < 0 || (options.quality_every > 0 && options.quality == 0))
    throw ConfigError(
        fmt::format("--quality-every: found {}, expected 1 or more, and --quality with the number of images",
                    options.quality_every));
  if (!options.quality_curve.empty() && options.quality_every == 0)
    throw ConfigError("--quality-curve: expected --quality and --quality-every too: a curve has several points");
  if (!options.features.empty() && options.quality == 0)
    throw ConfigError(
        fmt::format("--features: found {}, expected --quality with the number of images too", options.features));
}

void check_checkpoints(const SessionOptions& options) {
  if (options.checkpoint_every < 1)
    throw ConfigError(fmt::format("--checkpoint-every: found {}, expected 1 or more", options.checkpoint_every));
  if (options.checkpoint.empty()) {
    if (options.resume) throw ConfigError("--resume: expected --checkpoint with the directory to go on from");
    return;
  }
  if (options.resume && !options.init.empty())
    throw ConfigError("--init: a resumed training has its weights from the checkpoint; expected one of the two");
  if (options.resume && !options.trace.empty())
    throw ConfigError("--trace: a resumed training has no trace of its first steps; record one without --resume");
  refuse_earlier_checkpoints(options);
  check_checkpoint_directory(options.checkpoint);
}

/// True if the training writes the picture of a step to this path, by its name or by a link that is there.
bool is_name_of_samples(const SessionOptions& options, const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (options.samples_every == 0) return false;
  const auto leads_here = [&](const fs::path& name) {
    const std::string stem = name.stem().string();
    const auto step = parse_number<std::int64_t>(std::string_view(stem).substr(stem.rfind('-') + 1));
    return step && *step % options.samples_every == 0 && *step < options.steps &&
           fs::path(name_at_step(options.samples, *step)).filename() == name.filename() &&
           written_path(name_at_step(options.samples, *step)) == path;
  };
  std::error_code failed;
  const fs::path folder = fs::path(options.samples).parent_path();
  fs::directory_iterator entry(folder.empty() ? "." : folder, failed);
  return leads_here(path) || std::any_of(fs::begin(entry), fs::end(entry), leads_here);
}

std::string shared_text(const std::optional<float>& value) { return value ? fmt::format("{}", *value) : ""; }

/// The options that all processes share, as text. Where files are read or written, and with how many threads, may
/// differ.
NamedValues shared_options(const SessionOptions& options) {
  const TrainOptions& train = options.train;
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"--model", train.model},
          {"--image", train.image},
          {"--steps", text(options.steps)},
          {"--batch", text(train.batch)},
          {"--seed", text(train.seed)},
          {"--lr", shared_text(train.learning_rate)},
          {"--beta1", shared_text(train.beta1)},
          {"--beta2", shared_text(train.beta2)},
          {"--epsilon", shared_text(train.epsilon)},
          {"--ema", text(train.average_decay)},
          {"--loss", train.loss},
          {"--stage-steps", text(train.stage_steps)},
          {"--d-steps", text(train.discriminator_steps)},
          {"--precision", train.precision},
          {"--activations", train.activations},
          {"--recompute", text(train.recompute)},
          {"--compression", train.compression},
          {"--sync-batch-norm", text(train.synchronized_norm)},
          {"--host-random", text(train.host_random)},
          {"--resume", text(options.resume)},
          {"--init", text(!options.init.empty())}};
}

}  // namespace

std::string name_at_step(const std::filesystem::path& file, std::int64_t step) {
  return (file.parent_path() / fmt::format("{}-{:06}{}", file.stem().string(), step, file.extension().string()))
      .string();
}

void check(const SessionOptions& options, const std::string& report_file) {
  check(options.train);
  check_measurements(options);
  check_checkpoints(options);
  const std::int64_t max_steps = options.trace.empty() ? kMaxSteps : kMaxTracedSteps;
  if (options.steps < 1 || options.steps > max_steps)
    throw ConfigError(fmt::format("--steps: found {}, expected 1 to {}{}", options.steps, max_steps,
                                  options.trace.empty() ? "" : " with --trace, which keeps every step"));
  namespace fs = std::filesystem;
  std::set<fs::path> outputs;  // however they are written
  for (const auto& file :
       {options.samples, options.weights, options.trace, options.quality_curve, options.metrics, report_file}) {
    if (file.empty()) continue;
    std::error_code failed;
    const fs::path path = written_path(file);
    const bool is_stream = fs::exists(file, failed) && !fs::is_regular_file(file, failed);
    if (!is_stream && !outputs.insert(path).second)
      throw ConfigError(fmt::format("{}: found twice as an output, expected once", file));
    if (!options.checkpoint.empty() && is_name_of_checkpoints(path.filename().string()) &&
        path.parent_path() == written_path(options.checkpoint))
      throw ConfigError(
          fmt::format("{}: found a name that --checkpoint gives to its own files, expected another", file));
    if (!is_stream && is_name_of_samples(options, path))
      throw ConfigError(
          fmt::format("{}: found a name that --samples-every gives to a picture, expected another", file));
    check_writable(file);
  }
  if (options.quality_curve.empty() || !std::filesystem::exists(options.quality_curve)) return;
  const std::string model = traces::read_quality_curves(JsonNode::load(options.quality_curve)).model;
  if (model != options.train.model)
    throw ConfigError(fmt::format("--quality-curve: {} is of {}, this training of {}", options.quality_curve, model,
                                  options.train.model));
}

void refuse_earlier_checkpoints(const SessionOptions& options) {
  if (!options.resume && has_checkpoints(options.checkpoint))
    throw ConfigError(
        fmt::format("--checkpoint: {}: found checkpoints of an earlier training; --resume goes on from "
                    "them, another directory keeps them",
                    options.checkpoint));
}

void check_gpus(const SessionOptions& options) {
  if (options.gpus == 1) return;
  const Gpus found = count_gpus();
  if (options.train.backend == "cpu" || found.count < options.gpus || options.gpus < 1)
    throw ConfigError(fmt::format("--gpus: found {}, expected 1{}", options.gpus,
                                  options.train.backend == "cpu" ? " with --backend cpu"
                                  : found.count > 0              ? fmt::format(" to {}", found.count)
                                                                 : " here: " + found.why_none));
  if (launched_processes() > 1)
    throw ConfigError(fmt::format(
        "--gpus: found {} in each of several processes, expected 1: each takes a GPU of its own", options.gpus));
}

void check_replicas(const SessionOptions& options, int replicas) {
  if (replicas == 1 && (options.train.compression != "none" || options.train.synchronized_norm))
    throw ConfigError(
        "--compression, --sync-batch-norm: found one process, expected several: mpirun -n 2 ganymede train ...");
  if (replicas > 1 && !options.trace.empty())
    throw ConfigError(
        "--trace: found several processes, expected one: a trace is of one replica, and simulate adds the network");
}

void check_same_options(const SessionOptions& options, Communicator& communicator) {
  check_same_values(shared_options(options), communicator);
}

}  // namespace ganymede::kernel

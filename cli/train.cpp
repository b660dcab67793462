// ganymede train: trains a GAN, and writes samples, weights, checkpoints and the step trace.

#include "kernel/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "cli/command.hpp"
#include "cli/device_options.hpp"
#include "cli/layer_lists.hpp"
#include "cli/metrics_log.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/same_options.hpp"
#include "cli/train_checkpoint.hpp"
#include "cli/train_elastic.hpp"
#include "cli/train_options.hpp"
#include "cli/train_report.hpp"
#include "cli/training_line.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/describe.hpp"
#include "kernel/image_grid.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/thread_group.hpp"
#include "kernel/quality/quality.hpp"
#include "kernel/weights.hpp"

namespace ganymede::cli {
namespace {

using kernel::Progress;
using kernel::Trainer;
using Arguments = TrainArguments;
using Report = TrainReport;

constexpr int kSamples = 64;
constexpr std::size_t kReports = 10;  // number of steps whose losses are reported

/// Set by SIGINT and SIGTERM: the training ends after the current step.
volatile std::sig_atomic_t stop_asked = 0;

/// How a signal ended the program before the training began: what it is writing is removed.
void (*usual_interrupt)(int) = SIG_DFL;
void (*usual_end)(int) = SIG_DFL;

/// While it lives, the signals set stop_asked. After it the first signal lets the program write what it has trained,
/// which is what it would be stopped for, and the second ends it as usual.
class StopOnSignals {
 public:
  StopOnSignals() {
    const auto interrupt = std::signal(SIGINT, ask), end = std::signal(SIGTERM, ask);
    // A replica in another thread may have been first.
    if (interrupt != ask && interrupt != write_first) usual_interrupt = interrupt;
    if (end != ask && end != write_first) usual_end = end;
  }
  ~StopOnSignals() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, write_first);
  }
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  static void ask(int /*signal*/) { stop_asked = 1; }
  static void write_first(int signal) { std::signal(signal, signal == SIGINT ? usual_interrupt : usual_end); }
};

struct Stopped {};

/// Sets the steps of each stage of a growing model, unless the user or the checkpoint to resume from sets them: the
/// model then reaches its full size within the training.
void choose_stage_steps(Arguments& arguments) {
  const kernel::Model& model = kernel::find_model(arguments.options.model);
  if (!model.grows() || arguments.options.stage_steps > 0) return;
  std::vector<std::string> damaged;
  if (arguments.resume)
    if (const auto found = kernel::last_checkpoint(arguments.checkpoint, damaged)) {
      arguments.options.stage_steps = found->metadata().number("stage-steps", 0);
      return;
    }
  const std::int64_t parts = 2 * std::int64_t{model.stages(kernel::image_of(arguments.options))} - 1;
  arguments.options.stage_steps = std::max<std::int64_t>(1, arguments.steps / parts);
}

void check_arguments(const Arguments& arguments, const Shared& shared) {
  check_trainable(arguments.options.model);
  kernel::check(arguments.options);
  check_checkpoint(arguments);
  const std::int64_t max_steps = arguments.trace.empty() ? kernel::kMaxSteps : kernel::kMaxTracedSteps;
  if (arguments.steps < 1 || arguments.steps > max_steps)
    throw ConfigError(fmt::format("--steps: found {}, expected 1 to {}{}", arguments.steps, max_steps,
                                  arguments.trace.empty() ? "" : " with --trace, which keeps every step"));
  std::set<std::string> outputs;
  for (const auto& file : {arguments.samples, arguments.weights, arguments.trace, arguments.quality_curve,
                           arguments.metrics, shared.output}) {
    if (file.empty()) continue;
    if (!outputs.insert(file).second)
      throw ConfigError(fmt::format("{}: found twice as an output, expected once", file));
    check_writable(file);  // now, not after hours of training
  }
  if (!arguments.quality_curve.empty()) check_quality_curve(arguments);
}

void save_checkpoint(Trainer& trainer, const Arguments& arguments) {
  kernel::save_checkpoint(arguments.checkpoint, trainer.steps_done(), trainer.checkpoint());
}

void write_samples(Trainer& trainer, const Arguments& arguments, const std::string& file) {
  trainer.pause();
  const kernel::SingleProcessScope single(trainer.ops());
  write_file(file, kernel::sample_grid(trainer.gan(), trainer.ops(), arguments.options.seed, kSamples));
}

/// The file's name with the step: "dir/samples.png" becomes "dir/samples-000500.png".
std::string name_at_step(const std::filesystem::path& file, std::int64_t step) {
  return (file.parent_path() / fmt::format("{}-{:06}{}", file.stem().string(), step, file.extension().string()))
      .string();
}

/// The log of the first replica; the others write none.
MetricsLog open_log(const Trainer& trainer, const Arguments& arguments) {
  if (trainer.shard().rank > 0) return {"", {}, false};
  return {arguments.metrics,
          {.model = arguments.options.model,
           .device = trainer.backend().info.device,
           .gpus = trainer.shard().ranks,
           .batch = trainer.global_batch(),
           .steps = arguments.steps,
           .first_step = trainer.steps_done()},
          arguments.resume};
}

Report run_training(Trainer& trainer, const Arguments& arguments, const Shared& shared) {
  Report report;
  std::optional<kernel::QualityMeter> meter;
  if (arguments.quality != 0 && trainer.shard().rank == 0) {
    const kernel::SingleProcessScope single(trainer.ops());
    remark(shared, arguments.features.empty() ? "measuring quality by a classifier, which is trained at its first use"
                                              : "measuring quality by " + arguments.features);
    const auto waiting = show_elapsed(shared, "preparing to measure quality");
    meter.emplace(trainer.whole_dataset(), trainer.ops(), arguments.quality, kernel::cache_directory(),
                  arguments.features);
  }
  const auto measure = [&] {
    trainer.pause();
    const kernel::SingleProcessScope single(trainer.ops());
    report.quality.emplace_back(trainer.steps_done(),
                                meter->measure(trainer.gan(), trainer.ops(), arguments.options.seed));
    return report.quality.back().second;
  };
  const std::int64_t first = trainer.steps_done(), steps = arguments.steps - first;
  const bool grows = kernel::find_model(arguments.options.model).grows();
  TrainingLine line(first, arguments.steps, trainer.global_batch(), grows, shared);
  const StopOnSignals signals;
  const std::int64_t interval = std::max<std::int64_t>(1, steps / std::int64_t{kReports});
  report.history.reserve(2 * kReports);
  const auto is_multiple = [](std::int64_t step, std::int64_t of) { return of > 0 && step % of == 0; };
  const auto checkpoints = [&](std::int64_t step) {
    return !arguments.checkpoint.empty() && is_multiple(step, arguments.checkpoint_every);
  };
  const auto pauses = [&](std::int64_t step) {
    return checkpoints(step) || is_multiple(step, arguments.samples_every) ||
           is_multiple(step, arguments.quality_every);
  };
  MetricsLog log = open_log(trainer, arguments);
  const auto after_step = [&](const Progress& progress) {
    line.show(progress);
    log.step(progress);
    if ((progress.step - first) % interval == 0 || progress.step == arguments.steps) report.history.push_back(progress);
    const bool is_last = progress.step == arguments.steps;  // which leaves nothing to stop, nor to go on with
    if (stop_asked != 0 && !is_last) trainer.stop();
    if (trainer.stopping() && !is_last) {
      log.end("stopped", progress.step);
      throw Stopped{};
    }
    if (progress.step == arguments.steps || trainer.shard().rank > 0) return;
    const auto pause = [&](const char* what, const std::function<void()>& work) {
      log.pause(what, progress.step, work);
    };
    if (checkpoints(progress.step)) pause("checkpoint", [&] { save_checkpoint(trainer, arguments); });
    if (is_multiple(progress.step, arguments.samples_every))
      pause("samples", [&] { write_samples(trainer, arguments, name_at_step(arguments.samples, progress.step)); });
    if (is_multiple(progress.step, arguments.quality_every)) log.evaluation(progress.step, measure);
  };
  report.result = trainer.run(steps, after_step, pauses);
  if (meter) log.evaluation(trainer.steps_done(), measure);
  log.end("finished", trainer.steps_done());
  report.allocated_peak_bytes = static_cast<double>(trainer.ops().peak_allocated_bytes());
  report.resident_peak_bytes = peak_resident_bytes();
  return report;
}

/// Continues from the last whole checkpoint; if there is none, says that the training begins. Throws ConfigError if the
/// checkpoint has all the steps already.
void resume(Trainer& trainer, const Arguments& arguments, const Shared& shared) {
  std::vector<std::string> damaged;
  const auto found = kernel::last_checkpoint(arguments.checkpoint, damaged);
  for (const auto& file : damaged) remark(shared, file + "; left aside");
  if (!found) return remark(shared, fmt::format("{}: no checkpoint yet, beginning", arguments.checkpoint));
  trainer.restore(found->content, found->file);
  remark(shared, fmt::format("going on from {}", found->file));
  if (trainer.steps_done() >= arguments.steps)
    throw ConfigError(fmt::format("--steps: found {}, expected more than the {} that {} has done", arguments.steps,
                                  trainer.steps_done(), found->file));
}

void write_outputs(Trainer& trainer, const Arguments& arguments) {
  if (trainer.shard().rank > 0) return;
  if (!arguments.checkpoint.empty()) save_checkpoint(trainer, arguments);
  if (!arguments.samples.empty()) write_samples(trainer, arguments, arguments.samples);
  if (!arguments.weights.empty()) write_file(arguments.weights, kernel::write_weights(trainer.gan(), trainer.ops()));
  if (!arguments.trace.empty())
    write_file(arguments.trace, traces::write_step_trace(trainer.trace(kernel::warmup_of(arguments.steps))));
}

void check_gpus(const Arguments& arguments) {
  if (arguments.gpus == 1) return;
  const kernel::Gpus found = kernel::count_gpus();
  if (arguments.options.backend == "cpu" || found.count < arguments.gpus || arguments.gpus < 1)
    throw ConfigError(fmt::format("--gpus: found {}, expected 1{}", arguments.gpus,
                                  arguments.options.backend == "cpu" ? " with --backend cpu"
                                  : found.count > 0                  ? fmt::format(" to {}", found.count)
                                                                     : " here: " + found.why_none));
  if (kernel::launched_processes() > 1)
    throw ConfigError(fmt::format(
        "--gpus: found {} in each of several processes, expected 1: each takes a GPU of its own", arguments.gpus));
}

/// Throws ConfigError for options that need several replicas, or only one.
void check_replicas(const Arguments& arguments, int replicas) {
  if (replicas == 1 && (arguments.options.compression != "none" || arguments.options.synchronized_norm))
    throw ConfigError(
        "--compression, --sync-batch-norm: found one process, expected several: mpirun -n 2 ganymede train ...");
  if (replicas > 1 && !arguments.trace.empty())
    throw ConfigError(
        "--trace: found several processes, expected one: a trace is of one replica, and simulate adds the network");
}

/// Trains one replica, which may be the only one. Only the first replica prints and writes files.
void train_replica(const Arguments& arguments, Shared& shared, kernel::Communicator* communicator) {
  const bool first = communicator == nullptr || communicator->shard().rank == 0;
  if (!first) shared.quiet = true;
  const auto lock = first ? lock_checkpoints(arguments) : nullptr;
  Trainer trainer(arguments.options, communicator);
  remark(shared, fmt::format("training {} with {}", arguments.options.model, describe_backend(trainer.backend().info)));
  if (!arguments.init.empty()) kernel::read_weights(trainer.gan(), trainer.ops(), arguments.init);
  if (arguments.resume) resume(trainer, arguments, shared);
  Report report;
  try {
    report = run_training(trainer, arguments, shared);
  } catch (const Stopped&) {
    if (!arguments.checkpoint.empty() && trainer.shard().rank == 0) save_checkpoint(trainer, arguments);
    remark(shared, fmt::format("stopped after step {}{}", trainer.steps_done(),
                               arguments.checkpoint.empty() ? "; --checkpoint would have kept it"
                                                            : "; --resume goes on from there"));
    shared.exit_code = ExitCode::interrupted;
    return;
  }
  write_outputs(trainer, arguments);
  if (!arguments.quality_curve.empty() && trainer.shard().rank == 0) add_quality_curve(report, trainer, arguments);
  if (trainer.shard().rank == 0)
    emit(shared, shared.format == "json" ? to_json(report, trainer, arguments) : to_table(report, trainer, arguments));
}

void train(Arguments& arguments, Shared& shared) {
  check_arguments(arguments, shared);
  if (arguments.describe) {
    const auto description = kernel::describe(arguments.options);
    emit(shared, shared.format == "json" ? kernel::to_json(description) : kernel::to_table(description));
    return;
  }
  check_gpus(arguments);
  arguments.options.trace = !arguments.trace.empty();
  choose_stage_steps(arguments);
  if (arguments.gpus > 1) {
    check_replicas(arguments, arguments.gpus);
    kernel::ThreadGroup::run(arguments.gpus, [&](kernel::Communicator& communicator) {
      Arguments mine = arguments;
      mine.options.gpu = communicator.shard().rank;
      Shared own = shared;
      train_replica(mine, own, &communicator);
      if (communicator.shard().rank == 0) shared.exit_code = own.exit_code;
    });
    return;
  }
  const auto communicator = kernel::open_communicator();
  if (communicator != nullptr) check_same_options(arguments, *communicator);
  check_replicas(arguments, communicator == nullptr ? 1 : communicator->shard().ranks);
  if (communicator != nullptr && arguments.options.backend != "cpu")
    arguments.options.gpu = kernel::gpu_of_process(kernel::count_gpus().count);
  train_replica(arguments, shared, communicator.get());
}

void train_as_asked(Parser command, Arguments& arguments, const ElasticOptions& elastic, Shared& shared) {
  if (elastic.policy.empty() && elastic.plan.empty()) return train(arguments, shared);
  check_arguments(arguments, shared);
  train_elastically(command, arguments, elastic, shared);
}

void declare_train(Parser command, Shared& shared) {
  auto arguments = std::make_shared<Arguments>();
  auto elastic = std::make_shared<ElasticOptions>();
  auto& options = arguments->options;
  command.add_option("--model", options.model, "which GAN: see ganymede list models")
      .check(suggest("@models"))
      .capture_default_str();
  command.add_option("--image", options.image,
                     "size of the images as ROWSxCOLUMNSxCHANNELS, for example 32x32x3; default: that of the data set");
  command
      .add_option(
          "--dataset", options.dataset,
          "\"builtin\" (drawn glyphs), or a directory of MNIST IDX files, CIFAR-10 binary files, or PNG and JPEG")
      .check(suggest("builtin @files"))
      .capture_default_str();
  command.add_option("--steps", arguments->steps, "steps to train, such as 10000 or 10k")
      .transform(positive_count())
      .capture_default_str();
  command.add_option("--batch", options.batch, "images in a step of each process").capture_default_str();
  add_device_options(command, options);
  command.add_flag("--host-random", options.host_random,
                   "draw a GPU's random numbers on the host, as the CPU backend does, so that both can be compared");
  command
      .add_option("--gpus", arguments->gpus,
                  "replicas, one for each GPU of this machine; each has a --batch of its own")
      .capture_default_str();
  add_learning_options(command, options);
  command
      .add_option("--prefetch", options.loader.prefetch, "batches that are prepared while a step is computed; 0: none")
      .capture_default_str();
  command.add_option("--loader-threads", options.loader.threads, "threads that decode and gather these batches")
      .capture_default_str();
  command.add_flag("!--no-image-cache", options.image_cache, "decode pictures in every epoch instead of the first");
  command.add_flag("--recompute", options.recompute,
                   "keep few activations and compute the others again: less memory, the same losses");
  command
      .add_option(
          "--activations", options.activations,
          "how activations are kept for the backward pass: none (as they are), fp16, bf16 or int8; all but none "
          "change the losses")
      .check(suggest("none fp16 bf16 int8"))
      .capture_default_str();
  command
      .add_option("--compression", options.compression,
                  "compression of gradients between replicas: none, fp16, bf16 or int8")
      .check(suggest("none fp16 bf16 int8"))
      .capture_default_str();
  command.add_flag("--sync-batch-norm", options.synchronized_norm,
                   "batch norm takes its statistics over the images of all replicas");
  add_seed(command, options.seed, "seed of weights, batches, latents and dropout");
  add_output_options(command, *arguments);
  add_elastic_options(command, *elastic);
  command.add_flag("--describe", arguments->describe, "print layers, parameters, work and memory; train nothing");
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([arguments, elastic, command, &shared] { train_as_asked(command, *arguments, *elastic, shared); });
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "train a GAN for real: losses, samples, weights, step trace",
          .examples =
              "  ganymede train --model mlp-gan --steps 3000 --samples digits.png\n"
              "  ganymede train --model mlp-gan --dataset ~/mnist --steps 9380 --batch 64 --weights gan.safetensors\n"
              "  ganymede train --model mlp-gan --steps 300 --trace step-trace.json --format json\n"
              "  ganymede train --model mlp-gan --batch 64 --describe\n"
              "  ganymede train --model mlp-gan --batch 64 --policy deadline --plan plan.json --checkpoint run\n",
          .about =
              "Trains a GAN on this machine's processors or GPUs. Without --dataset it trains on images that the\n"
              "program draws itself, so that nothing must be downloaded. docs/commands.md lists the models.",
          .declare = declare_train};
}

}  // namespace ganymede::cli

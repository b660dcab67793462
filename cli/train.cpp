// ganymede train: trains a GAN, and writes samples, weights, checkpoints and the step trace.

#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "kernel/describe.hpp"
#include "kernel/session/session.hpp"
#include "rehearsal/elastic_training.hpp"

namespace ganymede::cli {
namespace {

struct TrainCommand {
  kernel::SessionOptions session;
  rehearsal::ElasticOptions elastic;
  bool describe = false;
};

kernel::SessionView view_on(const Shared& shared) {
  return {.remark = [&shared](const std::string& sentence) { remark(shared, sentence); },
          .waiting = [&shared](const std::string& what) -> std::shared_ptr<void> { return show_elapsed(shared, what); },
          .steps =
              [&shared](std::int64_t first, std::int64_t last, int batch, bool grows, kernel::LossNames names) {
                auto line = std::make_shared<TrainingLine>(first, last, batch, grows, names, shared);
                return [line](const kernel::Progress& progress) { line->show(progress); };
              }};
}

void train_here(const TrainCommand& options, Shared& shared) {
  const bool json = shared.format == "json";
  if (options.describe) {
    const kernel::Description description = kernel::describe(options.session.train);
    return emit(shared, json ? kernel::to_json(description) : kernel::to_table(description));
  }
  const kernel::SessionReport report = kernel::run_session(options.session, view_on(shared));
  if (report.stopped)
    shared.exit_code = ExitCode::interrupted;
  else if (report.shard.rank == 0)
    emit(shared, json ? kernel::to_json(report, options.session) : kernel::to_table(report, options.session));
}

void train_by_policy(Parser command, const TrainCommand& options, Shared& shared) {
  try {
    const rehearsal::ElasticTraining training =
        rehearsal::train_elastically(options.session, options.elastic, command.given(), shared.format,
                                     [&shared](const std::string& sentence) { remark(shared, sentence); });
    emit(shared, shared.format == "json" ? rehearsal::to_json(training, options.session, options.elastic)
                                         : rehearsal::to_table(training));
  } catch (const rehearsal::ElasticInterrupted& interrupted) {
    remark(shared,
           fmt::format("stopped after step {}; --resume without --policy goes on from there", interrupted.step));
    shared.exit_code = ExitCode::interrupted;
  }
}

void run_train(Parser command, const TrainCommand& options, Shared& shared) {
  check_trainable(options.session.train.model);
  kernel::check(options.session, shared.output);
  if (options.elastic.policy.empty() && options.elastic.plan.empty())
    train_here(options, shared);
  else
    train_by_policy(command, options, shared);
}

void add_learning_options(Parser command, kernel::TrainOptions& options) {
  command.add_option("--lr", options.learning_rate, "Adam's learning rate; default: the model's");
  command.add_option("--beta1", options.beta1, "Adam's first decay rate; default: the model's");
  command.add_option("--beta2", options.beta2, "Adam's second decay rate; default: the model's");
  command.add_option("--epsilon", options.epsilon, "what Adam adds to the denominator; default: 1e-8");
  command.add_option("--ema", options.average_decay,
                     "draw samples by a moving average of the generator with this decay, as 0.999; 0: none");
  command.add_option("--loss", options.loss,
                     "non-saturating, minimax, hinge, wgan-gp, r1 or least-squares; default: the model's",
                     suggest("@losses"));
  command.add_option("--stage-steps", options.stage_steps,
                     "steps of each fade-in and each stay of a growing model; default: --steps in equal parts");
  command.add_option("--d-steps", options.discriminator_steps, "updates of the discriminator in each step")
      .capture_default_str();
}

void add_output_options(Parser command, kernel::SessionOptions& session) {
  command.add_option("--samples", session.samples, "write a grid of generated images as PNG");
  command.add_option("--samples-every", session.samples_every,
                     "also write one every so many steps, as NAME-000500.png beside it");
  command.add_option(
      "--quality", session.quality,
      "measure FID and inception score with so many images, by a classifier that comes with the program");
  command.add_option("--features", session.features,
                     "classifier to measure with instead: a safetensors file, see docs/commands.md");
  command.add_option("--quality-every", session.quality_every, "also measure every so many steps");
  command.add_option("--quality-curve", session.quality_curve,
                     "add the measurements to this file, for scenarios whose target is a quality");
  command.add_option("--checkpoint", session.checkpoint,
                     "keep the last two checkpoints in this directory; one is also written on an interrupt");
  command.add_option("--checkpoint-every", session.checkpoint_every, "steps between two checkpoints")
      .capture_default_str();
  command.add_flag("--resume", session.resume, "continue from the last whole checkpoint, to --steps steps in all");
  command.add_option("--init", session.init, "start from these weights: a safetensors file, as --weights writes it");
  command.add_option("--weights", session.weights, "write both networks' weights as safetensors");
  command.add_option("--trace", session.trace, "record the phases of every step and write the step trace");
  command.add_option("--metrics", session.metrics,
                     "log steps, losses and pauses as they happen into this file, which ganymede watch follows");
}

void add_elastic_options(Parser command, rehearsal::ElasticOptions& options) {
  command.add_option("--policy", options.policy,
                     "let this policy decide how many processes train; --batch is then that of all of them",
                     suggest("@policies"));
  command.add_option("--plan", options.plan,
                     "with --policy: a plan or scenario, which says what there is to rent, when it boots and is lost",
                     suggest("@files"));
  command.add_option("--launcher", options.launcher, "with --policy: how {} processes are started on this machine")
      .capture_default_str();
  command
      .add_option("--scale", options.scale,
                  "with --policy: real seconds for one of the plan's boots, notices and faults",
                  number_between(1e-6, 1e6))
      .capture_default_str();
}

void declare_train(Parser command, Shared& shared) {
  auto given = std::make_shared<TrainCommand>();
  kernel::SessionOptions& session = given->session;
  kernel::TrainOptions& options = session.train;
  command.add_option("--model", options.model, "which GAN: see ganymede list models", suggest("@models"))
      .capture_default_str();
  command.add_option("--image", options.image,
                     "size of the images as ROWSxCOLUMNSxCHANNELS, for example 32x32x3; default: that of the data set");
  command
      .add_option(
          "--dataset", options.dataset,
          "\"builtin\" (drawn glyphs), or a directory of MNIST IDX files, CIFAR-10 binary files, or PNG and JPEG",
          suggest("builtin @files"))
      .capture_default_str();
  command.add_option("--steps", session.steps, "steps to train, such as 10000 or 10k")
      .transform(positive_count())
      .capture_default_str();
  command.add_option("--batch", options.batch, "images in a step of each process").capture_default_str();
  add_device_options(command, options);
  command.add_flag("--host-random", options.host_random,
                   "draw a GPU's random numbers on the host, as the CPU backend does, so that both can be compared");
  command
      .add_option("--gpus", session.gpus, "replicas, one for each GPU of this machine; each has a --batch of its own")
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
          "change the losses",
          suggest("none fp16 bf16 int8"))
      .capture_default_str();
  command
      .add_option("--compression", options.compression,
                  "compression of gradients between replicas: none, fp16, bf16 or int8", suggest("none fp16 bf16 int8"))
      .capture_default_str();
  command.add_flag("--sync-batch-norm", options.synchronized_norm,
                   "batch norm takes its statistics over the images of all replicas");
  add_seed(command, options.seed, "seed of weights, batches, latents and dropout");
  add_output_options(command, session);
  add_elastic_options(command, given->elastic);
  command.add_flag("--describe", given->describe, "print layers, parameters, work and memory; train nothing");
  add_result(command, shared, {"table", "json"});
  command.callback([given, command, &shared] { run_train(command, *given, shared); });
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
          .trains = true,
          .declare = declare_train};
}

}  // namespace ganymede::cli

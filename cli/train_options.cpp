#include "cli/train_options.hpp"

#include "cli/names.hpp"

namespace ganymede::cli {

void add_learning_options(Parser command, kernel::TrainOptions& options) {
  command.add_option("--lr", options.learning_rate, "Adam's learning rate; default: the model's");
  command.add_option("--beta1", options.beta1, "Adam's first decay rate; default: the model's");
  command.add_option("--beta2", options.beta2, "Adam's second decay rate; default: the model's");
  command.add_option("--epsilon", options.epsilon, "what Adam adds to the denominator; default: 1e-8");
  command.add_option("--ema", options.average_decay,
                     "draw samples by a moving average of the generator with this decay, as 0.999; 0: none");
  command.add_option("--loss", options.loss, "non-saturating, minimax, hinge or wgan-gp; default: the model's")
      .check(suggest("@losses"));
  command.add_option("--stage-steps", options.stage_steps,
                     "steps of each fade-in and each stay of a growing model; default: --steps in equal parts");
  command.add_option("--d-steps", options.discriminator_steps, "updates of the discriminator in each step")
      .capture_default_str();
}

void add_output_options(Parser command, TrainArguments& arguments) {
  command.add_option("--samples", arguments.samples, "write a grid of generated images as PNG");
  command.add_option("--samples-every", arguments.samples_every,
                     "also write one every so many steps, as NAME-000500.png beside it");
  command.add_option(
      "--quality", arguments.quality,
      "measure FID and inception score with so many images, by a classifier that comes with the program");
  command.add_option("--features", arguments.features,
                     "classifier to measure with instead: a safetensors file, see docs/commands.md");
  command.add_option("--quality-every", arguments.quality_every, "also measure every so many steps");
  command.add_option("--quality-curve", arguments.quality_curve,
                     "add the measurements to this file, for scenarios whose target is a quality");
  command.add_option("--checkpoint", arguments.checkpoint,
                     "keep the last two checkpoints in this directory; one is also written on an interrupt");
  command.add_option("--checkpoint-every", arguments.checkpoint_every, "steps between two checkpoints")
      .capture_default_str();
  command.add_flag("--resume", arguments.resume, "continue from the last whole checkpoint, to --steps steps in all");
  command.add_option("--init", arguments.init, "start from these weights: a safetensors file, as --weights writes it");
  command.add_option("--weights", arguments.weights, "write both networks' weights as safetensors");
  command.add_option("--trace", arguments.trace, "record the phases of every step and write the step trace");
  command.add_option("--metrics", arguments.metrics,
                     "log steps, losses and pauses as they happen into this file, which ganymede watch follows");
}

}  // namespace ganymede::cli

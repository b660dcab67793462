// Saves a trainer's state to a checkpoint and restores it.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/errors.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/models/models.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {
namespace {

std::string text_of(const RandomStream::State& state) {
  return fmt::format("{:016x} {:016x} {:016x} {:016x}", state[0], state[1], state[2], state[3]);
}

}  // namespace

SafeTensors Trainer::checkpoint() {
  pause();
  if (data_sum_ == 0) data_sum_ = dataset_.fingerprint(gan_->classes > 0);
  SafeTensors content = tensors_of(*gan_, *ops_, true);
  content.metadata.merge(std::map<std::string, std::string>{
      {"image", to_string(gan_->whole)},
      {"batch", fmt::format("{}", global_batch())},
      {"seed", fmt::format("{}", options_.seed)},
      {"ema", fmt::format("{}", options_.average_decay)},
      {"loss", std::string(kLossNames[static_cast<std::size_t>(step_options_.loss)])},
      {"d-steps", fmt::format("{}", options_.discriminator_steps)},
      {"data", fmt::format("{:016x}", data_sum_)},
      {"stage-steps", fmt::format("{}", options_.stage_steps)},
      {"steps", fmt::format("{}", steps_done_)},
      {"epoch", fmt::format("{}", batches_->epoch())},
      {"position", fmt::format("{}", batches_->position())},
      {"latent", text_of(random_.latent.state())},
      {"dropout", text_of(random_.dropout.state())},
      {"generator.updates", fmt::format("{}", gan_->generator.updates())},
      {"discriminator.updates", fmt::format("{}", gan_->discriminator.updates())}});
  if (gan_->lazy.path_every > 0)
    content.metadata["path-length"] = fmt::format("{}", std::bit_cast<std::int64_t>(gan_->path_length));
  return content;
}

void Trainer::restore(const SafeTensors& checkpoint, const std::string& file) {
  if (data_sum_ == 0) data_sum_ = dataset_.fingerprint(gan_->classes > 0);
  const Metadata in(checkpoint.metadata, file);
  in.expect("model", options_.model);
  in.expect("image", to_string(gan_->whole));
  in.expect("batch", fmt::format("{}", global_batch()));
  in.expect("seed", fmt::format("{}", options_.seed));
  in.expect("ema", fmt::format("{}", options_.average_decay));
  in.expect("loss", std::string(kLossNames[static_cast<std::size_t>(step_options_.loss)]));
  in.expect("stage-steps", fmt::format("{}", options_.stage_steps));
  in.expect("d-steps", fmt::format("{}", options_.discriminator_steps));
  in.expect("data", fmt::format("{:016x}", data_sum_));
  const std::int64_t steps = in.number("steps", 0), epoch = in.number("epoch", 1), position = in.number("position", 0);
  const std::int64_t g_updates = in.number("generator.updates", 0), d_updates = in.number("discriminator.updates", 0);
  if (position > dataset_.count())
    throw ConfigError(fmt::format("{}: found position {} in {} images", file, position, dataset_.count()));
  const bool has_paths = gan_->lazy.path_every > 0;
  const auto path_length = std::bit_cast<double>(has_paths ? in.number("path-length", 0) : 0);
  const auto latent = in.state("latent"), dropout = in.state("dropout");
  // The checkpoint's tensors have the form of the last step's stage.
  steps_done_ = std::max<std::int64_t>(0, steps - 1);
  if (const TrainingStage stage = current_stage(); !(stage.growth == stage_.growth)) {
    gan_.reset();
    enter_stage(stage);
  }
  set_tensors(*gan_, *ops_, checkpoint, true, file);
  steps_done_ = steps;
  gan_->path_length = path_length;
  ops_->timeline().discard_step();
  batches_->seek(epoch, static_cast<std::size_t>(position));
  random_.latent.restore(latent);
  random_.dropout.restore(dropout);
  gan_->generator.set_updates(g_updates);
  gan_->discriminator.set_updates(d_updates);
}

}  // namespace ganymede::kernel

#include "cli/train_checkpoint.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "kernel/checkpoint.hpp"

namespace ganymede::cli {
namespace {

/// Refuses a directory with checkpoints of an earlier training unless it is resumed, because a new one would remove
/// them.
void refuse_earlier_checkpoints(const TrainArguments& arguments) {
  if (!arguments.resume && kernel::has_checkpoints(arguments.checkpoint))
    throw ConfigError(
        fmt::format("--checkpoint: {}: found checkpoints of an earlier training; --resume goes on from "
                    "them, another directory keeps them",
                    arguments.checkpoint));
}

}  // namespace

void check_checkpoint(const TrainArguments& arguments) {
  if (arguments.samples_every < 0 || (arguments.samples_every > 0 && arguments.samples.empty()))
    throw ConfigError(fmt::format("--samples-every: found {}, expected 1 or more, and --samples with the file's name",
                                  arguments.samples_every));
  if (arguments.quality_every < 0 || (arguments.quality_every > 0 && arguments.quality == 0))
    throw ConfigError(
        fmt::format("--quality-every: found {}, expected 1 or more, and --quality with the number of images",
                    arguments.quality_every));
  if (!arguments.quality_curve.empty() && arguments.quality_every == 0)
    throw ConfigError("--quality-curve: expected --quality and --quality-every too: a curve has several points");
  if (!arguments.features.empty() && arguments.quality == 0)
    throw ConfigError(
        fmt::format("--features: found {}, expected --quality with the number of images too", arguments.features));
  if (arguments.checkpoint_every < 1)
    throw ConfigError(fmt::format("--checkpoint-every: found {}, expected 1 or more", arguments.checkpoint_every));
  if (arguments.checkpoint.empty()) {
    if (arguments.resume) throw ConfigError("--resume: expected --checkpoint with the directory to go on from");
    return;
  }
  if (arguments.resume && !arguments.init.empty())
    throw ConfigError("--init: a resumed training has its weights from the checkpoint; expected one of the two");
  if (arguments.resume && !arguments.trace.empty())
    throw ConfigError("--trace: a resumed training has no trace of its first steps; record one without --resume");
  refuse_earlier_checkpoints(arguments);
  kernel::check_checkpoint_directory(arguments.checkpoint);
}

std::unique_ptr<kernel::CheckpointLock> lock_checkpoints(const TrainArguments& arguments) {
  if (arguments.checkpoint.empty()) return nullptr;
  auto lock = std::make_unique<kernel::CheckpointLock>(arguments.checkpoint);
  // Checked again, because another training may have started and ended since the options were checked.
  refuse_earlier_checkpoints(arguments);
  return lock;
}

}  // namespace ganymede::cli

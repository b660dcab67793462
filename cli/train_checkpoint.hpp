#pragma once
// What ganymede train asks of the folder of its checkpoints.

#include <memory>

#include "cli/train_report.hpp"
#include "kernel/checkpoint_lock.hpp"

namespace ganymede::cli {

/// ConfigError for options that do not go together, and for a folder in which nothing can be kept.
void check_checkpoint(const TrainArguments& arguments);

/// The folder for this training alone; null if it keeps no checkpoints. ConfigError if another training uses it.
std::unique_ptr<kernel::CheckpointLock> lock_checkpoints(const TrainArguments& arguments);

}  // namespace ganymede::cli

#pragma once
// Checks of `ganymede train` before it keeps checkpoints in a folder.

#include <memory>

#include "cli/train_report.hpp"
#include "kernel/checkpoint_lock.hpp"

namespace ganymede::cli {

/// Throws ConfigError for options that contradict each other and for a folder that cannot be written to.
void check_checkpoint(const TrainArguments& arguments);

/// Locks the folder for this training; null if it keeps no checkpoints. Throws ConfigError if another training uses it.
std::unique_ptr<kernel::CheckpointLock> lock_checkpoints(const TrainArguments& arguments);

}  // namespace ganymede::cli

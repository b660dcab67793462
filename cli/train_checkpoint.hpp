#pragma once
// Checks and locks the directory in which `ganymede train` keeps its checkpoints.

#include <memory>

#include "cli/train_report.hpp"
#include "kernel/checkpoint_lock.hpp"

namespace ganymede::cli {

/// Throws ConfigError for checkpoint options that contradict each other, and for a directory that cannot be used.
void check_checkpoint(const TrainArguments& arguments);

/// Locks the directory for this training as long as the result lives; null if the training keeps no checkpoints. Throws
/// ConfigError if another training uses the directory.
std::unique_ptr<kernel::CheckpointLock> lock_checkpoints(const TrainArguments& arguments);

}  // namespace ganymede::cli

#pragma once
// The parts of a session that session.cpp puts together.

#include "kernel/parallel/communicator.hpp"
#include "kernel/session/session.hpp"

namespace ganymede::kernel {

/// Refuses a directory with checkpoints of an earlier training unless it is resumed, because a new one would remove
/// them.
void refuse_earlier_checkpoints(const SessionOptions& options);
/// Throws ConfigError if this machine has fewer GPUs than replicas are asked for.
void check_gpus(const SessionOptions& options);
/// Throws ConfigError for options that need several replicas, or only one.
void check_replicas(const SessionOptions& options, int replicas);
/// Throws ConfigError in all processes if one has another value of an option that all must share: they would compute
/// different things, or wait for one another for ever. The message names the option and a process.
void check_same_options(const SessionOptions& options, Communicator& communicator);

/// Adds the measurements of this training to the file of --quality-curve. They replace those of an earlier training
/// with the same batch and seed. Throws ConfigError if the file is of another model, data set or feature network.
void add_quality_curve(const SessionReport& report, const SessionOptions& options);

}  // namespace ganymede::kernel

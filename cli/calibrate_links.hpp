#pragma once
// Times the all-reduce between several GPUs, or several processes, at several sizes.

#include <string>

#include "cli/import_links.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// Throws ConfigError if the machine has fewer GPUs. Called before long work.
void check_gpus_for_links(const kernel::TrainOptions& train, int gpus);

/// Runs `gpus` threads with a GPU each, or as one of the processes that a launcher started. Writes link.log as
/// nccl-tests print it and, if `link` names a catalog and an instance, the overlay for it to `overlay`. Throws
/// ConfigError if there are neither several processes nor as many GPUs.
void calibrate_links(const kernel::TrainOptions& train, int gpus, LinkImport link, const std::string& overlay,
                     const Shared& shared);

}  // namespace ganymede::cli

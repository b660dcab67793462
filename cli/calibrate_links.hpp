#pragma once
// Times the all-reduce of several GPUs, or of several processes, over sizes.

#include <string>

#include "cli/import_links.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// ConfigError where there are not so many GPUs: before long work.
void check_gpus_for_links(const kernel::TrainOptions& train, int gpus);

/// With `gpus` threads, a GPU each, or as one of the processes that a launcher started. Writes `log` as nccl-tests
/// prints it and, where `link` names a catalog and an instance, the overlay for it to `overlay`. ConfigError where
/// there are neither so many GPUs nor processes.
void calibrate_links(const kernel::TrainOptions& train, int gpus, LinkImport link, const std::string& overlay,
                     const Shared& shared);

}  // namespace ganymede::cli

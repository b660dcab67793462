#pragma once
// Times all-reduces of several sizes between GPUs or processes.

#include <string>

#include "cli/import_links.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// Throws ConfigError if this machine has fewer than `gpus` GPUs. Called before long work.
void check_gpus_for_links(const kernel::TrainOptions& train, int gpus);

/// Times the all-reduce between `gpus` threads with a GPU each, or between processes if a launcher started several.
/// Writes `link.log` as nccl-tests prints it and, if `link` names a catalog and an instance, the file `overlay`. Throws
/// ConfigError if there are neither so many GPUs nor several processes.
void calibrate_links(const kernel::TrainOptions& train, int gpus, LinkImport link, const std::string& overlay,
                     const Shared& shared);

}  // namespace ganymede::cli

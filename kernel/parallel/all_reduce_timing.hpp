#pragma once
// Times all-reduces of several sizes between GPUs or processes.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel/train.hpp"

namespace ganymede::kernel {

struct TimedAllReduces {
  int ranks = 0;
  std::string by, on;  ///< the library, and the device
  struct Size {
    std::int64_t bytes = 0;
    double seconds = 0;  ///< mean over several runs after some for warm-up, and over all ranks
  };
  std::vector<Size> sizes;
};

/// Throws ConfigError if this machine has fewer than `gpus` GPUs. Called before long work.
void check_gpus_for_links(const TrainOptions& train, int gpus);

/// The number of sizes that time_all_reduces() times.
std::size_t timed_sizes();

/// Times the all-reduce between `gpus` threads with a GPU each, or between processes if a launcher started several.
/// `progress`, if given, is called in the first of them with the number of sizes done, from 0 on. Returns no sizes in
/// the others. Throws ConfigError if there are neither so many GPUs nor several processes.
TimedAllReduces time_all_reduces(const TrainOptions& train, int gpus,
                                 const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede::kernel

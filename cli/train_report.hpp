#pragma once
// The arguments of `ganymede train` and the report at its end.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/quality/quality.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

struct TrainArguments {
  kernel::TrainOptions options;
  std::int64_t steps = 300;
  std::string init, samples, weights, trace;
  std::int64_t samples_every = 0;  ///< steps; 0: only at the end
  int quality = 0;                 ///< number of images to measure quality with; 0: not measured
  std::int64_t quality_every = 0;  ///< steps; 0: only at the end
  std::string quality_curve;       ///< file to which the measurements are added
  std::string features;            ///< the feature network's file; empty: the kernel's own
  std::string checkpoint;          ///< a directory
  std::int64_t checkpoint_every = 1000;
  bool resume = false;
  bool describe = false;
  int gpus = 1;  ///< replicas, each a thread with its GPU
};

struct TrainReport {
  std::vector<kernel::Progress> history;                          ///< at intervals, and the last step
  std::vector<std::pair<std::int64_t, kernel::Quality>> quality;  ///< by step
  kernel::RunResult result;
  // Peaks over the training and its measurements of quality.
  double allocated_peak_bytes = 0, resident_peak_bytes = 0;
};

/// The backend in words: "eigen on AMD EPYC, 2 threads (AVX-512)".
std::string describe_backend(const kernel::BackendInfo& info);

/// Peak resident memory of this process so far.
double peak_resident_bytes();

/// Throws ConfigError if the file of --quality-curve exists and belongs to another model.
void check_quality_curve(const TrainArguments& arguments);
/// Adds this training's measurements to that file. They replace an earlier training's with the same batch and seed.
void add_quality_curve(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

std::string to_table(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);
std::string to_json(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

}  // namespace ganymede::cli

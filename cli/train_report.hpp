#pragma once
// What ganymede train was asked for, and what it says in the end.

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
  std::int64_t samples_every = 0;  ///< 0: in the end only
  int quality = 0;                 ///< images to measure it with; 0: not measured
  std::int64_t quality_every = 0;  ///< 0: in the end only
  std::string quality_curve;       ///< a file that the measurements are added to
  std::string features;            ///< the feature network's file; empty: the kernel's own
  std::string checkpoint;          ///< a directory
  std::int64_t checkpoint_every = 1000;
  bool resume = false;
  bool describe = false;
  int gpus = 1;  ///< replicas, as threads
};

struct TrainReport {
  std::vector<kernel::Progress> history;                          ///< at intervals, the last step among them
  std::vector<std::pair<std::int64_t, kernel::Quality>> quality;  ///< by step
  kernel::RunResult result;
  // Of the training and its measurements of quality.
  double allocated_peak_bytes = 0, resident_peak_bytes = 0;
};

/// "eigen on AMD EPYC, 2 threads (AVX-512)"
std::string describe_backend(const kernel::BackendInfo& info);

/// Of this process, so far.
double peak_resident_bytes();

/// ConfigError if the file of --quality-curve is there and of another model.
void check_quality_curve(const TrainArguments& arguments);
/// Adds the measurements of this training to that file, in place of an earlier one of the same batch and seed.
void add_quality_curve(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

std::string to_table(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);
std::string to_json(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

}  // namespace ganymede::cli

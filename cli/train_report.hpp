#pragma once
// The options of `ganymede train` and its final report.

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
  std::int64_t samples_every = 0;  ///< steps between two pictures; 0: one at the end only
  int quality = 0;                 ///< images with which quality is measured; 0: it is not measured
  std::int64_t quality_every = 0;  ///< steps between two measurements; 0: one at the end only
  std::string quality_curve;       ///< file to which the measurements are added; empty: none
  std::string metrics;             ///< file to which the training logs its steps; empty: none
  std::string features;            ///< file of the feature network; empty: the kernel's own network
  std::string checkpoint;          ///< directory of checkpoints; empty: none are kept
  std::int64_t checkpoint_every = 1000;
  bool resume = false;
  bool describe = false;
  int gpus = 1;  ///< replicas, each a thread with a GPU of its own
};

struct TrainReport {
  std::vector<kernel::Progress> history;                          ///< at regular intervals and at the last step
  std::vector<std::pair<std::int64_t, kernel::Quality>> quality;  ///< step and what was measured after it
  kernel::RunResult result;
  // Peaks over the training and its measurements of quality.
  double allocated_peak_bytes = 0, resident_peak_bytes = 0;
};

/// The backend in words: "eigen on AMD EPYC, 2 threads (AVX-512)".
std::string describe_backend(const kernel::BackendInfo& info);

/// The peak resident memory of this process in bytes.
double peak_resident_bytes();

/// Throws ConfigError if the file of --quality-curve exists and belongs to another model.
void check_quality_curve(const TrainArguments& arguments);
/// Adds the measurements of this training to the file of --quality-curve. They replace those of an earlier training
/// with the same batch and seed.
void add_quality_curve(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

std::string to_table(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);
std::string to_json(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments);

}  // namespace ganymede::cli

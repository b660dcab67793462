#pragma once
// A whole training as `ganymede train` runs it: replicas on GPUs or processes, checkpoints and what goes on from them,
// samples, measurements of quality, the files that it writes and the report at its end.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/parallel/communicator.hpp"
#include "kernel/quality/quality.hpp"
#include "kernel/train.hpp"

namespace ganymede::kernel {

struct SessionOptions {
  TrainOptions train;
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
  int gpus = 1;  ///< replicas, each a thread with a GPU of its own
};

struct SessionReport {
  Shard shard;  ///< this process's; the files and the report are the first one's
  LossNames loss_names = kernel::loss_names({});
  bool stopped = false;  ///< by SIGINT or SIGTERM; then nothing below is set
  std::string dataset;
  int images = 0;  ///< of the data set
  std::int64_t epoch = 0;
  BackendInfo backend;
  bool reduces_on_device = false;  ///< gradients are reduced beside the backward pass, where no waiting can be timed
  int global_batch = 0;            ///< images of a step of all replicas
  double waited_s = 0;             ///< seconds of gradient communication during which nothing was computed
  double predicted_bytes = 0;      ///< of memory
  /// Peaks over the training and its measurements of quality: what the backend allocated, and what this process held.
  double allocated_peak_bytes = 0, resident_peak_bytes = 0;
  std::vector<Progress> history;                          ///< at regular intervals and at the last step
  std::vector<std::pair<std::int64_t, Quality>> quality;  ///< step and what was measured after it
  RunResult result;

  double step_s() const { return result.seconds / static_cast<double>(result.steps); }
};

/// Follows a session in the process and thread of its first replica. Empty functions are not called.
struct SessionView {
  std::function<void(const std::string& sentence)> remark;
  /// Tells that something begins that has no steps; it lasts as long as the returned object.
  std::function<std::shared_ptr<void>(const std::string& what)> waiting;
  /// Tells that the steps after `first` up to `last` begin, each of `batch` images over all replicas; a model that
  /// grows has larger images in later ones. The returned function is called after each step.
  std::function<std::function<void(const Progress&)>(std::int64_t first, std::int64_t last, int batch, bool grows,
                                                     LossNames names)>
      steps;
};

/// Throws ConfigError for options that contradict each other, with the flag, what was found and what was expected, and
/// for files that cannot be written: now, not after hours of training. `report_file` is where the caller writes the
/// report; empty: nowhere.
void check(const SessionOptions& options, const std::string& report_file = "");

/// Trains, and writes all that the options ask for. In a process that a launcher started it is one replica of several.
/// SIGINT and SIGTERM end the training after the current step, with a checkpoint if there is a directory for them.
/// `options` must have passed check(). Throws ConfigError for what only shows when the data set, the devices and the
/// other processes are there.
SessionReport run_session(const SessionOptions& options, const SessionView& view = {});

std::string to_table(const SessionReport& report, const SessionOptions& options);
std::string to_json(const SessionReport& report, const SessionOptions& options);

/// Where the picture of a step is written: "dir/samples.png" becomes "dir/samples-000500.png".
std::string name_at_step(const std::filesystem::path& file, std::int64_t step);

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

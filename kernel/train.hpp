#pragma once
// Training: what the command line runs, and what calibration times.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernel/data/dataset.hpp"
#include "kernel/data/loader.hpp"
#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/backend.hpp"
#include "kernel/safetensors.hpp"
#include "kernel/utilization.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

inline constexpr int kBatchMin = 2;  ///< batch normalisation needs a variance
inline constexpr int kBatchMax = 65536;
inline constexpr std::int64_t kStepsMax = 1'000'000'000;
/// A trace keeps every step in memory and in the file.
inline constexpr std::int64_t kTracedStepsMax = 100'000;
inline constexpr int kThreadsMax = 1024;
inline constexpr int kDiscriminatorStepsMax = 100;
inline constexpr int kPrefetchMax = 1024;

struct TrainOptions {
  std::string model = "mlp-gan";
  std::string image;                      ///< "32x32x3"; empty: the data's where they say, else the model's first
  std::string dataset = kBuiltinDataset;  ///< or a directory: see open_dataset
  std::string backend = "cpu";            ///< or cuda, or auto: cuda where there is a GPU
  int gpu = 0;                            ///< which of this machine's
  std::string precision;     ///< of products on a GPU, kPrecisionNames; empty: tf32 where it has it, else fp32
  bool graph = true;         ///< CudaOptions
  bool host_random = false;  ///< CudaOptions
  int batch = 64;
  int threads = 0;  ///< 0: all that this process may use
  /// Not said: the model's own (models.hpp).
  std::optional<float> learning_rate, beta1, beta2, epsilon;
  float average_decay = 0;  ///< StepOptions
  std::string loss;         ///< one of kLossNames; empty: the model's own
  /// Of a growing model: the steps that each fading in and each stay at a size last. 0: grown up from the first step.
  std::int64_t stage_steps = 0;
  int discriminator_steps = 1;  ///< updates of the discriminator a step
  LoaderOptions loader;
  bool image_cache = true;  ///< keeps decoded pictures after their first use
  std::uint64_t seed = 1;
  bool recompute = false;            ///< ActivationStorage
  std::string activations = "none";  ///< bits in which activations are kept, kCompressionNames
  std::string compression = "none";  ///< of gradients between processes, kCompressionNames
  bool synchronized_norm = false;    ///< batch norms over the images of all processes
  bool trace = false;                ///< record phases; costs well below 1 % of a step
};

/// ConfigError naming the flag, what was found and what was expected.
void check(const TrainOptions& options);

/// What images the model shall make in the end. The options must be checked.
ImageShape image_of(const TrainOptions& options);

/// The model in its last form, for the images that the options ask for. The options must be checked.
Gan build_gan(const TrainOptions& options);

GanOptions gan_options_of(const TrainOptions& options);

/// What gan_step is told, with the model's own where the options say nothing. The options must be checked.
StepOptions step_options_of(const TrainOptions& options);

/// After how many of `steps` steps a recording begins: caches, clocks and pages settle first.
std::int64_t warmup_of(std::int64_t steps);

struct Progress {
  std::int64_t step;  ///< done, counted over the trainer's life
  Losses losses;
};

struct RunResult {
  std::int64_t steps = 0;
  double seconds = 0;  ///< wall time of these steps
  Losses losses;       ///< of the last
};

class Trainer {
 public:
  /// Checks the options, opens the data set, allocates everything. ConfigError, Infeasible.
  /// One of the communicator's processes, if there is one: `options.batch` images of each step's are its own. It must
  /// outlive the trainer.
  /// `backend`: used instead of the options' one.
  explicit Trainer(const TrainOptions& options, Communicator* communicator = nullptr,
                   std::unique_ptr<Backend> backend = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One step. Allocates nothing unless it records. Failure when a loss is not finite.
  Losses step();

  /// So many steps; `report`, if given, is called after each. May be called again: timing is of the call's own steps.
  RunResult run(std::int64_t steps, const std::function<void(const Progress&)>& report = {});

  /// What follows until the next step is no part of one: samples, measurements, checkpoints.
  void pause() { clock_.end_step(); }

  /// Everything from which a training of the same options goes on as if it had not stopped.
  SafeTensors checkpoint();
  /// Goes on from there. ConfigError naming `file` when it is of another model, batch size, seed or data set; such a
  /// trainer is of no more use.
  void restore(const SafeTensors& checkpoint, const std::string& file);

  /// What was recorded without the first `warmup` steps. Needs options.trace, and more steps done than `warmup`.
  StepTrace trace(std::int64_t warmup);

  const TrainOptions& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }
  /// With all of its pictures decoded.
  const Dataset& whole_dataset();
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t epoch() const { return batches_->epoch(); }
  Shard shard() const { return ops_->shard(); }
  /// Images of a step, of all processes.
  int global_batch() const { return options_.batch * shard().ranks; }
  /// Asks all processes to end after the step that runs; `stopping` says in all of them whether any did.
  void stop() { stop_asked_ = true; }
  bool stopping() const { return stopping_; }
  /// Seconds that communication of gradients took and nothing hid.
  double waited_s() const { return waited_s_ + reducers_waited_s(); }
  Gan& gan() { return *gan_; }  ///< of the stage that the training stands in
  TensorOps& ops() { return *ops_; }
  const TensorOps& ops() const { return *ops_; }
  const Backend& backend() const { return *backend_; }

 private:
  void join_on_device(Communicator& communicator);
  void load_real();
  Losses over_processes(Losses losses);
  double reducers_waited_s() const;
  Place place_now() const;
  /// Builds the networks of a place, with the weights of those that stood there before, and the images that they see.
  void enter(const Place& place);
  void grow();
  void start_loader(std::int64_t epoch, std::size_t position);
  TraceBatch stage_trace(std::int64_t warmup) const;

  TrainOptions options_;
  StepOptions step_options_;
  std::unique_ptr<Backend> backend_;
  TensorOps* ops_;  ///< backend_'s
  const Model& model_;
  ImageShape image_;
  Dataset dataset_;
  Images stage_images_;  ///< those of the data set at a stage's size; none when the model is grown up
  std::optional<Gan> gan_;
  Place place_;
  std::map<std::string, double> memory_bytes_;
  std::optional<Loader> batches_;
  StepRandom random_;
  StepClock clock_;
  Communicator* communicator_ = nullptr;
  std::optional<BucketReducer> generator_reducer_, discriminator_reducer_;
  bool stop_asked_ = false, stopping_ = false;
  double waited_s_ = 0;  ///< of the stages before
  std::vector<TraceBatch> finished_stages_;
  std::optional<TraceUtilization> utilization_;
  std::uint64_t data_sum_ = 0;  ///< the data set's fingerprint, once a checkpoint asked for it
  std::int64_t steps_done_ = 0;
};

/// The backend that was asked for, or the error that says why it is not there.
std::unique_ptr<Backend> make_backend(const TrainOptions& options);

}  // namespace ganymede::kernel

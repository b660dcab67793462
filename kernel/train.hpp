#pragma once
// The training loop: what the command line runs and calibration times.

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
#include "kernel/utilization.hpp"
#include "kernel/weights.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

inline constexpr int kMinBatch = 2;  ///< batch norm needs a variance
inline constexpr int kMaxBatch = 65536;
inline constexpr std::int64_t kMaxSteps = 1'000'000'000;
/// Bound for recorded steps, because a trace keeps every step in memory and in the file.
inline constexpr std::int64_t kMaxTracedSteps = 100'000;
inline constexpr int kMaxThreads = 1024;
inline constexpr int kMaxDiscriminatorSteps = 100;
inline constexpr int kMaxPrefetch = 1024;

struct TrainOptions {
  std::string model = "mlp-gan";
  std::string image;  ///< for example "32x32x3"; empty: the data set's shape if its files state one that the model
                      ///< takes, else the model's first
  std::string dataset = kBuiltinDataset;  ///< or a directory, see open_dataset
  std::string backend = "cpu";            ///< "cpu", "cuda", or "auto": cuda if there is a GPU
  int gpu = 0;                            ///< index of the machine's GPU
  /// Precision of products on a GPU, one of kPrecisionNames; empty: tf32 if the GPU has it, else fp32.
  std::string precision;
  bool time_algorithms = false;  ///< times a GPU's convolutions and keeps the fastest (see CudaOptions)
  bool graph = true;             ///< replays a captured step (see CudaOptions)
  bool host_random = false;      ///< draws random numbers on the host (see CudaOptions)
  int batch = 64;
  int threads = 0;  ///< threads of the CPU backend; 0: this process's part of the machine's processors
  /// Adam's parameters; without a value: the model's (Model::adam).
  std::optional<float> learning_rate, beta1, beta2, epsilon;
  float average_decay = 0;  ///< decay of the generator's moving average (see StepOptions)
  std::string loss;         ///< one of kLossNames; empty: the model's own
  /// For a growing model: number of steps for which a size is faded in, and for which it is then trained. 0: the model
  /// has its final form from the first step.
  std::int64_t stage_steps = 0;
  int discriminator_steps = 1;  ///< updates of the discriminator in each step
  LoaderOptions loader;
  bool image_cache = true;  ///< keeps decoded pictures after their first use
  std::uint64_t seed = 1;
  bool recompute = false;            ///< computes activations again to save memory (see ActivationStorage)
  std::string activations = "none";  ///< how activations are kept, one of kCompressionNames
  std::string compression = "none";  ///< compression of gradients between processes, one of kCompressionNames
  bool synchronized_norm = false;    ///< batch norms take their statistics over all processes' images
  bool trace = false;                ///< records phases, on a GPU those of every eighth step
};

/// Checks names and ranges. Throws ConfigError with the flag, what was found and what was expected.
void check(const TrainOptions& options);

/// The shape of the images that the final model makes. `options` must have passed check().
ImageShape image_of(const TrainOptions& options);

/// The model in its final form, for the images that the options ask for. `options` must have passed check().
Gan build_gan(const TrainOptions& options);

/// Options for Gan::prepare(). `options` must have passed check().
GanOptions gan_options_of(const TrainOptions& options);

/// Options for gan_step(), with the model's defaults for what `options` leave open. They must have passed check().
StepOptions step_options_of(const TrainOptions& options);

/// Number of warm-up steps that a trace of `steps` steps leaves out, because caches, clocks and pages settle in them: a
/// tenth of the steps, at most 10.
std::int64_t warmup_of(std::int64_t steps);

struct Progress {
  std::int64_t step;  ///< number of steps done so far, over the whole training
  Losses losses;
};

struct RunResult {
  std::int64_t steps = 0;
  double seconds = 0;  ///< wall time of these steps
  Losses losses;       ///< losses of the last step
};

/// One training: the data set, the networks of the current stage, and the loop over steps.
class Trainer {
 public:
  /// Checks the options, opens the data set and allocates everything. Throws ConfigError for bad options or data, and
  /// Infeasible if the training does not fit in memory. With a communicator, which must outlive the trainer, this is
  /// one of its processes and trains on `options.batch` images of each step. `backend`, if given, is used in place of
  /// the options' backend.
  explicit Trainer(const TrainOptions& options, Communicator* communicator = nullptr,
                   std::unique_ptr<Backend> backend = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Runs one step. Allocates nothing unless it records a trace. Throws Failure if a loss is not finite.
  Losses step();

  /// Runs `steps` steps and calls `report`, if given, after each. The result is about the steps of this call only.
  /// `report` may use the trainer only after the steps for which `pauses(step)` is true; without `pauses`, after every
  /// step. A GPU computes the next step meanwhile if there is no pause.
  RunResult run(std::int64_t steps, const std::function<void(const Progress&)>& report = {},
                const std::function<bool(std::int64_t)>& pauses = {});

  /// Ends the recorded step: time until the next step, for samples or checkpoints, then belongs to no step.
  void pause() { clock_.end_step(); }

  /// Everything that a training with the same options needs to continue as if it had not stopped.
  SafeTensors checkpoint();
  /// Continues from a checkpoint. Throws ConfigError with `file` if it comes from another model, batch size, seed or
  /// data set; the trainer must not be used after that.
  void restore(const SafeTensors& checkpoint, const std::string& file);

  /// The recorded trace without the first `warmup` steps. Needs options.trace and more than `warmup` steps done.
  traces::StepTrace trace(std::int64_t warmup);

  const TrainOptions& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }
  /// The data set with all of its pictures decoded.
  const Dataset& whole_dataset();
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t epoch() const { return batches_->epoch(); }
  Shard shard() const { return ops_->shard(); }
  /// Images per step of all processes together.
  int global_batch() const { return options_.batch * shard().ranks; }
  /// Asks to end after the current step. After that step stopping() is true in all processes.
  void stop() { stop_asked_ = true; }
  bool stopping() const { return stopping_; }
  /// Seconds of gradient communication during which nothing was computed.
  double waited_s() const { return waited_s_ + reducers_waited_s(); }
  Gan& gan() { return *gan_; }  ///< the networks of the current stage
  TensorOps& ops() { return *ops_; }
  const TensorOps& ops() const { return *ops_; }
  const Backend& backend() const { return *backend_; }

 private:
  void load_real();
  void begin_step();
  /// Waits for the first step whose losses were not taken.
  Progress take_step();
  /// False if the next step must wait for the last one.
  bool may_be_ahead() const;
  Losses mean_over_processes(Losses losses);
  double reducers_waited_s() const;
  TrainingStage current_stage() const;
  /// Builds the stage's networks, with the weights of the stage before, and the images of its size.
  void enter_stage(const TrainingStage& stage);
  void enter_next_stage();
  void start_loader(std::int64_t epoch, std::size_t position);
  /// The record of the current stage; adds its kernels to the list.
  traces::TraceBatch stage_trace(std::int64_t warmup, std::vector<traces::TraceKernel>& kernels) const;

  TrainOptions options_;
  StepOptions step_options_;
  std::unique_ptr<Backend> backend_;
  TensorOps* ops_;  ///< owned by backend_
  const Model& model_;
  ImageShape image_;
  Dataset dataset_;
  Images stage_images_;  ///< the data set's images, shrunk to the stage's size; empty at full size
  std::optional<Gan> gan_;
  TrainingStage stage_;
  std::map<std::string, double> memory_bytes_;
  std::optional<Loader> batches_;
  StepRandom random_;
  StepClock clock_;
  Communicator* communicator_ = nullptr;
  std::optional<BucketReducer> generator_reducer_, discriminator_reducer_;
  bool stop_asked_ = false, stopping_ = false;
  double waited_s_ = 0;  ///< seconds waited in earlier stages
  std::vector<traces::TraceBatch> finished_stages_;
  std::vector<traces::TraceKernel> finished_kernels_;  ///< of the stages in finished_stages_
  std::optional<traces::TraceUtilization> utilization_;
  std::uint64_t data_sum_ = 0;   ///< the data set's fingerprint; 0: not computed yet
  std::int64_t steps_done_ = 0;  ///< steps that have begun; the trainer's state is that after them
  int begun_ = 0;                ///< steps of which the losses were not taken
};

/// Opens the backend that the options ask for. Throws ConfigError that says why it is not available.
std::unique_ptr<Backend> make_backend(const TrainOptions& options);

}  // namespace ganymede::kernel

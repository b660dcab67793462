#include "kernel/train.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <iterator>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "kernel/describe.hpp"
#include "kernel/device_limits.hpp"
#include "kernel/launches.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kMaxWarmupSteps = 10;
constexpr double kSampleInterval = 0.1;  // seconds

template <class Value>
[[noreturn]] void refuse(std::string_view flag, const Value& found, std::string_view expected) {
  throw ConfigError(fmt::format("{}: found {}, expected {}", flag, found, expected));
}

constexpr std::string_view kBackendNames[] = {"auto", "cpu", "cuda"};

template <std::size_t N>
int index_of(const std::string_view (&names)[N], std::string_view name) {
  return static_cast<int>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

template <std::size_t N>
void check_name(std::string_view flag, const std::string& found, const std::string_view (&names)[N]) {
  if (index_of(names, found) == static_cast<int>(N)) refuse(flag, found, fmt::format("{}", fmt::join(names, ", ")));
}

Compression compression_of(const std::string& name) { return Compression(index_of(kCompressionNames, name)); }

void check_rates(const TrainOptions& options) {
  for (const auto& [flag, value] : {std::pair{"--lr", options.learning_rate}, std::pair{"--epsilon", options.epsilon}})
    if (value && !(*value > 0 && *value <= 1)) refuse(flag, *value, "a number above 0, at most 1");
  for (const auto& [flag, value] : {std::pair{"--beta1", options.beta1}, std::pair{"--beta2", options.beta2}})
    if (value && !(*value >= 0 && *value < 1)) refuse(flag, *value, "a number from 0 to below 1");
}

Dataset open_checked(const TrainOptions& options, ImageShape shape) {
  const bool two = find_model(options.model).build_default().step == StepKind::cyclic;
  Dataset dataset =
      (two ? open_domains : open_dataset)(options.dataset, shape, {.now = false, .cached = options.image_cache});
  if (dataset.count() < options.batch)
    refuse("--batch", options.batch, fmt::format("at most the {} images of {}", dataset.count(), dataset.name));
  return dataset;
}

const TrainOptions& checked(const TrainOptions& options) {
  check(options);
  return options;
}

}  // namespace

void check(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  if (!options.image.empty()) find_image(model, options.image);
  if (options.batch < kMinBatch || options.batch > kMaxBatch)
    refuse("--batch", options.batch, fmt::format("{} to {}", kMinBatch, kMaxBatch));
  if (options.threads < 0 || options.threads > kMaxThreads)
    refuse("--threads", options.threads, fmt::format("1 to {}, or 0 for all cores", kMaxThreads));
  check_rates(options);
  if (!(options.average_decay >= 0 && options.average_decay < 1))
    refuse("--ema", options.average_decay, "a number from 0 to below 1");
  check_name("--backend", options.backend, kBackendNames);
  if (!options.precision.empty()) check_name("--precision", options.precision, kPrecisionNames);
  if (options.backend == "cpu" && !options.precision.empty() && options.precision != "fp32")
    refuse("--precision", options.precision, "fp32 with --backend cpu");
  if (!options.loss.empty()) check_name("--loss", options.loss, kLossNames);
  const Gan gan = model.build_default();
  if (gan.step == StepKind::variational && !options.loss.empty())
    refuse("--loss", options.loss, fmt::format("none: {} has no adversary", model.name));
  if (gan.takes_images() && has_penalty(step_options_of(options).loss))
    refuse("--loss", options.loss, fmt::format("one without a gradient penalty for {}", model.name));
  if (gan.step != StepKind::adversarial && options.discriminator_steps != 1)
    refuse("--d-steps", options.discriminator_steps, fmt::format("1: {} updates both networks once", model.name));
  if (options.stage_steps < 0 || options.stage_steps > kMaxSteps)
    refuse("--stage-steps", options.stage_steps, fmt::format("1 to {}", kMaxSteps));
  if (options.stage_steps > 0 && !model.grows())
    refuse("--stage-steps", options.stage_steps, fmt::format("none: {} does not grow", model.name));
  for (const auto& [flag, bits] :
       {std::pair{"--compression", options.compression}, std::pair{"--activations", options.activations}})
    check_name(flag, bits, kCompressionNames);
  if (options.loader.prefetch < 0 || options.loader.prefetch > kMaxPrefetch)
    refuse("--prefetch", options.loader.prefetch, fmt::format("0 to {}", kMaxPrefetch));
  if (options.loader.threads < 1 || options.loader.threads > kMaxThreads)
    refuse("--loader-threads", options.loader.threads, fmt::format("1 to {}", kMaxThreads));
  if (options.discriminator_steps < 1 || options.discriminator_steps > kMaxDiscriminatorSteps)
    refuse("--d-steps", options.discriminator_steps, fmt::format("1 to {}", kMaxDiscriminatorSteps));
}

ImageShape image_of(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  if (!options.image.empty()) return find_image(model, options.image);
  if (model.images.size() == 1) return model.images.front();
  const auto of_data = image_of_dataset(options.dataset);
  const bool fits = of_data && std::find(model.images.begin(), model.images.end(), *of_data) != model.images.end();
  return fits ? *of_data : model.images.front();
}

Gan build_gan(const TrainOptions& options) { return find_model(options.model).build_final(image_of(options)); }

GanOptions gan_options_of(const TrainOptions& options) {
  return {.average = options.average_decay > 0,
          .gradient_penalty = has_penalty(step_options_of(options).loss),
          .activations = {options.recompute, compression_of(options.activations)}};
}

StepOptions step_options_of(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  StepOptions step{.loss = options.loss.empty() ? model.loss : AdversarialLoss(index_of(kLossNames, options.loss)),
                   .discriminator_steps = options.discriminator_steps,
                   .adam = model.adam,
                   .average_decay = options.average_decay};
  if (step.loss == model.loss) step.penalty = model.penalty;
  step.adam.learning_rate = options.learning_rate.value_or(step.adam.learning_rate);
  step.adam.beta1 = options.beta1.value_or(step.adam.beta1);
  step.adam.beta2 = options.beta2.value_or(step.adam.beta2);
  step.adam.epsilon = options.epsilon.value_or(step.adam.epsilon);
  return step;
}

std::unique_ptr<Backend> make_backend(const TrainOptions& options) {
  const bool on_gpu = options.backend == "cuda" || (options.backend == "auto" && count_gpus().count > 0);
  if (!on_gpu)
    return make_eigen_backend(options.threads > 0 ? options.threads
                                                  : cores_of_process(cores_of_launcher(), usable_cores()));
  CudaOptions cuda{.device = options.gpu,
                   .graph = options.graph && !options.host_random,
                   .host_random = options.host_random,
                   .loads_a_step = options.discriminator_steps * build_gan(options).loads(),
                   .choices = options.time_algorithms ? &kept_choices() : nullptr,
                   .plans = &kept_plans()};
  if (!options.precision.empty()) cuda.precision = Precision(index_of(kPrecisionNames, options.precision));
  return open_cuda_backend(cuda);
}

std::int64_t warmup_of(std::int64_t steps) { return std::min<std::int64_t>(kMaxWarmupSteps, steps / 10); }

Trainer::Trainer(const TrainOptions& options, Communicator* communicator, std::unique_ptr<Backend> backend)
    : options_(checked(options)),
      step_options_(step_options_of(options)),
      backend_(backend != nullptr ? std::move(backend) : make_backend(options)),
      ops_(backend_->ops.get()),
      model_(find_model(options.model)),
      image_(image_of(options)),
      dataset_(open_checked(options, image_)),
      random_(options.seed),
      communicator_(communicator) {
  if (backend_->info.backend == "eigen" && !options.precision.empty() && options.precision != "fp32")
    refuse("--precision", options.precision, "fp32: there is no GPU here (--backend cuda says why)");
  if (communicator != nullptr) {
    if (backend_->gradient_reducer != nullptr) backend_->gradient_reducer->join(*communicator);
    ops_->set_shard(communicator->shard());
    if (options.synchronized_norm) ops_->set_norm_communicator(communicator);
    if (dataset_.count() < global_batch())
      refuse("--batch", options.batch,
             fmt::format("at most {} for each of {} processes: {} has {} images", dataset_.count() / shard().ranks,
                         shard().ranks, dataset_.name, dataset_.count()));
  }
  check_memory(options_, *ops_, ops_->available_bytes());
  ops_->timeline().set_while_waiting([this] {
    if (const auto ahead = batches_->peek()) ops_->timeline().prefetch_images(ahead->first(gan_->real.size()));
  });
  enter_stage(current_stage());
}

Trainer::~Trainer() {
  if (backend_->gradient_reducer != nullptr) backend_->gradient_reducer->leave();
}

TrainingStage Trainer::current_stage() const { return stage_after(model_, image_, steps_done_, options_.stage_steps); }

void Trainer::enter_stage(const TrainingStage& stage) {
  Gan next = model_.build(image_, stage.growth);
  if (next.classes > 0) check_labels(dataset_, next.classes, next.model);
  const GanOptions gan_options = gan_options_of(options_);
  memory_bytes_ = next.planned_memory_bytes(*ops_, options_.batch, gan_options);
  const auto& judges = next.discriminator.layers();
  if (ops_->norm_communicator() != nullptr && gan_options.gradient_penalty &&
      std::any_of(judges.begin(), judges.end(), [](const auto& layer) { return !layer->statistics().empty(); }))
    throw ConfigError(fmt::format(
        "--sync-batch-norm: found it with {}, expected another loss for {}: the gradient penalty differentiates its "
        "discriminator's batch norms for one process's images only",
        kLossNames[static_cast<std::size_t>(step_options_.loss)], options_.model));
  if (gan_) gan_->release_activations();
  next.prepare(*ops_, options_.batch, options_.seed, gan_options);
  if (gan_) next.take_over(*gan_, *ops_);
  waited_s_ += reducers_waited_s();
  generator_reducer_.reset();
  discriminator_reducer_.reset();
  gan_ = std::move(next);
  stage_ = stage;
  if (communicator_ != nullptr) {
    const Compression compression = compression_of(options_.compression);
    generator_reducer_.emplace(gan_->generator, *backend_, *communicator_, compression);
    discriminator_reducer_.emplace(gan_->discriminator, *backend_, *communicator_, compression);
  }

  const bool whole = gan_->image == image_;
  const std::int64_t epoch = batches_ ? batches_->epoch() : 1;
  const std::size_t position = batches_ ? batches_->position() : 0;
  batches_.reset();  // its threads read the images that are replaced next
  stage_images_ = whole ? Images{} : shrink(whole_dataset().images, gan_->image);
  start_loader(epoch, position);
  if (options_.trace) {
    clock_ = StepClock();
    clock_.record(*ops_, gan_->generator.layers().size(), gan_->discriminator.layers().size(),
                  options_.discriminator_steps, !gan_->lazy.any());
  }
}

const Dataset& Trainer::whole_dataset() {
  if (!dataset_.images.pixels.empty()) return dataset_;
  // The loader must not read while the pixels are put in place.
  const bool loading = batches_.has_value();
  const std::int64_t epoch = loading ? batches_->epoch() : 1;
  const std::size_t position = loading ? batches_->position() : 0;
  batches_.reset();
  dataset_.decode_all();
  if (loading) start_loader(epoch, position);
  return dataset_;
}

void Trainer::start_loader(std::int64_t epoch, std::size_t position) {
  const auto bytes = static_cast<std::size_t>(gan_->image.pixels());
  ReadImage read = [this](std::uint32_t index, std::uint8_t* out) { dataset_.read(index, out); };
  ReadImage other;
  if (gan_->image != image_)
    read = [this, bytes](std::uint32_t index, std::uint8_t* out) {
      std::memcpy(out, stage_images_.pixels.data() + index * bytes, bytes);
    };
  if (dataset_.other) other = [this](std::uint32_t index, std::uint8_t* out) { dataset_.other->read(index, out); };
  batches_.emplace(dataset_.count(), bytes, std::move(read), options_.batch, options_.seed, options_.loader, shard(),
                   BesideImages{dataset_.labels, gan_->classes, std::move(other)});
  batches_->seek(epoch, position);
  ops_->timeline().discard_step();
}

void Trainer::enter_next_stage() {
  if (clock_.recording()) {
    clock_.end_step();
    const auto recorded = static_cast<std::int64_t>(clock_.wall_s().size());
    if (recorded > 0) finished_stages_.push_back(stage_trace(warmup_of(recorded), finished_kernels_));
  }
  enter_stage(current_stage());
}

void Trainer::load_real() {
  clock_.begin_phase(Phase::load);
  const auto pixels = batches_->next();
  clock_.begin_phase(Phase::copy);
  gan_->place_real(*ops_, pixels);
}

Losses Trainer::mean_over_processes(Losses losses) {
  stopping_ = stop_asked_;
  if (communicator_ == nullptr) return losses;
  double values[] = {losses.discriminator, losses.generator, losses.path_length, stop_asked_ ? 1.0 : 0.0};
  communicator_->sum(values);
  stopping_ = values[3] > 0;
  return {values[0] / shard().ranks, values[1] / shard().ranks, values[2] / shard().ranks};
}

double Trainer::reducers_waited_s() const {
  return (generator_reducer_ ? generator_reducer_->waited_s() : 0) +
         (discriminator_reducer_ ? discriminator_reducer_->waited_s() : 0);
}

void Trainer::begin_step() {
  if (stage_.ends_after >= 0) {
    if (steps_done_ >= stage_.ends_after) enter_next_stage();
    *gan_->share = current_stage().share;
  }
  clock_.begin_step();
  kernel::begin_step(*gan_, *ops_, step_options_);
  begin_gan_step(*gan_, *ops_, random_, step_options_, clock_, [this] { load_real(); },
                 {generator_reducer_ ? &*generator_reducer_ : nullptr,
                  discriminator_reducer_ ? &*discriminator_reducer_ : nullptr});
  ++steps_done_;
  ++begun_;
}

Progress Trainer::take_step() {
  Losses losses = take_losses(*ops_);
  clock_.step_done();
  --begun_;
  losses = mean_over_processes(losses);
  average_path_length(*gan_, losses);
  const std::int64_t number = steps_done_ - begun_;
  if (!std::isfinite(losses.discriminator) || !std::isfinite(losses.generator))
    throw Failure(fmt::format("step {}: the losses are no longer finite ({} {}, {} {}); try a lower --lr", number,
                              loss_names(gan_->step).discriminator, losses.discriminator,
                              loss_names(gan_->step).generator, losses.generator));
  return {number, losses};
}

Losses Trainer::step() {
  while (begun_ > 0) take_step();  // of a run that was left by an exception
  begin_step();
  return take_step().losses;
}

bool Trainer::may_be_ahead() const {
  const bool same_stage = stage_.ends_after < 0 || steps_done_ < stage_.ends_after;
  return backend_->timeline->has_clock() && same_stage && !clock_.is_marked();
}

RunResult Trainer::run(std::int64_t steps, const std::function<void(const Progress&)>& report,
                       const std::function<bool(std::int64_t)>& pauses) {
  using Clock = std::chrono::steady_clock;
  while (begun_ > 0) take_step();  // of a run that was left by an exception
  std::optional<UtilizationSampler> sampler;
  if (clock_.recording()) {
    clock_.reserve(static_cast<std::size_t>(steps));
    sampler.emplace(kSampleInterval, GpuMeter::open(backend_->info.bus_id));
  }
  RunResult result;
  result.steps = steps;
  const auto take = [&] {
    const Progress progress = take_step();
    result.losses = progress.losses;
    if (report) report(progress);
  };
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    begin_step();
    if (begun_ == 2) take();
    const bool pause = report && (!pauses || pauses(steps_done_));
    if (i + 1 == steps || pause || !may_be_ahead()) take();
  }
  clock_.end_step();
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (sampler) utilization_ = sampler->finish();
  return result;
}

traces::TraceBatch Trainer::stage_trace(std::int64_t warmup, std::vector<traces::TraceKernel>& kernels) const {
  traces::TraceBatch batch = make_trace_batch(*gan_, clock_, static_cast<std::size_t>(warmup));
  batch.memory_bytes = memory_bytes_;
  batch.stage = stage_name(*gan_);
  const StepLaunches launches = launches_of(options_, stage_.growth);
  kernels.insert(kernels.end(), launches.kernels.begin(), launches.kernels.end());
  // The CPU launches nothing; its trace states what a GPU would.
  if (!backend_->timeline->has_clock())
    for (traces::TracePhase& phase : batch.phases) phase.launches = launches.in_phases.at(phase.name);
  return batch;
}

traces::StepTrace Trainer::trace(std::int64_t warmup) {
  assert(clock_.recording() && warmup < steps_done_);
  clock_.end_step();
  traces::StepTrace trace;
  trace.device = measure_device(*backend_);
  trace.software = {"ganymede", GANYMEDE_VERSION, backend_->info.backend};
  trace.model = options_.model;
  trace.precision = backend_->info.precision;
  trace.seed = options_.seed;
  trace.recorded_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  // Each stage of a growing model has its own warm-up steps.
  const auto recorded = static_cast<std::int64_t>(clock_.wall_s().size());
  if (!finished_stages_.empty()) warmup = warmup_of(recorded);
  const std::int64_t period = std::max(gan_->lazy.penalty_every, gan_->lazy.path_every);  // only whole ones are kept
  if (recorded - warmup >= period) warmup = recorded - (recorded - warmup) / period * period;
  trace.batches = finished_stages_;
  trace.kernels = finished_kernels_;
  traces::TraceBatch batch = stage_trace(warmup, trace.kernels);
  batch.utilization = utilization_;
  for (const Network* network : {&gan_->generator, &gan_->discriminator}) {
    double flops = 0;
    for (const auto& phase : batch.phases)
      if (phase.network == network->name()) flops += phase.flops;
    trace.networks[network->name()] = {static_cast<std::int64_t>(network->parameter_count()), flops / options_.batch,
                                       static_cast<std::int64_t>(network->gradient_bytes())};
  }
  trace.batches.push_back(std::move(batch));
  return trace;
}

}  // namespace ganymede::kernel

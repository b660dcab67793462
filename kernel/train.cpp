#include "kernel/train.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <cmath>
#include <ctime>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "kernel/device_limits.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/step_trace_writer.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kWarmupMost = 10;
constexpr int kBatchMin = 2;  // batch normalisation needs a variance

template <class Value>
[[noreturn]] void refuse(std::string_view flag, const Value& found, std::string_view expected) {
  throw ConfigError(fmt::format("{}: found {}, expected {}", flag, found, expected));
}

void check_adam(const AdamParameters& adam) {
  if (!(adam.learning_rate > 0 && adam.learning_rate <= 1))
    refuse("--lr", adam.learning_rate, "a number above 0, at most 1");
  if (!(adam.beta1 >= 0 && adam.beta1 < 1)) refuse("--beta1", adam.beta1, "a number from 0 to below 1");
}

Dataset open_checked(const TrainOptions& options, ImageShape shape) {
  Dataset dataset = open_dataset(options.dataset, shape);
  if (dataset.images.count < options.batch)
    refuse("--batch", options.batch, fmt::format("at most the {} images of {}", dataset.images.count, dataset.name));
  return dataset;
}

const TrainOptions& checked(const TrainOptions& options) {
  check(options);
  return options;
}

}  // namespace

void check(const TrainOptions& options) {
  find_model(options.model);
  if (options.batch < kBatchMin || options.batch > kBatchMax)
    refuse("--batch", options.batch, fmt::format("{} to {}", kBatchMin, kBatchMax));
  if (options.threads < 0 || options.threads > kThreadsMax)
    refuse("--threads", options.threads, fmt::format("1 to {}, or 0 for all cores", kThreadsMax));
  check_adam(options.adam);
}

std::unique_ptr<Ops> make_ops(const TrainOptions& options) {
  if (options.backend == "cpu") return make_eigen_ops(options.threads > 0 ? options.threads : usable_cores());
  if (options.backend == "cuda")
    throw ConfigError(
        "--backend: found cuda, which this build has not got: the CUDA backend comes later; expected cpu");
  refuse("--backend", options.backend, "cpu");
}

std::int64_t warmup_of(std::int64_t steps) { return std::min<std::int64_t>(kWarmupMost, steps / 10); }

Trainer::Trainer(const TrainOptions& options)
    : options_(checked(options)),
      ops_(make_ops(options)),
      gan_(find_model(options.model).build()),
      memory_bytes_(gan_.planned_memory_bytes(*ops_, options.batch)),
      dataset_(open_checked(options, gan_.image)),
      batches_(dataset_.images, options.batch, options.seed),
      random_(options.seed) {
  gan_.prepare(*ops_, options.batch, options.seed);
  if (options.trace) clock_.record(*ops_, gan_.generator.layers().size(), gan_.discriminator.layers().size());
}

Trainer::~Trainer() = default;

Losses Trainer::step() {
  clock_.begin_step();
  clock_.enter(Phase::load);
  const auto pixels = batches_.next();
  clock_.enter(Phase::copy);
  ops_->load_images(gan_.real, pixels, gan_.darkest);
  const Losses losses = gan_step(gan_, *ops_, random_, options_.adam, clock_);
  ++steps_done_;
  if (!std::isfinite(losses.discriminator) || !std::isfinite(losses.generator))
    throw Failure(
        fmt::format("step {}: the losses are no longer finite (discriminator {}, generator {}); try a lower --lr",
                    steps_done_, losses.discriminator, losses.generator));
  return losses;
}

RunResult Trainer::run(std::int64_t steps, const std::function<void(const Progress&)>& report) {
  using Clock = std::chrono::steady_clock;
  std::optional<UtilizationSampler> sampler;
  if (clock_.recording()) {
    clock_.reserve(static_cast<std::size_t>(steps));
    sampler.emplace();
  }
  RunResult result;
  result.steps = steps;
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    result.losses = step();
    if (report) report({steps_done_, result.losses});
  }
  clock_.end_step();
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (sampler) utilization_ = sampler->finish();
  return result;
}

StepTrace Trainer::trace(std::int64_t warmup) {
  assert(clock_.recording() && warmup < steps_done_);
  clock_.end_step();
  StepTrace trace;
  trace.device = measure_device(*ops_);
  trace.software = {"ganymede", GANYMEDE_VERSION, ops_->backend()};
  trace.model = options_.model;
  trace.seed = options_.seed;
  trace.recorded_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  TraceBatch batch = make_trace_batch(gan_, clock_, static_cast<std::size_t>(warmup));
  batch.memory_bytes = memory_bytes_;
  batch.utilization = utilization_;
  for (const Network* network : {&gan_.generator, &gan_.discriminator}) {
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

#include "kernel/train.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iterator>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "kernel/device_limits.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/step_trace_writer.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kWarmupMost = 10;
constexpr int kBatchMin = 2;  // batch normalisation needs a variance

template <class Value>
[[noreturn]] void refuse(std::string_view flag, const Value& found, std::string_view expected) {
  throw ConfigError(fmt::format("{}: found {}, expected {}", flag, found, expected));
}

void check_rates(const TrainOptions& options) {
  const auto within = [](const std::optional<float>& value, auto good) { return !value || good(*value); };
  if (!within(options.learning_rate, [](float rate) { return rate > 0 && rate <= 1; }))
    refuse("--lr", *options.learning_rate, "a number above 0, at most 1");
  const auto is_decay = [](float beta) { return beta >= 0 && beta < 1; };
  if (!within(options.beta1, is_decay)) refuse("--beta1", *options.beta1, "a number from 0 to below 1");
  if (!within(options.epsilon, [](float epsilon) { return epsilon > 0 && epsilon <= 1; }))
    refuse("--epsilon", *options.epsilon, "a number above 0, at most 1");
  if (!within(options.beta2, is_decay)) refuse("--beta2", *options.beta2, "a number from 0 to below 1");
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
  const Model& model = find_model(options.model);
  if (!options.image.empty()) find_image(model, options.image);
  if (options.batch < kBatchMin || options.batch > kBatchMax)
    refuse("--batch", options.batch, fmt::format("{} to {}", kBatchMin, kBatchMax));
  if (options.threads < 0 || options.threads > kThreadsMax)
    refuse("--threads", options.threads, fmt::format("1 to {}, or 0 for all cores", kThreadsMax));
  check_rates(options);
  if (!(options.average_decay >= 0 && options.average_decay < 1))
    refuse("--ema", options.average_decay, "a number from 0 to below 1");
  if (std::find(std::begin(kLossNames), std::end(kLossNames), options.loss) == std::end(kLossNames))
    refuse("--loss", options.loss, fmt::format("{}", fmt::join(kLossNames, ", ")));
  if (options.discriminator_steps < 1 || options.discriminator_steps > kDiscriminatorStepsMax)
    refuse("--d-steps", options.discriminator_steps, fmt::format("1 to {}", kDiscriminatorStepsMax));
}

Gan build_gan(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  if (!options.image.empty()) return model.build(find_image(model, options.image));
  if (model.images.size() == 1) return model.build_default();
  const auto of_data = image_of_dataset(options.dataset);
  const bool fits = of_data && std::find(model.images.begin(), model.images.end(), *of_data) != model.images.end();
  return fits ? model.build(*of_data) : model.build_default();
}

StepOptions step_options_of(const TrainOptions& options) {
  const auto name = std::find(std::begin(kLossNames), std::end(kLossNames), options.loss);
  StepOptions step{static_cast<AdversarialLoss>(name - std::begin(kLossNames)), options.discriminator_steps,
                   find_model(options.model).adam, options.average_decay};
  step.adam.learning_rate = options.learning_rate.value_or(step.adam.learning_rate);
  step.adam.beta1 = options.beta1.value_or(step.adam.beta1);
  step.adam.beta2 = options.beta2.value_or(step.adam.beta2);
  step.adam.epsilon = options.epsilon.value_or(step.adam.epsilon);
  return step;
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
      step_options_(step_options_of(options)),
      ops_(make_ops(options)),
      gan_(build_gan(options)),
      memory_bytes_(gan_.planned_memory_bytes(*ops_, options.batch, options.average_decay > 0)),
      dataset_(open_checked(options, gan_.image)),
      batches_(dataset_.images, options.batch, options.seed),
      random_(options.seed) {
  gan_.prepare(*ops_, options.batch, options.seed, options.average_decay > 0);
  if (options.trace)
    clock_.record(*ops_, gan_.generator.layers().size(), gan_.discriminator.layers().size(),
                  options.discriminator_steps);
}

Trainer::~Trainer() = default;

void Trainer::load_real() {
  clock_.enter(Phase::load);
  const auto pixels = batches_.next();
  clock_.enter(Phase::copy);
  ops_->load_images(gan_.real, pixels, gan_.darkest);
}

Losses Trainer::step() {
  clock_.begin_step();
  const Losses losses = gan_step(gan_, *ops_, random_, step_options_, clock_, [this] { load_real(); });
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

namespace {

std::string text_of(const RandomStream::State& state) {
  return fmt::format("{:016x} {:016x} {:016x} {:016x}", state[0], state[1], state[2], state[3]);
}

/// What a checkpoint's metadata say, or the error that they do not.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& values, const std::string& file) : values_(values), file_(file) {}

  const std::string& text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw ConfigError(fmt::format("{}: \"{}\" is missing in its metadata", file_, key));
    return found->second;
  }
  void expect(const std::string& key, const std::string& expected) const {
    if (text(key) != expected)
      throw ConfigError(fmt::format("{}: found a checkpoint of {} {}, expected {}", file_, key, text(key), expected));
  }
  std::int64_t number(const std::string& key, std::int64_t least) const {
    std::int64_t value = -1;
    const std::string& digits = text(key);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < least) bad(key);
    return value;
  }
  RandomStream::State state(const std::string& key) const {
    RandomStream::State state{};
    const std::string& words = text(key);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const char* begin = words.data() + 17 * i;
      if (words.size() != 67 || std::from_chars(begin, begin + 16, state[i], 16).ptr != begin + 16) bad(key);
    }
    return state;
  }

 private:
  [[noreturn]] void bad(const std::string& key) const {
    throw ConfigError(fmt::format("{}: \"{}\" of its metadata is \"{}\"", file_, key, text(key)));
  }

  const std::map<std::string, std::string>& values_;
  const std::string& file_;
};

std::uint64_t sum_of(const Images& images) {
  return fnv1a({reinterpret_cast<const char*>(images.pixels.data()), images.pixels.size()});
}

}  // namespace

SafeTensors Trainer::checkpoint() {
  clock_.end_step();  // what follows is no part of it
  if (data_sum_ == 0) data_sum_ = sum_of(dataset_.images);
  SafeTensors content = tensors_of(gan_, *ops_, true);
  content.metadata.merge(
      std::map<std::string, std::string>{{"image", to_string(gan_.image)},
                                         {"batch", fmt::format("{}", options_.batch)},
                                         {"seed", fmt::format("{}", options_.seed)},
                                         {"ema", fmt::format("{}", options_.average_decay)},
                                         {"loss", options_.loss},
                                         {"d-steps", fmt::format("{}", options_.discriminator_steps)},
                                         {"data", fmt::format("{:016x}", data_sum_)},
                                         {"steps", fmt::format("{}", steps_done_)},
                                         {"epoch", fmt::format("{}", batches_.epoch())},
                                         {"position", fmt::format("{}", batches_.position())},
                                         {"latent", text_of(random_.latent.state())},
                                         {"dropout", text_of(random_.dropout.state())},
                                         {"generator.updates", fmt::format("{}", gan_.generator.updates())},
                                         {"discriminator.updates", fmt::format("{}", gan_.discriminator.updates())}});
  return content;
}

void Trainer::restore(const SafeTensors& checkpoint, const std::string& file) {
  if (data_sum_ == 0) data_sum_ = sum_of(dataset_.images);
  const Metadata in(checkpoint.metadata, file);
  in.expect("model", options_.model);
  in.expect("image", to_string(gan_.image));
  in.expect("batch", fmt::format("{}", options_.batch));
  in.expect("seed", fmt::format("{}", options_.seed));
  in.expect("ema", fmt::format("{}", options_.average_decay));
  in.expect("loss", options_.loss);
  in.expect("d-steps", fmt::format("{}", options_.discriminator_steps));
  in.expect("data", fmt::format("{:016x}", data_sum_));
  const std::int64_t steps = in.number("steps", 0), epoch = in.number("epoch", 1), position = in.number("position", 0);
  const std::int64_t g_updates = in.number("generator.updates", 0), d_updates = in.number("discriminator.updates", 0);
  if (position > dataset_.images.count)
    throw ConfigError(fmt::format("{}: found position {} in {} images", file, position, dataset_.images.count));
  const auto latent = in.state("latent"), dropout = in.state("dropout");
  set_tensors(gan_, *ops_, checkpoint, true, file);
  steps_done_ = steps;
  batches_.seek(epoch, static_cast<std::size_t>(position));
  random_.latent.restore(latent);
  random_.dropout.restore(dropout);
  gan_.generator.set_updates(g_updates);
  gan_.discriminator.set_updates(d_updates);
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

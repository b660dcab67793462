#include "kernel/launches.hpp"

#include <algorithm>
#include <cassert>

#include "kernel/ops/counting/counting_backend.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/launch_list.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {
namespace {

/// Images of the step whose kernels are listed. What does not grow with the batch must be less than a quarter of what
/// does.
constexpr int kCountedBatch = 64;

/// The precision changes what a GPU launches, and the bytes that move. Another one than ours, and none, is fp32.
Precision counted_precision(const TrainOptions& options) {
  const auto found = std::find(std::begin(kPrecisionNames), std::end(kPrecisionNames), options.precision);
  return found != std::end(kPrecisionNames) ? static_cast<Precision>(found - std::begin(kPrecisionNames))
                                            : Precision::fp32;
}

/// Names the phase of each kernel: phases run one after the other, each with as many launches as the clock has counted.
void name_phases(std::vector<traces::TraceKernel>& kernels, const traces::TraceBatch& step) {
  auto kernel = kernels.begin();
  for (const traces::TracePhase& phase : step.phases) {
    double left = static_cast<double>(phase.launches);
    for (; left > 0 && kernel != kernels.end(); ++kernel) {
      kernel->phase = phase.name;
      kernel->stage = step.stage;
      left -= kernel->times;
    }
    assert(left == 0);
  }
  assert(kernel == kernels.end());
}

}  // namespace

StepLaunches launches_of(const TrainOptions& options, Growth growth) {
  const auto backend = make_counting_backend(counted_precision(options));
  TensorOps& ops = *backend->ops;
  Gan gan = find_model(options.model).build(image_of(options), growth);
  gan.prepare(ops, kCountedBatch, options.seed, gan_options_of(options));
  StepClock clock;
  clock.record(ops, gan.generator.layers().size(), gan.discriminator.layers().size(), options.discriminator_steps);
  StepRandom random(options.seed);
  const std::vector<std::uint8_t> pixels(gan.real.size() + gan.labels->size());
  LaunchList list{kCountedBatch, {}};
  const bool listed = gan_options_of(options).activations.is_plain();
  if (listed) ops.list_launches(&list);
  clock.begin_step();
  gan_step(gan, ops, random, step_options_of(options), clock,
           [&] {
             clock.begin_phase(Phase::load);
             clock.begin_phase(Phase::copy);
             gan.place_real(ops, pixels);
           },
           {nullptr, nullptr});
  clock.step_done();
  clock.end_step();
  traces::TraceBatch step = make_trace_batch(gan, clock, 0);
  step.stage = stage_name(gan);
  if (listed) name_phases(list.kernels, step);
  StepLaunches launches{std::move(list.kernels), {}};
  for (const traces::TracePhase& phase : step.phases) launches.in_phases[phase.name] = phase.launches;
  return launches;
}

std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options, Growth growth) {
  return launches_of(options, growth).kernels;
}

std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options) {
  return kernels_of(options, find_model(options.model).final_growth(image_of(options)));
}

}  // namespace ganymede::kernel

#include "kernel/launches.hpp"

#include <cassert>

#include "kernel/ops/counting/counting_backend.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/launch_list.hpp"
#include "kernel/step_trace_writer.hpp"

namespace ganymede::kernel {
namespace {

/// Images of the step whose kernels are listed. What does not grow with the batch must be less than a quarter of what
/// does.
constexpr int kCountedBatch = 64;

/// The precision in which GPUs launch conversions is the only one that changes the launches.
Precision counted_precision(const TrainOptions& options) {
  return options.precision == kPrecisionNames[static_cast<std::size_t>(Precision::bf16)] ? Precision::bf16
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

using traces::TraceKernel;

/// A kernel that rounds a convolution's operand to bf16 or, if `back`, makes fp32 of its result. `images`: false for
/// filters, which are as many for any batch.
TraceKernel conversion(const TraceKernel& convolution, std::int64_t numbers, bool images, bool back) {
  TraceKernel kernel;
  kernel.phase = convolution.phase, kernel.stage = convolution.stage, kernel.layer = convolution.layer;
  kernel.op = back ? "from_bf16" : "to_bf16";
  kernel.grows = images ? TraceKernel::Growth::rows : TraceKernel::Growth::none;
  kernel.rows = images ? convolution.batch : 1, kernel.cols = numbers;
  kernel.reads = back ? 0.5 : 1, kernel.writes = back ? 1 : 0.5;  // of numbers of 32 bits
  return kernel;
}

/// Gives the conversions around a convolution in bf16 their traffic: two operands before it, its result after it.
std::vector<TraceKernel> conversions_of(const TraceKernel& c) {
  const std::int64_t in = c.in_channels * c.in[0] * c.in[1] * c.in[2];
  const std::int64_t out = c.out_channels * c.out(0) * c.out(1) * c.out(2);
  const std::int64_t filters = c.out_channels * c.in_channels * c.window[0] * c.window[1] * c.window[2];
  const bool data = c.kind == TraceKernel::Kind::convolution_data_gradient;
  const bool weights = c.kind == TraceKernel::Kind::convolution_weight_gradient;
  return {conversion(c, data ? out : in, true, false), conversion(c, weights ? out : filters, weights, false),
          conversion(c,
                     weights ? filters
                     : data  ? in
                             : out,
                     !weights, true)};
}

/// Says that tensors are stored as fp32 where products are in bf16. A convolution's further kernels are its
/// conversions.
void state_storage(std::vector<TraceKernel>& kernels) {
  std::vector<TraceKernel> all;
  for (TraceKernel& kernel : kernels) {
    const bool converts = !all.empty() && all.back().is_convolution() && kernel.op == kFurtherKernel &&
                          kernel.times == cuda::kConversions;
    if (converts)
      for (TraceKernel& one : conversions_of(TraceKernel(all.back()))) all.push_back(std::move(one));
    else
      all.push_back(std::move(kernel));
  }
  for (TraceKernel& kernel : all)
    if (!kernel.is_convolution() && !kernel.is_product()) kernel.precision = "fp32";
  kernels = std::move(all);
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
  const std::vector<std::uint8_t> pixels(gan.real.size());
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
  clock.end_step();
  traces::TraceBatch step = make_trace_batch(gan, clock, 0);
  step.stage = stage_name(gan);
  if (listed) name_phases(list.kernels, step);
  if (counted_precision(options) == Precision::bf16) state_storage(list.kernels);
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

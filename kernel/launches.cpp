#include "kernel/launches.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernel/ops/cuda/every_op.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/launch_list.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {
namespace {

/// A Device (see kernel/ops/cuda/timeline.hpp) that counts launches.
class CountingDevice {
 public:
  explicit CountingDevice(Precision precision) : precision_(precision) {}
  std::string name() const { return "none"; }
  std::string instructions() const { return "none"; }
  std::string precision() const { return std::string(kPrecisionNames[static_cast<std::size_t>(precision_)]); }
  std::string bus_id() const { return ""; }
  double available_bytes() const { return 0; }
  std::int64_t launched() const { return launched_; }

  /// A place to which tensors refer and which nothing touches.
  Buffer allocate(std::size_t bytes) {
    static float nothing[16];
    return {{nothing, BufferRelease{[](void*, std::size_t) {}, bytes}}};
  }
  Buffer allocate_host(std::size_t bytes) { return allocate(bytes); }
  std::size_t convolution_workspace_bytes(const ConvolutionShape&, int) const { return 0; }
  void to_host(void* to, const void*, std::size_t bytes) {
    std::fill_n(static_cast<std::byte*>(to), bytes, std::byte{});
  }
  void to_device(void*, const void*, std::size_t) {}
  void synchronize() {}

  template <class Body>
  void each(std::size_t, const Body&) {
    ++launched_;
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int, int, const Term&, const Finish&, const Apply&) {
    ++launched_;
  }
  template <int N, class Term, class Apply>
  void rows(int, int, const Term&, const Apply&) {
    ++launched_;
  }
  void gemm(const cuda::Gemm&) { ++launched_; }
  void convolve(const cuda::ConvolutionCall& call, const Buffer&) {
    // A gradient of weights is converted to fp32. One kernel for a convolution and what follows needs tensor cores.
    const bool converts = precision_ == Precision::bf16 && call.pass == cuda::Pass::weights;
    const bool in_steps =
        call.after.has_value() && (precision_ == Precision::fp32 || call.shape.out_features() < kLeastFusedOutputs);
    launched_ += converts || in_steps ? 2 : 1;
  }

  cuda::StagedImages stage(const void*, std::size_t bytes) { return {nullptr, 0, bytes}; }
  void begin_capture() {}
  void end_capture(int) {}
  void discard_capture() {}
  void replay(int) {}
  void mark_end(std::size_t) {}
  void await_end(std::size_t) {}
  void mark(std::size_t) {}
  double mark_s(std::size_t) const { return 0; }
  void join(Communicator&) {}
  void reduce(float*, std::size_t) {}
  void gather(const std::uint8_t*, std::uint8_t*, std::size_t) {}
  void finish_reductions() {}
  void leave() {}

 private:
  Precision precision_;
  std::int64_t launched_ = 0;
};

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
/// The step has all phases; where others leave one out, a kernel's launches are the mean.
void name_phases(std::vector<traces::TraceKernel>& kernels, const traces::TraceBatch& step, const LazySteps& lazy) {
  auto kernel = kernels.begin();
  for (const traces::TracePhase& phase : step.phases) {
    double left = static_cast<double>(phase.launches);
    for (; left > 0 && kernel != kernels.end(); ++kernel) {
      kernel->phase = phase.name;
      kernel->stage = step.stage;
      left -= kernel->times;
      kernel->times /= interval_of(phase.name, lazy);
    }
    assert(left == 0);
  }
  assert(kernel == kernels.end());
}

}  // namespace

std::unique_ptr<Backend> make_counting_backend(Precision precision) {
  return cuda::make_backend(std::make_shared<CountingDevice>(precision), {.graph = false});
}

StepLaunches launches_of(const TrainOptions& options, Growth growth) {
  const auto backend = make_counting_backend(counted_precision(options));
  TensorOps& ops = *backend->ops;
  Gan gan = find_model(options.model).build(image_of(options), growth);
  gan.prepare(ops, kCountedBatch, options.seed, gan_options_of(options));
  StepClock clock;
  clock.record(ops, gan.generator.layers().size(), gan.discriminator.layers().size(), options.discriminator_steps,
               !gan.lazy.any());
  StepRandom random(options.seed);
  const std::vector<std::uint8_t> pixels(gan.batch_bytes());
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
  const LazySteps lazy = std::exchange(gan.lazy, {});  // so that nothing is the mean over steps yet
  traces::TraceBatch step = make_trace_batch(gan, clock, 0);
  step.stage = stage_name(gan);
  if (listed) name_phases(list.kernels, step, lazy);
  StepLaunches launches{std::move(list.kernels), {}};
  for (const traces::TracePhase& phase : step.phases) {
    const int every = interval_of(phase.name, lazy);
    launches.in_phases[phase.name] = (phase.launches + every - 1) / every;
  }
  return launches;
}

std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options, Growth growth) {
  return launches_of(options, growth).kernels;
}

std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options) {
  return kernels_of(options, find_model(options.model).final_growth(image_of(options)));
}

}  // namespace ganymede::kernel

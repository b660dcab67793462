#pragma once
// The GPU backend: TensorOps and GradientReducer over a Timeline. Each operation is a free function in one of the
// headers included here; this file only names them.
//
// Activations are [batch x positions x channels] (cuDNN's NHWC, which tensor cores need), so a Tensor of [features x
// batch] is a row-major matrix with one row for each image. Convolution weights are [outputs x taps x inputs].
// TensorOps::read_rows, write_rows, read_array and write_array convert what crosses to the host.

#include "kernel/ops/backend.hpp"
#include "kernel/ops/cuda/blocks.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/elements.hpp"
#include "kernel/ops/cuda/losses.hpp"
#include "kernel/ops/cuda/minibatch_stddev.hpp"
#include "kernel/ops/cuda/norms.hpp"
#include "kernel/ops/cuda/packed_gradients.hpp"
#include "kernel/ops/cuda/products.hpp"
#include "kernel/ops/cuda/random_ops.hpp"
#include "kernel/ops/cuda/synchronized_norm.hpp"

namespace ganymede::kernel::cuda {

/// E is the type in which activations and their gradients are stored.
template <class Device, class E>
class CudaOps final : public TensorOps {
 public:
  /// `timeline` must outlive the operations.
  CudaOps(Timeline<Device>& timeline, bool host_random)
      : TensorOps(timeline, MemoryLayout::channels_innermost, kStoredAs<E>), t_(timeline), host_random_(host_random) {}

  double available_bytes() const override { return t_.device().available_bytes(); }
  Buffer allocate_host(std::size_t bytes) override { return t_.device().allocate_host(bytes); }
  std::int64_t launched() const override { return t_.launched(); }
  std::size_t dense_workspace_bytes(int, int, int) const override { return 0; }
  std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const override {
    return t_.device().convolution_workspace_bytes(shape, batch);
  }
  void read(std::span<float> host, const float* from) override {
    t_.finish_step();
    if (!host.empty()) t_.device().to_host(host.data(), from, host.size_bytes());
  }
  void end_step(const float* results, std::size_t count) override { t_.end_step(results, count); }
  void take(std::span<float> results) override { t_.take(results); }
  void write(float* to, std::span<const float> host) override {
    assert(t_.is_eager());
    if (host.empty()) return;
    t_.device().to_device(to, host.data(), host.size_bytes());
    update_copy(to, host.size());
  }

 private:
  /// The weight as products read it.
  const E* operand(const float* weight) const {
    if constexpr (std::is_same_v<E, float>) return weight;
    const auto* copy = static_cast<const E*>(copy_of(weight));
    assert(copy != nullptr);  // weights are in memory of allocate_parameters()
    return copy;
  }
  /// Must be called after parameters were written, if there may be copies of them.
  void update_copy(const float* parameters, std::size_t count) {
    if (auto* copy = static_cast<Bf16*>(copy_of(parameters))) cuda::round_parameters(t_, copy, parameters, count);
  }
  void convolve(Pass pass, Tensor x, Tensor y, const ConvolutionShape& shape, const void* weight, bool accumulate) {
    t_.convolve({pass, shape, x.batch, x.data, y.data, const_cast<void*>(weight), accumulate}, workspace());
  }

  Buffer do_allocate(std::size_t bytes) override { return t_.device().allocate(bytes); }
  void do_read_elements(std::span<float> host, Tensor from) override {
    t_.finish_step();
    cuda::read_elements<E>(t_, host, from);
  }
  void do_write_elements(Tensor to, std::span<const float> host) override { cuda::write_elements<E>(t_, to, host); }

  void do_dense_forward(Tensor y, Tensor x, DenseParameters p) override {
    cuda::dense_forward<E>(t_, y, x, operand(p.weight), p.bias == nullptr ? nullptr : operand(p.bias));
  }
  void do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) override {
    cuda::dense_backward_data<E>(t_, dx, dy, operand(weight));
  }
  void do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) override {
    cuda::dense_backward_weights<E>(t_, d_weight, d_bias, dy, x, accumulate);
  }
  void do_convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight) override {
    convolve(Pass::forward, x, y, shape, operand(weight), false);
  }
  void do_convolve_leaky(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight,
                         const ConvolutionEpilogue& after) override {
    t_.convolve({Pass::forward, shape, x.batch, x.data, y.data, const_cast<E*>(operand(weight)), false, after},
                workspace());
  }
  void do_convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight) override {
    convolve(Pass::data, dx, dy, shape, operand(weight), false);
  }
  void do_convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape,
                                    bool accumulate) override {
    convolve(Pass::weights, x, dy, shape, d_weight, accumulate);
  }

  void do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& p) override {
    if (norm_communicator() != nullptr) return synchronized_norm().forward(y, x, p);
    cuda::batch_norm_leaky_forward<E>(t_, y, x, p);
  }
  void do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& p) override {
    cuda::batch_norm_leaky_inference<E>(t_, y, x, p);
  }
  void do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale, float* d_shift,
                                    bool accumulate) override {
    if (norm_communicator() != nullptr) return synchronized_norm().backward(dy, x, p, d_scale, d_shift, accumulate);
    cuda::batch_norm_leaky_backward<E>(t_, dy, x, p, d_scale, d_shift, accumulate);
  }
  void do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& p) override {
    cuda::batch_norm_leaky_tangent<E>(t_, y_dot, x_dot, x, p);
  }
  void do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                            const BatchNormParameters& p, float* d_scale, float* d_shift,
                                            bool accumulate) override {
    cuda::batch_norm_leaky_tangent_backward<E>(t_, dx, dy, x_dot, x, p, d_scale, d_shift, accumulate);
  }
  void do_pixel_norm_forward(Tensor x, float* scale, int channels) override {
    cuda::pixel_norm_forward<E>(t_, x, scale, channels);
  }
  void do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) override {
    cuda::pixel_norm_backward<E>(t_, dy, y, scale, channels);
  }
  void do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) override {
    cuda::minibatch_stddev_forward<E>(t_, y, x, positions);
  }
  void do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) override {
    cuda::minibatch_stddev_backward<E>(t_, dx, dy, x, positions);
  }
  void do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) override {
    cuda::minibatch_stddev_tangent<E>(t_, y_dot, x_dot, x, positions);
  }
  void do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) override {
    cuda::minibatch_stddev_tangent_backward<E>(t_, dx, dy, x_dot, x, positions);
  }

  void do_activate(Tensor x, Activation activation) override { cuda::activate<E>(t_, x, activation); }
  void do_activate_backward(Tensor dy, Tensor y, Activation activation) override {
    cuda::activate_backward<E>(t_, dy, y, activation);
  }
  void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters p, RandomStream& random) override {
    cuda::leaky_dropout_forward<E>(t_, draw(), x, mask, p, random);
  }
  void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p, float* d_bias,
                                 bool accumulate) override {
    cuda::leaky_dropout_backward<E>(t_, dy, y, mask, p, d_bias, accumulate);
  }
  void do_logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters p, DenseParameters dense,
                        RandomStream& random) override {
    if (!host_random_) return cuda::logit_forward<E>(t_, draw(), y, x, mask, p, dense, random);
    do_leaky_dropout_forward(x, mask, p, random);
    do_dense_forward(y, x, dense);
  }
  void do_logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters p, const float* weight,
                         const LogitGradients& d, bool accumulate) override {
    cuda::logit_backward<E>(t_, dx, dy, x, mask, p, weight, d, accumulate);
  }
  void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) override {
    cuda::bias_leaky_forward<E>(t_, x, bias, channels, factor, slope);
  }
  void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                              bool accumulate) override {
    cuda::bias_leaky_backward<E>(t_, dy, y, d_bias, channels, factor, slope, accumulate);
  }

  void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) override {
    cuda::pool<E>(t_, coarse, fine, shape, factor);
  }
  void do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) override {
    cuda::upsample<E>(t_, fine, coarse, shape, factor);
  }
  void do_combine(Tensor y, float a, Tensor x, float b) override { cuda::combine<E>(t_, y, a, x, b); }
  void do_fill(Tensor x, float value) override { cuda::fill<E>(t_, x, value); }
  void do_average(float* average, const float* values, std::size_t count, float decay) override {
    cuda::average(t_, average, values, count, decay);
    update_copy(average, count);
  }
  void do_copy(float* to, const float* from, std::size_t count) override {
    cuda::copy(t_, to, from, count * sizeof(float));
    update_copy(to, count);
  }
  void do_copy_elements(Tensor to, Tensor from) override { cuda::copy(t_, to.data, from.data, to.size() * sizeof(E)); }
  void do_pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) override {
    cuda::pack(t_, compression, to, static_cast<const E*>(from), count);
  }
  void do_unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) override {
    cuda::unpack(t_, compression, static_cast<E*>(to), from, count);
  }
  void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
               const AdamRule& rule) override {
    cuda::adam(t_, parameters, static_cast<Bf16*>(copy_of(parameters)), gradients, first, second, count, rule);
  }

  void do_fill_normal(Tensor x, RandomStream& random) override { cuda::fill_normal<E>(t_, draw(), x, random); }
  void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) override {
    cuda::load_images<E>(t_, x, host_pixels, low, channels);
  }
  void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) override {
    cuda::interpolate<E>(t_, draw(), between, real, fake, random);
  }

  void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) override {
    cuda::adversarial_loss<E>(t_, loss, d_logits, logits, term);
  }
  void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight) override {
    cuda::gradient_penalty<E>(t_, loss, direction, gradient, weight);
  }
  void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                              std::span<const std::uint8_t> host_labels) override {
    cuda::classification_loss<E>(t_, loss, d_logits, logits, host_labels);
  }

  SynchronizedNorm<E, Device> synchronized_norm() const { return {t_, norm_communicator()->shard().ranks}; }
  DrawOptions draw() const { return {shard(), host_random_}; }

  Timeline<Device>& t_;
  bool host_random_;
};

template <class Device>
class CudaGradientReducer final : public GradientReducer {
 public:
  explicit CudaGradientReducer(Timeline<Device>& timeline) : timeline_(timeline) {}

  void join(Communicator& communicator) override {
    // NCCL's documentation warns of deadlocks where one process replays graphs on several GPUs.
    if (communicator.shares_process()) timeline_.run_call_by_call();
    timeline_.device().join(communicator);
    replicas_ = communicator.shard().ranks;
  }
  void reduce(float* gradients, std::size_t count, const PackedGradients& packed) override {
    if (packed.compression == Compression::none) {
      if (timeline_.launch()) timeline_.device().reduce(gradients, count);
      return;
    }
    send_packed(timeline_, gradients, count, packed);
    sent_.push_back({gradients, count, packed});
  }
  void finish() override {
    timeline_.finish_reductions();
    for (const Sent& bucket : sent_)
      average_packed(timeline_, bucket.gradients, bucket.count, bucket.packed, replicas_);
    sent_.clear();
  }
  void leave() override { timeline_.device().leave(); }

 private:
  struct Sent {
    float* gradients;
    std::size_t count;
    PackedGradients packed;
  };

  Timeline<Device>& timeline_;
  int replicas_ = 1;
  std::vector<Sent> sent_;  ///< compressed buckets since the last finish()
};

/// The backend over `device`, which lives at least as long.
template <class Device>
std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device, const CudaOptions& options) {
  auto backend = std::make_unique<Backend>();
  backend->info = {.backend = "cuda",
                   .device = device->name(),
                   .instructions = device->instructions(),
                   .threads = 1,
                   .bus_id = device->bus_id(),
                   .precision = device->precision()};
  auto timeline = std::make_unique<Timeline<Device>>(std::move(device), options.graph);
  if (backend->info.precision == kPrecisionNames[static_cast<std::size_t>(Precision::bf16)])
    backend->ops = std::make_unique<CudaOps<Device, Bf16>>(*timeline, options.host_random);
  else
    backend->ops = std::make_unique<CudaOps<Device, float>>(*timeline, options.host_random);
  backend->gradient_reducer = std::make_unique<CudaGradientReducer<Device>>(*timeline);
  backend->timeline = std::move(timeline);
  return backend;
}

}  // namespace ganymede::kernel::cuda

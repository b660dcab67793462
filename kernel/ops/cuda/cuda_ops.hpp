#pragma once
// The operations of the GPU backend: TensorOps over a Timeline. The headers of every_op.hpp, one for each kind, define
// what this file only names, so that a GPU's compiler need not take all of them at once (*_ops.cu).
//
// Activations are [batch x positions x channels] (cuDNN's NHWC, which tensor cores need), so a Tensor of [features x
// batch] is a row-major matrix with one row for each image. Convolution weights are [outputs x taps x inputs].
// TensorOps::read_rows, write_rows, read_array and write_array convert what crosses to the host.

#include "kernel/ops/cuda/timeline.hpp"
#include "kernel/ops/tensor_ops.hpp"

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

  // The overrides are public, because nvcc wants that of functions with kernels.
  /// Must be called after parameters were written, if there may be copies of them.
  void update_copy(const float* parameters, std::size_t count);

  Buffer do_allocate(std::size_t bytes) override { return t_.device().allocate(bytes); }
  void do_read_elements(std::span<float> host, Tensor from) override;
  void do_write_elements(Tensor to, std::span<const float> host) override;

  void do_dense_forward(Tensor y, Tensor x, DenseParameters p) override;
  void do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) override;
  void do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) override;
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

  void do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& p) override;
  void do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& p) override;
  void do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale, float* d_shift,
                                    bool accumulate) override;
  void do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& p) override;
  void do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                            const BatchNormParameters& p, float* d_scale, float* d_shift,
                                            bool accumulate) override;
  void do_instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) override;
  void do_instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels, float slope) override;
  void do_pixel_norm_forward(Tensor x, float* scale, int channels) override;
  void do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) override;
  void do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) override;
  void do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) override;

  void do_scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) override;
  void do_channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) override;
  void do_demodulate(Tensor factors, Tensor styles, DemodulationParameters p) override;
  void do_demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                             DemodulationParameters p) override;
  void do_demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors, Adjoints styles,
                              DemodulationParameters p) override;

  void do_activate(Tensor x, Activation activation) override;
  void do_activate_backward(Tensor dy, Tensor y, Activation activation) override;
  void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters p, RandomStream& random) override;
  void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p, float* d_bias,
                                 bool accumulate) override;
  void do_logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters p, DenseParameters dense,
                        RandomStream& random) override;
  void do_logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters p, const float* weight,
                         const LogitGradients& d, bool accumulate) override;
  void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) override;
  void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                              bool accumulate) override;

  void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) override;
  void do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) override;
  void do_combine(Tensor y, float a, Tensor x, float b) override;
  void do_fill(Tensor x, float value) override;
  void do_average(float* average, const float* values, std::size_t count, float decay) override;
  void do_copy(float* to, const float* from, std::size_t count) override;
  void do_copy_elements(Tensor to, Tensor from) override;
  void do_pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) override;
  void do_unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) override;
  void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
               const AdamRule& rule) override;

  void do_fill_normal(Tensor x, RandomStream& random) override;
  void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) override;
  void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) override;

  void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) override;
  void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                           float* length) override;
  void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                              std::span<const std::uint8_t> host_labels) override;
  void do_append_channels(Tensor y, Tensor x, Tensor more, int positions) override;
  void do_leading_channels(Tensor dx, Tensor dy, int positions) override;
  void do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) override;
  void do_absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) override;
  void do_sample_code(Tensor z, Tensor code, Tensor noise) override;
  void do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) override;

 private:
  /// The weight as products read it.
  const E* operand(const float* weight) const {
    if constexpr (std::is_same_v<E, float>) return weight;
    const auto* copy = static_cast<const E*>(copy_of(weight));
    assert(copy != nullptr);  // weights are in memory of allocate_parameters()
    return copy;
  }
  void convolve(Pass pass, Tensor x, Tensor y, const ConvolutionShape& shape, const void* weight, bool accumulate) {
    t_.convolve({pass, shape, x.batch, x.data, y.data, const_cast<void*>(weight), accumulate}, workspace());
  }

  Timeline<Device>& t_;
  bool host_random_;
};

}  // namespace ganymede::kernel::cuda

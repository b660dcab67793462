#include <fmt/format.h>

#include <cassert>
#include <cmath>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y = leaky(factor convolution(x) + bias), the weights drawn normal(0, 1): every weight then moves at the same speed
/// under Adam, whatever its layer's width.
class Equalized final : public Layer {
 public:
  Equalized(std::string name, const ConvolutionShape& shape, EqualizedOptions options)
      : Layer(std::move(name)), shape_(shape), options_(options) {
    // He's initial deviation (He et al. 2015) of what a unit sums up.
    const double fan_in = double{1} * (options.transposed ? shape.out_channels : shape.in_channels) * shape.taps();
    factor_ = static_cast<float>(double{options.gain} / std::sqrt(fan_in));
  }

  std::string kind() const override {
    const std::string depth = shape_.kernel_frames > 1 ? fmt::format("{}x", shape_.kernel_frames) : "";
    return fmt::format("equalized {}{} -> {}, {}{}x{} to {}{}x{}", options_.transposed ? "transposed " : "",
                       options_.transposed ? shape_.out_channels : shape_.in_channels, channels(), depth, shape_.kernel,
                       shape_.kernel, frames() > 1 ? fmt::format("{}x", frames()) : "",
                       options_.transposed ? shape_.in_height : shape_.out_height(),
                       options_.transposed ? shape_.in_width : shape_.out_width());
  }
  int inputs() const override { return options_.transposed ? shape_.out_features() : shape_.in_features(); }
  int outputs() const override { return options_.transposed ? shape_.in_features() : shape_.out_features(); }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<int> weights{shape_.out_channels, shape_.in_channels, shape_.kernel, shape_.kernel};
    if (shape_.in_frames > 1 || shape_.kernel_frames > 1) weights.insert(weights.begin() + 2, shape_.kernel_frames);
    return {{"weight", weights, 0, 0, 1}, {"bias", {channels()}, 0, 0}};
  }
  double forward_flops_per_image() const override { return shape_.flops(); }
  std::size_t workspace_bytes(const Ops& ops, int batch) const override {
    return ops.convolution_workspace_bytes(shape_, batch);
  }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  void bind(float* parameters, float* gradients, float*) override {
    weight_ = parameters;
    bias_ = parameters + shape_.weights();
    d_weight_ = gradients;
    d_bias_ = gradients + shape_.weights();
  }

  Tensor forward(Ops& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }
  Tensor infer(Ops& ops, Tensor x) override {
    if (options_.transposed)
      ops.convolve_backward_data(y_, x, shape_, weight_);
    else
      ops.convolve(y_, x, shape_, weight_);
    ops.bias_leaky_forward(y_, bias_, channels(), factor_, options_.slope);
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    // Only the signs of y are asked for, which a pixel norm in place leaves.
    ops.bias_leaky_backward(dy, y_, want.weights ? d_bias_ : nullptr, channels(), factor_, options_.slope,
                            want.accumulate);
    const Tensor dx{spare, inputs(), dy.batch};
    if (options_.transposed) {
      if (want.weights) ops.convolve_backward_weights(d_weight_, x_, dy, shape_, want.accumulate);
      if (want.input) ops.convolve(dx, dy, shape_, weight_);
    } else {
      if (want.weights) ops.convolve_backward_weights(d_weight_, dy, x_, shape_, want.accumulate);
      if (want.input) ops.convolve_backward_data(dx, dy, shape_, weight_);
    }
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(Ops& ops, Tensor x_dot) override {
    assert(!options_.transposed);
    x_dot_ = x_dot;
    ops.convolve(y_dot_, x_dot, shape_, weight_);
    pass_leaky(ops, y_dot_);
    return y_dot_;
  }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool want_input) override {
    pass_leaky(ops, dy.tangent);
    ops.convolve_backward_weights(d_weight_, dy.tangent, x_dot_, shape_, true);
    const Tensor dx_dot{spare.tangent, inputs(), dy.tangent.batch};
    if (want_input) ops.convolve_backward_data(dx_dot, dy.tangent, shape_, weight_);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {backward(ops, dy.value, spare.value, {true, true, want_input}), dx_dot};
  }

 private:
  /// What the bias and the LeakyReLU do to a tangent, which has no bias, and to its adjoint.
  void pass_leaky(Ops& ops, Tensor dot) const {
    ops.bias_leaky_backward(dot, y_, nullptr, channels(), factor_, options_.slope, false);
  }
  int channels() const { return options_.transposed ? shape_.in_channels : shape_.out_channels; }
  int frames() const { return options_.transposed ? shape_.in_frames : shape_.out_frames(); }

  ConvolutionShape shape_;
  EqualizedOptions options_;
  float factor_ = 1;
  const float *weight_ = nullptr, *bias_ = nullptr;
  float *d_weight_ = nullptr, *d_bias_ = nullptr;
  Tensor x_, y_, x_dot_, y_dot_;
};

}  // namespace

std::unique_ptr<Layer> equalized_convolution(std::string name, const ConvolutionShape& shape,
                                             EqualizedOptions options) {
  return std::make_unique<Equalized>(std::move(name), shape, options);
}

}  // namespace ganymede::kernel

#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

constexpr float kDeviation = 0.02F;

std::string kind_of(const char* what, const ConvolutionShape& s, int inputs, int outputs, int height, int width) {
  return fmt::format("{} {} -> {}, {}x{}, stride {} to {}x{}", what, inputs, outputs, s.kernel, s.kernel, s.stride,
                     height, width);
}

/// What both directions share: parameters and what the backward pass needs.
class Convolving : public Layer {
 public:
  Convolving(std::string name, const ConvolutionShape& shape) : Layer(std::move(name)), shape_(shape) {}

  // A transposed convolution's weights are [its inputs x its outputs x ...]: the same array.
  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {shape_.out_channels, shape_.in_channels, shape_.kernel, shape_.kernel}, 0, 0, kDeviation}};
  }
  double forward_flops_per_image() const override { return shape_.flops(); }
  std::size_t workspace_bytes(const Ops& ops, int batch) const override {
    return ops.convolution_workspace_bytes(shape_, batch);
  }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  void bind(float* parameters, float* gradients, float*) override {
    weight_ = parameters;
    d_weight_ = gradients;
  }
  Tensor forward(Ops& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }

 protected:
  ConvolutionShape shape_;
  const float* weight_ = nullptr;
  float* d_weight_ = nullptr;
  Tensor x_, y_;
};

/// y = convolution of x
class Convolution final : public Convolving {
 public:
  using Convolving::Convolving;

  std::string kind() const override {
    return kind_of("convolution", shape_, shape_.in_channels, shape_.out_channels, shape_.out_height(),
                   shape_.out_width());
  }
  int inputs() const override { return shape_.in_features(); }
  int outputs() const override { return shape_.out_features(); }

  Tensor infer(Ops& ops, Tensor x) override {
    ops.convolve(y_, x, shape_, weight_);
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    if (want.weights) ops.convolve_backward_weights(d_weight_, dy, x_, shape_, want.accumulate);
    const Tensor dx{spare, inputs(), dy.batch};
    if (want.input) ops.convolve_backward_data(dx, dy, shape_, weight_);
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(Ops& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.convolve(y_dot_, x_dot, shape_, weight_);
    return y_dot_;
  }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool want_input) override {
    ops.convolve_backward_weights(d_weight_, dy.tangent, x_dot_, shape_, true);
    const Tensor dx_dot{spare.tangent, inputs(), dy.tangent.batch};
    if (want_input) ops.convolve_backward_data(dx_dot, dy.tangent, shape_, weight_);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {backward(ops, dy.value, spare.value, {true, true, want_input}), dx_dot};
  }

 private:
  Tensor x_dot_, y_dot_;
};

/// y such that x is a convolution's gradient of its output, and y that of its input
class TransposedConvolution final : public Convolving {
 public:
  using Convolving::Convolving;

  std::string kind() const override {
    return kind_of("transposed", shape_, shape_.out_channels, shape_.in_channels, shape_.in_height, shape_.in_width);
  }
  int inputs() const override { return shape_.out_features(); }
  int outputs() const override { return shape_.in_features(); }

  Tensor infer(Ops& ops, Tensor x) override {
    ops.convolve_backward_data(y_, x, shape_, weight_);
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    if (want.weights) ops.convolve_backward_weights(d_weight_, x_, dy, shape_, want.accumulate);
    const Tensor dx{spare, inputs(), dy.batch};
    if (want.input) ops.convolve(dx, dy, shape_, weight_);
    return dx;
  }
};

}  // namespace

std::unique_ptr<Layer> convolution(std::string name, const ConvolutionShape& shape) {
  return std::make_unique<Convolution>(std::move(name), shape);
}

std::unique_ptr<Layer> transposed_convolution(std::string name, const ConvolutionShape& shape) {
  return std::make_unique<TransposedConvolution>(std::move(name), shape);
}

}  // namespace ganymede::kernel

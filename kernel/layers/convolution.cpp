#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// For example "64 -> 32, 3x3x3 to 8x16x16". `back`: for the transposed convolution, from the shape's outputs to its
/// inputs.
std::string extent_of(const ConvolutionShape& s, bool back) {
  const auto frames = [](int count) { return count > 1 ? fmt::format("{}x", count) : ""; };
  return fmt::format("{} -> {}, {}{}x{}{} to {}{}x{}", back ? s.out_channels : s.in_channels,
                     back ? s.in_channels : s.out_channels, frames(s.kernel_frames), s.kernel, s.kernel,
                     s.stride > 1 ? fmt::format(", stride {}", s.stride) : "",
                     frames(back ? s.in_frames : s.out_frames()), back ? s.in_height : s.out_height(),
                     back ? s.in_width : s.out_width());
}

/// The common part of convolution and transposed convolution: parameters, and the tensors that the backward pass needs.
class Convolving : public Layer {
 public:
  Convolving(std::string name, const ConvolutionShape& shape, float deviation)
      : Layer(std::move(name)), shape_(shape), deviation_(deviation) {}

  // A transposed convolution's weights are [its inputs x its outputs x ...]: the same array.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<int> extents{shape_.out_channels, shape_.in_channels, shape_.kernel, shape_.kernel};
    if (shape_.in_frames > 1 || shape_.kernel_frames > 1) extents.insert(extents.begin() + 2, shape_.kernel_frames);
    return {{"weight", extents, 0, 0, deviation_}};
  }
  double forward_flops_per_image() const override { return shape_.flops(); }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    return ops.convolution_workspace_bytes(shape_, batch);
  }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  void bind(float* parameters, float* gradients, float*) override {
    weight_ = parameters;
    d_weight_ = gradients;
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }

 protected:
  ConvolutionShape shape_;
  float deviation_;
  const float* weight_ = nullptr;
  float* d_weight_ = nullptr;
  Tensor x_, y_;
};

/// y = convolution of x
class Convolution final : public Convolving {
 public:
  using Convolving::Convolving;

  std::string kind() const override { return "convolution " + extent_of(shape_, false); }
  void join(Layer& next) override { after_ = next.hand_over_forward(); }
  int inputs() const override { return shape_.in_features(); }
  int outputs() const override { return shape_.out_features(); }

  Tensor infer(TensorOps& ops, Tensor x) override {
    if (after_)
      ops.convolve(y_, x, shape_, weight_, *after_);
    else
      ops.convolve(y_, x, shape_, weight_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    if (request.weights) ops.convolve_backward_weights(d_weight_, dy, x_, shape_, request.accumulate);
    const Tensor dx{scratch, inputs(), dy.batch};
    if (request.input) ops.convolve_backward_data(dx, dy, shape_, weight_);
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.convolve(y_dot_, x_dot, shape_, weight_);
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input) override {
    ops.convolve_backward_weights(d_weight_, dy.tangent, x_dot_, shape_, true);
    const Tensor dx_dot{scratch.tangent, inputs(), dy.tangent.batch};
    if (needs_input) ops.convolve_backward_data(dx_dot, dy.tangent, shape_, weight_);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {backward(ops, dy.value, scratch.value, {true, true, needs_input}), dx_dot};
  }

 private:
  std::optional<ConvolutionEpilogue> after_;  // of the next layer
  Tensor x_dot_, y_dot_;
};

/// y = the result of the convolution's backward pass to its input, given x (PyTorch's nn.ConvTranspose2d)
class TransposedConvolution final : public Convolving {
 public:
  using Convolving::Convolving;

  std::string kind() const override { return "transposed " + extent_of(shape_, true); }
  int inputs() const override { return shape_.out_features(); }
  int outputs() const override { return shape_.in_features(); }

  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.convolve_backward_data(y_, x, shape_, weight_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    if (request.weights) ops.convolve_backward_weights(d_weight_, x_, dy, shape_, request.accumulate);
    const Tensor dx{scratch, inputs(), dy.batch};
    if (request.input) ops.convolve(dx, dy, shape_, weight_);
    return dx;
  }
};

}  // namespace

std::unique_ptr<Layer> convolution(std::string name, const ConvolutionShape& shape, float deviation) {
  return std::make_unique<Convolution>(std::move(name), shape, deviation);
}

std::unique_ptr<Layer> transposed_convolution(std::string name, const ConvolutionShape& shape, float deviation) {
  return std::make_unique<TransposedConvolution>(std::move(name), shape, deviation);
}

}  // namespace ganymede::kernel

#include <fmt/format.h>

#include <cmath>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y [outputs x batch] = weight [outputs x inputs] x [inputs x batch] + bias [outputs]
class Dense final : public Layer {
 public:
  Dense(std::string name, int inputs, int outputs) : Layer(std::move(name)), inputs_(inputs), outputs_(outputs) {}

  std::string kind() const override { return fmt::format("dense {} -> {}", inputs_, outputs_); }
  int inputs() const override { return inputs_; }
  int outputs() const override { return outputs_; }

  std::vector<ParameterSpec> parameters() const override {
    // PyTorch's default for nn.Linear: uniform within 1 / sqrt(inputs).
    const float bound = 1.0F / std::sqrt(static_cast<float>(inputs_));
    return {{"weight", {outputs_, inputs_}, -bound, bound}, {"bias", {outputs_}, -bound, bound}};
  }
  double forward_flops_per_image() const override { return 2.0 * inputs_ * outputs_; }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    return ops.dense_workspace_bytes(inputs_, outputs_, batch);
  }

  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs_, batch); }
  void bind(float* parameters, float* gradients, float*) override {
    const std::size_t weights = padded(static_cast<std::size_t>(inputs_) * static_cast<std::size_t>(outputs_));
    weight_ = parameters;
    bias_ = parameters + weights;
    d_weight_ = gradients;
    d_bias_ = gradients + weights;
  }
  void join(Layer& next) override {
    if (next.takes_bias_gradient(d_bias_)) d_bias_ = nullptr;
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.dense_forward(y_, x, {weight_, bias_});
    return y_;
  }

  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    if (request.weights) ops.dense_backward_weights(d_weight_, d_bias_, dy, x_, request.accumulate);
    const Tensor dx{scratch, inputs_, dy.batch};
    if (request.input) ops.dense_backward_data(dx, dy, weight_);
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs_, batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.dense_forward(y_dot_, x_dot, {weight_, nullptr});
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input) override {
    ops.dense_backward_weights(d_weight_, nullptr, dy.tangent, x_dot_, true);
    const Tensor dx_dot{scratch.tangent, inputs_, dy.tangent.batch};
    if (needs_input) ops.dense_backward_data(dx_dot, dy.tangent, weight_);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {backward(ops, dy.value, scratch.value, {true, true, needs_input}), dx_dot};
  }

 private:
  int inputs_, outputs_;
  const float *weight_ = nullptr, *bias_ = nullptr;
  float *d_weight_ = nullptr, *d_bias_ = nullptr;  // no d_bias_: the next layer computes it
  Tensor x_, y_, x_dot_, y_dot_;
};

}  // namespace

std::unique_ptr<Layer> dense(std::string name, int inputs, int outputs) {
  return std::make_unique<Dense>(std::move(name), inputs, outputs);
}

}  // namespace ganymede::kernel

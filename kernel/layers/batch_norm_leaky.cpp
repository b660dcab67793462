#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

// PyTorch's defaults for nn.BatchNorm1d and 2d.
constexpr float kMomentum = 0.1F;
constexpr float kEpsilon = 1e-5F;

/// y [channels x positions x batch] = leaky(scale * (x - mean) / deviation + shift), for each channel separately
class BatchNormLeaky final : public Layer {
 public:
  BatchNormLeaky(std::string name, BatchNormShape shape, float slope)
      : Layer(std::move(name)), shape_(shape), slope_(slope) {}

  std::string kind() const override {
    return fmt::format("batch norm {} + {}", shape_.channels,
                       slope_ > 0 ? fmt::format("leaky relu {:g}", slope_) : "relu");
  }
  int inputs() const override { return shape_.channels * shape_.positions; }
  int outputs() const override { return inputs(); }

  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {shape_.channels}, 1, 1, shape_.deviation}, {"bias", {shape_.channels}, 0, 0}};
  }
  std::vector<ParameterSpec> statistics() const override {
    return {{"running_mean", {shape_.channels}, 0, 0}, {"running_var", {shape_.channels}, 1, 1}};
  }

  void plan(Arena& arena, int batch) override {
    y_ = arena.tensor(inputs(), batch);
    saved_ = arena.floats(2 * static_cast<std::size_t>(shape_.channels));
  }
  void bind(float* parameters, float* gradients, float* statistics) override {
    const std::size_t next = padded(static_cast<std::size_t>(shape_.channels));
    normal_ = {.scale = parameters,
               .shift = parameters + next,
               .running_mean = statistics,
               .running_variance = statistics + next,
               .mean = saved_,
               .inverse_deviation = saved_ + shape_.channels,
               .momentum = kMomentum,
               .epsilon = kEpsilon,
               .slope = slope_};
    d_scale_ = gradients;
    d_shift_ = gradients + next;
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    ops.batch_norm_leaky_forward(by_channel(y_), by_channel(x), normal_);
    return y_;
  }
  Tensor forward_again(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    BatchNormParameters still = normal_;
    still.momentum = 0;
    ops.batch_norm_leaky_forward(by_channel(y_), by_channel(x), still);
    return y_;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.batch_norm_leaky_inference(by_channel(y_), by_channel(x), normal_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest& request) override {
    ops.batch_norm_leaky_backward(by_channel(dy), by_channel(x_), normal_, request.weights ? d_scale_ : nullptr,
                                  request.weights ? d_shift_ : nullptr, request.accumulate);
    return dy;
  }

  bool is_curved() const override { return true; }
  void plan_tangent(Arena& arena, int batch) override {
    y_dot_ = arena.tensor(inputs(), batch);
    d_value_ = arena.tensor(inputs(), batch);
  }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.batch_norm_leaky_tangent(by_channel(y_dot_), by_channel(x_dot), by_channel(x_), normal_);
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch, bool) override {
    // Without an adjoint of y there is still one of x, because the tangent contains the mean and the deviation of x.
    const Tensor dx = dy.value.data != nullptr ? dy.value : d_value_;
    const Adjoints from{dy.value.data != nullptr ? by_channel(dy.value) : Tensor{}, by_channel(dy.tangent)};
    ops.batch_norm_leaky_tangent_backward({by_channel(dx), by_channel(dy.tangent)}, from, by_channel(x_dot_),
                                          by_channel(x_), normal_, d_scale_, d_shift_, true);
    return {dx, dy.tangent};
  }

 private:
  /// View of x as [channels x (positions x batch)]: a channel's positions count as more images.
  Tensor by_channel(Tensor x) const { return {x.data, shape_.channels, shape_.positions * x.batch}; }

  BatchNormShape shape_;
  float slope_;
  BatchNormParameters normal_{};
  float *d_scale_ = nullptr, *d_shift_ = nullptr;
  float* saved_ = nullptr;  // [2 x channels]: the batch's means and inverse deviations
  Tensor x_, y_, x_dot_, y_dot_, d_value_;
};

}  // namespace

std::unique_ptr<Layer> batch_norm_leaky(std::string name, BatchNormShape shape, float slope) {
  return std::make_unique<BatchNormLeaky>(std::move(name), shape, slope);
}

}  // namespace ganymede::kernel

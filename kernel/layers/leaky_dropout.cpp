#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y [features x batch] = leaky(x) * mask / keep, in place
class LeakyDropout : public Layer {
 public:
  LeakyDropout(std::string name, int features, float slope, float drop)
      : Layer(std::move(name)), features_(features), drop_(drop), training_{slope, 1 - drop} {}

  std::string kind() const override { return fmt::format("leaky relu {:g} + dropout {:g}", training_.slope, drop_); }
  int inputs() const override { return features_; }
  bool is_in_place() const override { return true; }
  int outputs() const override { return features_; }

  void plan(Arena& arena, int batch) override { mask_ = arena.mask(features_, batch); }
  bool takes_bias_gradient(float* d_bias) override {
    d_bias_ = d_bias;
    return true;
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    ops.leaky_dropout_forward(x, mask_, training_, noise);
    y_ = x;
    return x;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    RandomStream unused(0, "kernel/no-dropout");
    ops.leaky_dropout_forward(x, mask_, inference(), unused);
    return x;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest& request) override {
    ops.leaky_dropout_backward(dy, y_, mask_, training_, request.weights ? d_bias_ : nullptr, request.accumulate);
    return dy;
  }
  // The layer is piecewise linear, and its matrix is diagonal: tangent, backward pass and adjoints are the same map.
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    ops.leaky_dropout_backward(x_dot, y_, mask_, training_);
    return x_dot;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch, bool) override {
    // A bias has no tangent, so its gradient is that of the value alone.
    if (dy.value.data != nullptr) ops.leaky_dropout_backward(dy.value, y_, mask_, training_, d_bias_, true);
    ops.leaky_dropout_backward(dy.tangent, y_, mask_, training_);
    return dy;
  }

 protected:
  int features() const { return features_; }
  LeakyDropoutParameters training() const { return training_; }
  LeakyDropoutParameters inference() const { return {training_.slope, 1}; }  ///< keep = 1 drops nothing
  Mask mask() const { return mask_; }

 private:
  int features_;
  float drop_;
  LeakyDropoutParameters training_;
  Mask mask_;
  Tensor y_;
  float* d_bias_ = nullptr;  // of the layer before; null: it has none
};

/// y [1 x batch] = weight [1 x features] (leaky(x) * mask / keep) + bias [1]
class DroppedLogit final : public LeakyDropout {
 public:
  using LeakyDropout::LeakyDropout;

  std::string kind() const override { return fmt::format("{} + dense {} -> 1", LeakyDropout::kind(), features()); }
  int outputs() const override { return 1; }
  std::vector<ParameterSpec> parameters() const override { return dense("", features(), 1)->parameters(); }
  double forward_flops_per_image() const override { return 2.0 * features(); }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    return ops.dense_workspace_bytes(features(), 1, batch);
  }

  void plan(Arena& arena, int batch) override {
    LeakyDropout::plan(arena, batch);
    y_ = arena.tensor(1, batch);
  }
  void bind(float* parameters, float* gradients, float*) override {
    const std::size_t weights = padded(static_cast<std::size_t>(features()));
    dense_ = {parameters, parameters + weights};
    gradients_ = {gradients, gradients + weights};
  }
  bool takes_bias_gradient(float* d_bias) override {
    gradients_.input_bias = d_bias;
    return true;
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    x_ = x;
    ops.logit_forward(y_, x, mask(), training(), dense_, noise);
    return y_;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    RandomStream unused(0, "kernel/no-dropout");
    ops.logit_forward(y_, x, mask(), inference(), dense_, unused);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    const Tensor dx{scratch, features(), dy.batch};
    ops.logit_backward(dx, dy, x_, mask(), training(), dense_.weight, request.weights ? gradients_ : LogitGradients{},
                       request.accumulate);
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(1, batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.leaky_dropout_backward(x_dot, x_, mask(), training());
    ops.dense_forward(y_dot_, x_dot, {dense_.weight, nullptr});
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool) override {
    ops.dense_backward_weights(gradients_.weight, nullptr, dy.tangent, x_dot_, true);
    const Tensor dx_dot{scratch.tangent, features(), dy.tangent.batch};
    ops.logit_backward(dx_dot, dy.tangent, x_, mask(), training(), dense_.weight, {}, false);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {backward(ops, dy.value, scratch.value, {true, true, true}), dx_dot};
  }

 private:
  DenseParameters dense_{};
  LogitGradients gradients_;
  Tensor x_, y_, x_dot_, y_dot_;
};

}  // namespace

std::unique_ptr<Layer> leaky_dropout(std::string name, int features, float slope, float drop) {
  return std::make_unique<LeakyDropout>(std::move(name), features, slope, drop);
}

std::unique_ptr<Layer> dropped_logit(std::string name, int features, float slope, float drop) {
  return std::make_unique<DroppedLogit>(std::move(name), features, slope, drop);
}

}  // namespace ganymede::kernel

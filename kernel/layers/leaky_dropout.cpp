#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y [features x batch] = leaky(x) * mask / keep, in place
class LeakyDropout final : public Layer {
 public:
  LeakyDropout(std::string name, int features, float slope, float drop)
      : Layer(std::move(name)), features_(features), drop_(drop), training_{slope, 1 - drop} {}

  std::string kind() const override { return fmt::format("leaky relu {:g} + dropout {:g}", training_.slope, drop_); }
  int inputs() const override { return features_; }
  bool is_in_place() const override { return true; }
  int outputs() const override { return features_; }

  void plan(Arena& arena, int batch) override { mask_ = arena.mask(features_, batch); }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    ops.leaky_dropout_forward(x, mask_, training_, noise);
    y_ = x;
    return x;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    RandomStream unused(0, "kernel/no-dropout");  // keep = 1 drops nothing
    ops.leaky_dropout_forward(x, mask_, {training_.slope, 1}, unused);
    return x;
  }
  Tensor backward(TensorOps& ops, Tensor dy, float*, const GradientRequest&) override {
    ops.leaky_dropout_backward(dy, y_, mask_, training_);
    return dy;
  }
  // The layer is piecewise linear, and its matrix is diagonal: tangent, backward pass and adjoints are the same map.
  Tensor tangent(TensorOps& ops, Tensor x_dot) override { return backward(ops, x_dot, nullptr, {}); }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch, bool) override {
    if (dy.value.data != nullptr) backward(ops, dy.value, nullptr, {});
    backward(ops, dy.tangent, nullptr, {});
    return dy;
  }

 private:
  int features_;
  float drop_;
  LeakyDropoutParameters training_;
  Mask mask_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> leaky_dropout(std::string name, int features, float slope, float drop) {
  return std::make_unique<LeakyDropout>(std::move(name), features, slope, drop);
}

}  // namespace ganymede::kernel

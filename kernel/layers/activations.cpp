#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// An activation that works in place and needs only its output to go back.
class InPlace : public Layer {
 public:
  InPlace(std::string name, int features) : Layer(std::move(name)), features_(features) {}

  int inputs() const override { return features_; }
  bool is_in_place() const override { return true; }
  int outputs() const override { return features_; }
  void plan(Arena&, int) override {}
  Tensor forward(Ops& ops, Tensor x, RandomStream&) override { return y_ = infer(ops, x); }

 protected:
  Tensor y_;

 private:
  int features_;
};

/// y = x above zero, slope * x below
class Leaky final : public InPlace {
 public:
  Leaky(std::string name, int features, float slope) : InPlace(std::move(name), features), slope_(slope) {}

  std::string kind() const override { return slope_ > 0 ? fmt::format("leaky relu {:g}", slope_) : "relu"; }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.leaky_forward(x, slope_);
    return x;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, const Want&) override {
    ops.leaky_backward(dy, y_, slope_);
    return dy;
  }
  // Between the kinks a linear map that equals its own transpose.
  Tensor tangent(Ops& ops, Tensor x_dot) override { return backward(ops, x_dot, nullptr, {}); }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare, bool) override {
    if (dy.value.data != nullptr) backward(ops, dy.value, nullptr, {});
    backward(ops, dy.tangent, nullptr, {});
    return dy;
  }

 private:
  float slope_;
};

/// y = leaky(factor x + bias), a bias a channel
class BiasLeaky final : public InPlace {
 public:
  BiasLeaky(std::string name, int channels, int positions, float factor, float slope)
      : InPlace(std::move(name), channels * positions), channels_(channels), factor_(factor), slope_(slope) {}

  std::string kind() const override {
    return slope_ < 1 ? fmt::format("x {:.4g} + bias, leaky relu {:g}", factor_, slope_)
                      : fmt::format("x {:.4g} + bias", factor_);
  }
  std::vector<ParameterSpec> parameters() const override { return {{"bias", {channels_}}}; }
  void bind(float* parameters, float* gradients, float*) override {
    bias_ = parameters;
    d_bias_ = gradients;
  }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.bias_leaky_forward(x, bias_, channels_, factor_, slope_);
    return x;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, const Want& want) override {
    // Only the signs of y are asked for, which a pixel norm in place leaves.
    ops.bias_leaky_backward(dy, y_, want.weights ? d_bias_ : nullptr, channels_, factor_, slope_, want.accumulate);
    return dy;
  }
  // A tangent has no bias; but for that the same as leaky's.
  Tensor tangent(Ops& ops, Tensor x_dot) override { return backward(ops, x_dot, nullptr, kNoWeights); }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare, bool) override {
    if (dy.value.data != nullptr) backward(ops, dy.value, nullptr, {.weights = true, .accumulate = true});
    backward(ops, dy.tangent, nullptr, kNoWeights);
    return dy;
  }

 private:
  static constexpr Want kNoWeights{.weights = false};
  int channels_;
  float factor_, slope_;
  const float* bias_ = nullptr;
  float* d_bias_ = nullptr;
};

/// One without parameters, named by its operations.
class Smooth final : public InPlace {
 public:
  using Forward = void (Ops::*)(Tensor x);
  using Backward = void (Ops::*)(Tensor dy, Tensor y);

  Smooth(std::string name, int features, const char* kind, Forward there, Backward back)
      : InPlace(std::move(name), features), kind_(kind), there_(there), back_(back) {}

  std::string kind() const override { return kind_; }
  Tensor infer(Ops& ops, Tensor x) override {
    (ops.*there_)(x);
    return x;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, const Want&) override {
    (ops.*back_)(dy, y_);
    return dy;
  }

 private:
  const char* kind_;
  Forward there_;
  Backward back_;
};

}  // namespace

std::unique_ptr<Layer> leaky(std::string name, int features, float slope) {
  return std::make_unique<Leaky>(std::move(name), features, slope);
}

std::unique_ptr<Layer> bias_leaky(std::string name, int channels, int positions, float factor, float slope) {
  return std::make_unique<BiasLeaky>(std::move(name), channels, positions, factor, slope);
}

std::unique_ptr<Layer> tanh_image(std::string name, int features) {
  return std::make_unique<Smooth>(std::move(name), features, "tanh", &Ops::tanh_forward, &Ops::tanh_backward);
}

std::unique_ptr<Layer> sigmoid(std::string name, int features) {
  return std::make_unique<Smooth>(std::move(name), features, "sigmoid", &Ops::sigmoid_forward, &Ops::sigmoid_backward);
}

}  // namespace ganymede::kernel

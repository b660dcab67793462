#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// An activation that works in place and whose backward pass needs only its output.
class InPlace : public Layer {
 public:
  InPlace(std::string name, int features) : Layer(std::move(name)), features_(features) {}

  int inputs() const override { return features_; }
  bool is_in_place() const override { return true; }
  int outputs() const override { return features_; }
  void plan(Arena&, int) override {}
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return y_ = infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    if (!handed_over_) activate(ops, x);
    return x;
  }

 protected:
  virtual void activate(TensorOps& ops, Tensor x) = 0;
  ConvolutionEpilogue handed_over(const ConvolutionEpilogue& epilogue) {
    handed_over_ = true;
    return epilogue;
  }
  Tensor y_;

 private:
  int features_;
  bool handed_over_ = false;  // the layer before does the forward pass
};

/// y = x above zero, slope * x below
class Leaky final : public InPlace {
 public:
  Leaky(std::string name, int features, float slope) : InPlace(std::move(name), features), slope_(slope) {}

  std::string kind() const override { return slope_ > 0 ? fmt::format("leaky relu {:g}", slope_) : "relu"; }
  std::optional<ConvolutionEpilogue> hand_over_forward() override { return handed_over({.slope = slope_}); }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest&) override {
    ops.activate_backward(dy, y_, leaky_relu(slope_));
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
  void activate(TensorOps& ops, Tensor x) override { ops.activate(x, leaky_relu(slope_)); }

  float slope_;
};

/// y = leaky(factor x + bias), one bias for each channel
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
  std::optional<ConvolutionEpilogue> hand_over_forward() override { return handed_over({bias_, factor_, slope_}); }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest& request) override {
    // The operation reads only the signs of y. A pixel norm may have overwritten y in place, but leaves the signs.
    ops.bias_leaky_backward(dy, y_, request.weights ? d_bias_ : nullptr, channels_, factor_, slope_,
                            request.accumulate);
    return dy;
  }
  // As for Leaky; the bias does not enter the tangent.
  Tensor tangent(TensorOps& ops, Tensor x_dot) override { return backward(ops, x_dot, nullptr, kNoWeights); }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch, bool) override {
    if (dy.value.data != nullptr) backward(ops, dy.value, nullptr, {.weights = true, .accumulate = true});
    backward(ops, dy.tangent, nullptr, kNoWeights);
    return dy;
  }

 private:
  void activate(TensorOps& ops, Tensor x) override { ops.bias_leaky_forward(x, bias_, channels_, factor_, slope_); }

  static constexpr GradientRequest kNoWeights{.weights = false};
  int channels_;
  float factor_, slope_;
  const float* bias_ = nullptr;
  float* d_bias_ = nullptr;
};

/// tanh or sigmoid
class Smooth final : public InPlace {
 public:
  Smooth(std::string name, int features, const char* kind, Activation activation)
      : InPlace(std::move(name), features), kind_(kind), activation_(activation) {}

  std::string kind() const override { return kind_; }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest&) override {
    ops.activate_backward(dy, y_, activation_);
    return dy;
  }

 private:
  void activate(TensorOps& ops, Tensor x) override { ops.activate(x, activation_); }

  const char* kind_;
  Activation activation_;
};

}  // namespace

std::unique_ptr<Layer> leaky(std::string name, int features, float slope) {
  return std::make_unique<Leaky>(std::move(name), features, slope);
}

std::unique_ptr<Layer> bias_leaky(std::string name, int channels, int positions, float factor, float slope) {
  return std::make_unique<BiasLeaky>(std::move(name), channels, positions, factor, slope);
}

std::unique_ptr<Layer> tanh_image(std::string name, int features) {
  return std::make_unique<Smooth>(std::move(name), features, "tanh", kTanh);
}

std::unique_ptr<Layer> sigmoid(std::string name, int features) {
  return std::make_unique<Smooth>(std::move(name), features, "sigmoid", kSigmoid);
}

}  // namespace ganymede::kernel

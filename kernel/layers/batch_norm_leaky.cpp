#include <fmt/format.h>

#include <cassert>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

// PyTorch's defaults for nn.BatchNorm1d.
constexpr float kMomentum = 0.1F;
constexpr float kEpsilon = 1e-5F;

/// y [features x batch] = leaky(scale * (x - mean) / deviation + shift)
class BatchNormLeaky final : public Layer {
 public:
  BatchNormLeaky(std::string name, int features, float slope)
      : Layer(std::move(name)), features_(features), slope_(slope) {}

  std::string kind() const override { return fmt::format("batch norm {} + leaky relu {:g}", features_, slope_); }
  int inputs() const override { return features_; }
  int outputs() const override { return features_; }

  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {features_}, 1, 1}, {"bias", {features_}, 0, 0}};
  }
  std::vector<ParameterSpec> statistics() const override {
    return {{"running_mean", {features_}, 0, 0}, {"running_var", {features_}, 1, 1}};
  }

  void plan(Arena& arena, int batch) override {
    y_ = arena.tensor(features_, batch);
    saved_ = arena.tensor(2 * features_, 1);
  }
  void bind(float* parameters, float* gradients, float* statistics) override {
    normal_ = {.scale = parameters,
               .shift = parameters + features_,
               .running_mean = statistics,
               .running_variance = statistics + features_,
               .mean = saved_.data,
               .inverse_deviation = saved_.data + features_,
               .momentum = kMomentum,
               .epsilon = kEpsilon,
               .slope = slope_};
    d_scale_ = gradients;
    d_shift_ = gradients + features_;
  }

  Tensor forward(Ops& ops, Tensor x, RandomStream&) override {
    x_ = x;
    ops.batch_norm_leaky_forward(y_, x, normal_);
    return y_;
  }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.batch_norm_leaky_inference(y_, x, normal_);
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, [[maybe_unused]] const Want& want) override {
    assert(want.weights &&
           !want.accumulate);  // no network of ours is frozen, or takes two batches, with batch norm in it
    ops.batch_norm_leaky_backward(dy, x_, normal_, d_scale_, d_shift_);
    return dy;
  }

 private:
  int features_;
  float slope_;
  BatchNormParameters normal_{};
  float *d_scale_ = nullptr, *d_shift_ = nullptr;
  Tensor x_, y_, saved_;
};

}  // namespace

std::unique_ptr<Layer> batch_norm_leaky(std::string name, int features, float slope) {
  return std::make_unique<BatchNormLeaky>(std::move(name), features, slope);
}

}  // namespace ganymede::kernel

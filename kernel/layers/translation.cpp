// Layers of networks that translate images (Zhu et al. 2017): instance norm, and residual blocks.

#include <fmt/format.h>

#include <cassert>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y = leaky((x - mean) / deviation), for each channel of each image separately
class InstanceNormLeaky final : public Layer {
 public:
  InstanceNormLeaky(std::string name, int channels, int positions, float slope)
      : Layer(std::move(name)), channels_(channels), positions_(positions), slope_(slope) {}

  std::string kind() const override {
    const std::string norm = fmt::format("instance norm {}", channels_);
    return slope_ == 1 ? norm : slope_ > 0 ? fmt::format("{} + leaky relu {:g}", norm, slope_) : norm + " + relu";
  }
  int inputs() const override { return channels_ * positions_; }
  int outputs() const override { return inputs(); }
  void plan(Arena& arena, int batch) override {
    y_ = arena.tensor(inputs(), batch);
    moments_ = arena.floats(2 * static_cast<std::size_t>(channels_) * static_cast<std::size_t>(batch));
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.instance_norm_leaky_forward(y_, x, moments_, channels_, slope_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest&) override {
    ops.instance_norm_leaky_backward(dy, x_, moments_, channels_, slope_);
    return dy;
  }

 private:
  int channels_, positions_;
  float slope_;
  float* moments_ = nullptr;  // see TensorOps::instance_norm_leaky_forward
  Tensor x_, y_;
};

/// y = x + inner(x)
class Residual final : public Layer {
 public:
  Residual(std::string name, Layers inner) : Layer(std::move(name)), inner_(std::move(inner)) {
    assert(!inner_.front()->is_in_place());  // x is added to their result
    for (const auto& layer : inner_) assert(layer->inputs() == inputs() && layer->outputs() == inputs());
  }

  std::string kind() const override {
    return fmt::format("residual of {} layers, {}", inner_.size(), inner_.front()->kind());
  }
  int inputs() const override { return inner_.front()->inputs(); }
  int outputs() const override { return inputs(); }
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> all;
    for (const auto& layer : inner_) {
      assert(layer->statistics().empty());
      for (ParameterSpec spec : layer->parameters()) {
        spec.name = layer->name() + "." + spec.name;
        all.push_back(std::move(spec));
      }
    }
    return all;
  }
  double forward_flops_per_image() const override {
    double sum = 0;
    for (const auto& layer : inner_) sum += layer->forward_flops_per_image();
    return sum;
  }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    std::size_t most = 0;
    for (const auto& layer : inner_) most = std::max(most, layer->workspace_bytes(ops, batch));
    return most;
  }
  void plan(Arena& arena, int batch) override {
    for (const auto& layer : inner_) layer->plan(arena, batch);
    kept_ = arena.tensor(outputs(), batch);
  }
  void bind(float* parameters, float* gradients, float* statistics) override {
    for (const auto& layer : inner_) {
      layer->bind(parameters, gradients, statistics);
      parameters += padded(layer->parameters());
      gradients += padded(layer->parameters());
    }
    for (std::size_t i = 0; i + 1 < inner_.size(); ++i) inner_[i]->join(*inner_[i + 1]);
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    Tensor y = x;
    for (const auto& layer : inner_) y = layer->forward(ops, y, noise);
    ops.combine(y, 1, x, 1);  // no backward pass reads what the last layer has written
    return y;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    Tensor y = x;
    for (const auto& layer : inner_) y = layer->infer(ops, y);
    ops.combine(y, 1, x, 1);
    return y;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    if (request.input) ops.copy(kept_, dy);
    void* const buffers[] = {dy.data, scratch};
    for (std::size_t i = inner_.size(); i-- > 0;)
      dy = inner_[i]->backward(ops, dy, buffers[dy.data == scratch ? 0 : 1],
                               {request.weights, request.accumulate, request.input || i > 0});
    if (request.input) ops.combine(dy, 1, kept_, 1);
    return dy;
  }

 private:
  Layers inner_;
  Tensor kept_;  // the gradient of the output, which the inner layers overwrite
};

}  // namespace

std::unique_ptr<Layer> instance_norm_leaky(std::string name, int channels, int positions, float slope) {
  return std::make_unique<InstanceNormLeaky>(std::move(name), channels, positions, slope);
}

std::unique_ptr<Layer> residual(std::string name, Layers inner) {
  return std::make_unique<Residual>(std::move(name), std::move(inner));
}

}  // namespace ganymede::kernel

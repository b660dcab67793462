#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// In place: y = x / sqrt(mean over the channels of x^2)
class PixelNorm final : public Layer {
 public:
  PixelNorm(std::string name, int channels, int positions)
      : Layer(std::move(name)), channels_(channels), positions_(positions) {}

  std::string kind() const override { return fmt::format("pixel norm {}", channels_); }
  int inputs() const override { return channels_ * positions_; }
  int outputs() const override { return inputs(); }
  bool is_in_place() const override { return true; }
  void plan(Arena& arena, int batch) override {
    scale_ = arena.floats(static_cast<std::size_t>(positions_) * static_cast<std::size_t>(batch));
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return y_ = infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.pixel_norm_forward(x, scale_, channels_);
    return x;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest& request) override {
    if (request.input) ops.pixel_norm_backward(dy, y_, scale_, channels_);
    return dy;
  }

 private:
  int channels_, positions_;
  Tensor y_;
  float* scale_ = nullptr;  // [positions x batch]
};

/// Downsampling: each coarse pixel is the mean of a block. Upsampling: all pixels of a block repeat the coarse pixel.
class Resampling final : public Layer {
 public:
  Resampling(std::string name, const BlockShape& shape, bool up) : Layer(std::move(name)), shape_(shape), up_(up) {}

  std::string kind() const override {
    const std::string frames = shape_.block_frames > 1 ? fmt::format("{}x", shape_.block_frames) : "";
    return fmt::format("{} {}{}x{}", up_ ? "nearest, up by" : "mean of", frames, shape_.block, shape_.block);
  }
  int inputs() const override { return up_ ? shape_.coarse_features() : shape_.fine_features(); }
  int outputs() const override { return up_ ? shape_.fine_features() : shape_.coarse_features(); }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    resample(ops, y_, x);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    const Tensor dx{scratch, inputs(), dy.batch};
    if (!request.input) return dx;
    if (up_)
      ops.pool(dx, dy, shape_, 1);
    else
      ops.upsample(dx, dy, shape_, 1.0F / static_cast<float>(shape_.elements()));
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    resample(ops, y_dot_, x_dot);
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input) override {
    const GradientRequest request{.weights = false, .accumulate = false, .input = needs_input};
    Adjoints dx{{}, backward(ops, dy.tangent, scratch.tangent, request)};
    if (dy.value.data != nullptr) dx.value = backward(ops, dy.value, scratch.value, request);
    return dx;
  }

 private:
  void resample(TensorOps& ops, Tensor y, Tensor x) const {
    if (up_)
      ops.upsample(y, x, shape_, 1);
    else
      ops.pool(y, x, shape_, 1.0F / static_cast<float>(shape_.elements()));
  }

  BlockShape shape_;
  bool up_;
  Tensor y_, y_dot_;
};

/// Appends a channel that holds the mean standard deviation of the features over the batch.
class MinibatchStddev final : public Layer {
 public:
  MinibatchStddev(std::string name, int channels, int positions)
      : Layer(std::move(name)), channels_(channels), positions_(positions) {}

  std::string kind() const override { return fmt::format("minibatch deviation {} + 1", channels_); }
  int inputs() const override { return channels_ * positions_; }
  int outputs() const override { return (channels_ + 1) * positions_; }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.minibatch_stddev_forward(y_, x, positions_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    const Tensor dx{scratch, inputs(), dy.batch};
    if (request.input) ops.minibatch_stddev_backward(dx, dy, x_, positions_);
    return dx;
  }

  bool is_curved() const override { return true; }
  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.minibatch_stddev_tangent(y_dot_, x_dot, x_, positions_);
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool) override {
    const int batch = dy.tangent.batch;
    const Adjoints dx{{scratch.value, inputs(), batch}, {scratch.tangent, inputs(), batch}};
    ops.minibatch_stddev_tangent_backward(dx, dy, x_dot_, x_, positions_);
    return dx;
  }

 private:
  int channels_, positions_;
  Tensor x_, y_, x_dot_, y_dot_;
};

/// y = share main(x) + (1 - share) skip(x)
class Mixed final : public Layer {
 public:
  Mixed(Layers main, Layers skip, std::shared_ptr<const float> share, const char* kind)
      : Layer(""), main_(std::move(main)), skip_(std::move(skip)), share_(std::move(share)), kind_(kind) {
    assert(main_.front()->inputs() == skip_.front()->inputs() && main_.back()->outputs() == skip_.back()->outputs());
  }

  std::string kind() const override {
    std::string text = kind_, last;
    for (const auto& layer : main_) {
      if (layer->name() != last) text += (last.empty() ? " " : ", ") + layer->name();
      last = layer->name();
    }
    return text + " beside " + (main_.front()->outputs() > inputs() ? skip_.front() : skip_.back())->name();
  }
  int inputs() const override { return main_.front()->inputs(); }
  int outputs() const override { return main_.back()->outputs(); }
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> all;
    for_each([&](const Layer& layer) {
      for (ParameterSpec spec : layer.parameters()) {
        spec.name = layer.name() + "." + spec.name;
        all.push_back(std::move(spec));
      }
    });
    return all;
  }
  double forward_flops_per_image() const override {
    double sum = 0;
    for_each([&](const Layer& layer) { sum += layer.forward_flops_per_image(); });
    return sum;
  }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    std::size_t most = 0;
    for_each([&](const Layer& layer) { most = std::max(most, layer.workspace_bytes(ops, batch)); });
    return most;
  }
  void plan(Arena& arena, int batch) override {
    int widest = outputs();
    for_each([&](Layer& layer) {
      layer.plan(arena, batch);
      widest = std::max({widest, layer.inputs(), layer.outputs()});
    });
    y_ = arena.tensor(outputs(), batch);
    for (Tensor& gradient : gradient_) gradient = arena.tensor(widest, batch);
    d_skip_ = arena.tensor(inputs(), batch);
  }
  void bind(float* parameters, float* gradients, float* statistics) override {
    for_each([&](Layer& layer) {
      assert(layer.statistics().empty());
      layer.bind(parameters, gradients, statistics);
      parameters += padded(layer.parameters());
      gradients += padded(layer.parameters());
    });
    for (const Layers* layers : {&main_, &skip_})
      for (std::size_t i = 0; i + 1 < layers->size(); ++i) (*layers)[i]->join(*(*layers)[i + 1]);
  }

  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    const auto through = [&](const Layers& layers) {
      Tensor y = x;
      for (const auto& layer : layers) y = layer->forward(ops, y, noise);
      return y;
    };
    return mix(ops, y_, through(main_), through(skip_));
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    const auto through = [&](const Layers& layers) {
      Tensor y = x;
      for (const auto& layer : layers) y = layer->infer(ops, y);
      return y;
    };
    return mix(ops, y_, through(main_), through(skip_));
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    const Tensor skip = back(ops, skip_, dy, 1 - *share_, request);
    if (request.input) ops.copy(d_skip_, skip);
    const Tensor main = back(ops, main_, dy, *share_, request);
    const Tensor dx{scratch, inputs(), dy.batch};
    if (request.input) {
      ops.copy(dx, main);
      ops.combine(dx, 1, d_skip_, 1);
    }
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override {
    int widest = outputs();
    for_each([&](Layer& layer) {
      layer.plan_tangent(arena, batch);
      widest = std::max({widest, layer.inputs(), layer.outputs()});
    });
    y_dot_ = arena.tensor(outputs(), batch);
    for (Tensor& gradient : gradient_dot_) gradient = arena.tensor(widest, batch);
    d_skip_dot_ = arena.tensor(inputs(), batch);
  }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    const auto through = [&](const Layers& layers) {
      Tensor y_dot = x_dot;
      for (const auto& layer : layers) y_dot = layer->tangent(ops, y_dot);
      return y_dot;
    };
    return mix(ops, y_dot_, through(main_), through(skip_));
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input) override {
    const Adjoints skip = back(ops, skip_, dy, 1 - *share_, needs_input);
    const bool curved = needs_input && skip.value.data != nullptr;
    if (curved) ops.copy(d_skip_, skip.value);
    if (needs_input) ops.copy(d_skip_dot_, skip.tangent);
    const Adjoints main = back(ops, main_, dy, *share_, needs_input);
    const int batch = dy.tangent.batch;
    const Adjoints dx{{scratch.value, inputs(), batch}, {scratch.tangent, inputs(), batch}};
    if (!needs_input) return dx;
    const auto add = [&](Tensor to, Tensor a, Tensor b) {
      ops.copy(to, a);
      ops.combine(to, 1, b, 1);
    };
    add(dx.tangent, main.tangent, d_skip_dot_);
    if (!curved) return {{}, dx.tangent};
    add(dx.value, main.value, d_skip_);
    return dx;
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Layers* layers : {&main_, &skip_})
      for (const auto& layer : *layers) visit(*layer);
  }
  /// y = share main + (1 - share) skip
  Tensor mix(TensorOps& ops, Tensor y, Tensor main, Tensor skip) const {
    ops.combine(y, 1 - *share_, skip, 0);
    ops.combine(y, *share_, main, 1);
    return y;
  }
  /// Passes share * dy back through a branch, for the gradient penalty.
  Adjoints back(TensorOps& ops, const Layers& layers, Adjoints dy, float share, bool needs_input) {
    Adjoints d{{}, {gradient_dot_[0].data, dy.tangent.features, dy.tangent.batch}};
    ops.combine(d.tangent, share, dy.tangent, 0);
    if (dy.value.data != nullptr) {
      d.value = {gradient_[0].data, dy.value.features, dy.value.batch};
      ops.combine(d.value, share, dy.value, 0);
    }
    for (std::size_t i = layers.size(); i-- > 0;)
      d = layers[i]->tangent_backward(ops, d, unused_scratch(d, gradient_, gradient_dot_), needs_input || i > 0);
    return d;
  }
  /// Passes share * dy back through a branch.
  Tensor back(TensorOps& ops, const Layers& layers, Tensor dy, float share, const GradientRequest& request) {
    Tensor d{gradient_[0].data, dy.features, dy.batch};
    ops.combine(d, share, dy, 0);
    for (std::size_t i = layers.size(); i-- > 0;) {
      void* other = gradient_[d.data == gradient_[0].data ? 1 : 0].data;
      d = layers[i]->backward(ops, d, other, {request.weights, request.accumulate, request.input || i > 0});
    }
    return d;
  }

  Layers main_, skip_;
  std::shared_ptr<const float> share_;
  const char* kind_;
  Tensor y_, gradient_[2], d_skip_;
  Tensor y_dot_, gradient_dot_[2], d_skip_dot_;
};

}  // namespace

std::unique_ptr<Layer> pixel_norm(std::string name, int channels, int positions) {
  return std::make_unique<PixelNorm>(std::move(name), channels, positions);
}

std::unique_ptr<Layer> upsample(std::string name, const BlockShape& shape) {
  return std::make_unique<Resampling>(std::move(name), shape, true);
}

std::unique_ptr<Layer> downsample(std::string name, const BlockShape& shape) {
  return std::make_unique<Resampling>(std::move(name), shape, false);
}

std::unique_ptr<Layer> minibatch_stddev(std::string name, int channels, int positions) {
  return std::make_unique<MinibatchStddev>(std::move(name), channels, positions);
}

std::unique_ptr<Layer> faded(Layers main, Layers skip, std::shared_ptr<const float> share) {
  return std::make_unique<Mixed>(std::move(main), std::move(skip), std::move(share), "fading in");
}

std::unique_ptr<Layer> mean_of(Layers main, Layers skip) {
  return std::make_unique<Mixed>(std::move(main), std::move(skip), std::make_shared<const float>(0.5F), "mean of");
}

}  // namespace ganymede::kernel

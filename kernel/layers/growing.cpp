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
  void plan(Arena& arena, int batch) override { scale_ = arena.tensor(positions_, batch); }
  Tensor forward(Ops& ops, Tensor x, RandomStream&) override { return y_ = infer(ops, x); }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.pixel_norm_forward(x, scale_, channels_);
    return x;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, const Want& want) override {
    if (want.input) ops.pixel_norm_backward(dy, y_, scale_, channels_);
    return dy;
  }

 private:
  int channels_, positions_;
  Tensor y_, scale_;
};

/// Blocks of pixels become one, their mean; or, upwards, a pixel becomes a block.
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
  Tensor forward(Ops& ops, Tensor x, RandomStream&) override { return infer(ops, x); }
  Tensor infer(Ops& ops, Tensor x) override {
    if (up_)
      ops.spread(y_, x, shape_, 1);
    else
      ops.pool(y_, x, shape_, 1.0F / static_cast<float>(shape_.elements()));
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    const Tensor dx{spare, inputs(), dy.batch};
    if (!want.input) return dx;
    if (up_)
      ops.pool(dx, dy, shape_, 1);
    else
      ops.spread(dx, dy, shape_, 1.0F / static_cast<float>(shape_.elements()));
    return dx;
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(Ops& ops, Tensor x_dot) override {
    assert(!up_);
    ops.pool(y_dot_, x_dot, shape_, 1.0F / static_cast<float>(shape_.elements()));
    return y_dot_;
  }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool want_input) override {
    const Want want{.weights = false, .accumulate = false, .input = want_input};
    Adjoints dx{{}, backward(ops, dy.tangent, spare.tangent, want)};
    if (dy.value.data != nullptr) dx.value = backward(ops, dy.value, spare.value, want);
    return dx;
  }

 private:
  BlockShape shape_;
  bool up_;
  Tensor y_, y_dot_;
};

/// One more channel: the mean deviation of the features over the batch
class MinibatchDeviation final : public Layer {
 public:
  MinibatchDeviation(std::string name, int channels, int positions)
      : Layer(std::move(name)), channels_(channels), positions_(positions) {}

  std::string kind() const override { return fmt::format("minibatch deviation {} + 1", channels_); }
  int inputs() const override { return channels_ * positions_; }
  int outputs() const override { return (channels_ + 1) * positions_; }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  Tensor forward(Ops& ops, Tensor x, RandomStream&) override {
    x_ = x;
    return infer(ops, x);
  }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.append_deviation_forward(y_, x, positions_);
    return y_;
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    const Tensor dx{spare, inputs(), dy.batch};
    if (want.input) ops.append_deviation_backward(dx, dy, x_, positions_);
    return dx;
  }

  bool is_curved() const override { return true; }
  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(Ops& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.append_deviation_tangent(y_dot_, x_dot, x_, positions_);
    return y_dot_;
  }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool) override {
    const int batch = dy.tangent.batch;
    const Adjoints dx{{spare.value, inputs(), batch}, {spare.tangent, inputs(), batch}};
    ops.append_deviation_tangent_backward(dx, dy, x_dot_, x_, positions_);
    return dx;
  }

 private:
  int channels_, positions_;
  Tensor x_, y_, x_dot_, y_dot_;
};

/// y = share main(x) + (1 - share) skip(x)
class Faded final : public Layer {
 public:
  Faded(Layers main, Layers skip, std::shared_ptr<const float> share)
      : Layer(""), main_(std::move(main)), skip_(std::move(skip)), share_(std::move(share)) {
    assert(main_.front()->inputs() == skip_.front()->inputs() && main_.back()->outputs() == skip_.back()->outputs());
  }

  std::string kind() const override {
    std::string text = "fading in", last;
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
  std::size_t workspace_bytes(const Ops& ops, int batch) const override {
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
      for (const auto& spec : layer.parameters()) {
        parameters += spec.size();
        gradients += spec.size();
      }
    });
  }

  Tensor forward(Ops& ops, Tensor x, RandomStream& noise) override {
    const auto through = [&](const Layers& layers) {
      Tensor y = x;
      for (const auto& layer : layers) y = layer->forward(ops, y, noise);
      return y;
    };
    return mix(ops, y_, through(main_), through(skip_));
  }
  Tensor infer(Ops& ops, Tensor x) override {
    const auto through = [&](const Layers& layers) {
      Tensor y = x;
      for (const auto& layer : layers) y = layer->infer(ops, y);
      return y;
    };
    return mix(ops, y_, through(main_), through(skip_));
  }
  Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) override {
    const Tensor skip = back(ops, skip_, dy, 1 - *share_, want);
    if (want.input) ops.copy(d_skip_.data, skip.data, d_skip_.size());
    const Tensor main = back(ops, main_, dy, *share_, want);
    const Tensor dx{spare, inputs(), dy.batch};
    if (want.input) {
      ops.copy(dx.data, main.data, dx.size());
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
  Tensor tangent(Ops& ops, Tensor x_dot) override {
    const auto through = [&](const Layers& layers) {
      Tensor y_dot = x_dot;
      for (const auto& layer : layers) y_dot = layer->tangent(ops, y_dot);
      return y_dot;
    };
    return mix(ops, y_dot_, through(main_), through(skip_));
  }
  Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool want_input) override {
    const Adjoints skip = back(ops, skip_, dy, 1 - *share_, want_input);
    const bool curved = want_input && skip.value.data != nullptr;
    if (curved) ops.copy(d_skip_.data, skip.value.data, d_skip_.size());
    if (want_input) ops.copy(d_skip_dot_.data, skip.tangent.data, d_skip_dot_.size());
    const Adjoints main = back(ops, main_, dy, *share_, want_input);
    const int batch = dy.tangent.batch;
    const Adjoints dx{{spare.value, inputs(), batch}, {spare.tangent, inputs(), batch}};
    if (!want_input) return dx;
    const auto add = [&](Tensor to, Tensor a, Tensor b) {
      ops.copy(to.data, a.data, to.size());
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
  Tensor mix(Ops& ops, Tensor y, Tensor main, Tensor skip) const {
    ops.combine(y, 1 - *share_, skip, 0);
    ops.combine(y, *share_, main, 1);
    return y;
  }
  Adjoints back(Ops& ops, const Layers& layers, Adjoints dy, float share, bool want_input) {
    Adjoints d{{}, {gradient_dot_[0].data, dy.tangent.features, dy.tangent.batch}};
    ops.combine(d.tangent, share, dy.tangent, 0);
    if (dy.value.data != nullptr) {
      d.value = {gradient_[0].data, dy.value.features, dy.value.batch};
      ops.combine(d.value, share, dy.value, 0);
    }
    for (std::size_t i = layers.size(); i-- > 0;)
      d = layers[i]->tangent_backward(ops, d, spare_beside(d, gradient_, gradient_dot_), want_input || i > 0);
    return d;
  }
  Tensor back(Ops& ops, const Layers& layers, Tensor dy, float share, const Want& want) {
    Tensor d{gradient_[0].data, dy.features, dy.batch};
    ops.combine(d, share, dy, 0);
    for (std::size_t i = layers.size(); i-- > 0;) {
      float* other = gradient_[d.data == gradient_[0].data ? 1 : 0].data;
      d = layers[i]->backward(ops, d, other, {want.weights, want.accumulate, want.input || i > 0});
    }
    return d;
  }

  Layers main_, skip_;
  std::shared_ptr<const float> share_;
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

std::unique_ptr<Layer> minibatch_deviation(std::string name, int channels, int positions) {
  return std::make_unique<MinibatchDeviation>(std::move(name), channels, positions);
}

std::unique_ptr<Layer> faded(Layers main, Layers skip, std::shared_ptr<const float> share) {
  return std::make_unique<Faded>(std::move(main), std::move(skip), std::move(share));
}

}  // namespace ganymede::kernel

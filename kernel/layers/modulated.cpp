#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

constexpr float kDemodulationEpsilon = 1e-8F;

/// By which the published code scales a convolution's weights when it uses them: 1 / sqrt(fan in).
float gain_of(const ConvolutionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.in_channels * shape.taps()));
}

/// y = weight, for every image
class LearnedConstant final : public Layer {
 public:
  LearnedConstant(std::string name, int channels, int size, std::shared_ptr<Styles> styles)
      : Layer(std::move(name)), channels_(channels), size_(size), styles_(std::move(styles)) {}

  std::string kind() const override { return fmt::format("constant {}x{}x{}", channels_, size_, size_); }
  int inputs() const override { return styles_->width; }
  int outputs() const override { return channels_ * size_ * size_; }
  // The extents are a convolution's, so that each backend orders the numbers as those of an activation.
  std::vector<ParameterSpec> parameters() const override { return {{"weight", {1, channels_, size_, size_}, 0, 0, 1}}; }
  void bind(float* parameters, float* gradients, float*) override {
    weight_ = parameters;
    d_weight_ = gradients;
  }
  void plan(Arena& arena, int batch) override {
    y_ = arena.tensor(outputs(), batch);
    for (Tensor* tensor : {&styles_->w, &styles_->d_w.value}) *tensor = arena.tensor(styles_->width, batch);
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.copy(styles_->w, x);
    ops.fill(y_, 0);
    ops.bias_leaky_forward(y_, weight_, outputs(), 1, 1);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void*, const GradientRequest& request) override {
    if (request.weights) ops.bias_leaky_backward(dy, y_, d_weight_, outputs(), 1, 1, request.accumulate);
    return styles_->d_w.value;
  }

  void plan_tangent(Arena& arena, int batch) override {
    y_dot_ = arena.tensor(outputs(), batch);
    for (Tensor* tensor : {&styles_->w_dot, &styles_->d_w.tangent}) *tensor = arena.tensor(styles_->width, batch);
  }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    ops.copy(styles_->w_dot, x_dot);
    ops.fill(y_dot_, 0);
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool) override {
    backward(ops, dy.value, scratch.value, {.weights = true, .accumulate = true});
    return styles_->d_w;
  }

 private:
  int channels_, size_;
  std::shared_ptr<Styles> styles_;
  const float* weight_ = nullptr;
  float* d_weight_ = nullptr;
  Tensor y_, y_dot_;
};

/// With the styles s = gain affine w + bias: u = s x, z = convolution of u, y = f z, where f are the factors that
/// TensorOps::demodulate makes of s, or 1.
class ModulatedConvolution final : public Layer {
 public:
  ModulatedConvolution(std::string name, const ConvolutionShape& shape, std::shared_ptr<Styles> styles,
                       bool demodulated)
      : Layer(std::move(name)), shape_(shape), styles_(std::move(styles)), demodulated_(demodulated) {}

  std::string kind() const override {
    return fmt::format("modulated {} -> {}, {}x{} to {}x{}", shape_.in_channels, shape_.out_channels, shape_.kernel,
                       shape_.kernel, shape_.out_height(), shape_.out_width());
  }
  int inputs() const override { return shape_.in_features(); }
  int outputs() const override { return shape_.out_features(); }
  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {shape_.out_channels, shape_.in_channels, shape_.kernel, shape_.kernel}, 0, 0, 1},
            {"style.weight", {shape_.in_channels, styles_->width}, 0, 0, 1},
            {"style.bias", {shape_.in_channels}, 1, 1}};
  }
  double forward_flops_per_image() const override { return shape_.flops() + 2.0 * shape_.in_channels * styles_->width; }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    return std::max(ops.convolution_workspace_bytes(shape_, batch),
                    ops.dense_workspace_bytes(styles_->width, shape_.in_channels, batch));
  }
  void bind(float* parameters, float* gradients, float*) override {
    const auto specs = this->parameters();
    for (auto [base, arrays] : {std::pair{parameters, values_}, std::pair{gradients, gradients_}})
      for (std::size_t i = 0; i < specs.size(); base += padded(specs[i++].size())) arrays[i] = base;
  }

  void plan(Arena& arena, int batch) override {
    for (Tensor* tensor : {&s_, &d_s_.value}) *tensor = arena.tensor(shape_.in_channels, batch);
    for (Tensor* tensor : {&f_, &d_f_.value}) *tensor = arena.tensor(demodulated_ ? shape_.out_channels : 0, batch);
    passed_w_ = arena.tensor(styles_->width, batch);
    u_ = arena.tensor(inputs(), batch);
    z_ = arena.tensor(outputs(), batch);
    y_ = demodulated_ ? arena.tensor(outputs(), batch) : z_;
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    x_ = x;
    ops.dense_forward(s_, styles_->w, {values_[kStyle], nullptr});
    ops.bias_leaky_forward(s_, values_[kStyleBias], shape_.in_channels, gain(), 1);
    ops.scale_channels(u_, x, s_);
    ops.convolve(z_, u_, shape_, values_[kWeight]);
    if (!demodulated_) return y_;
    ops.demodulate(f_, s_, demodulation());
    ops.scale_channels(y_, z_, f_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    const Tensor dx{scratch, inputs(), dy.batch};
    if (demodulated_) {
      ops.channel_products(d_f_.value, dy, z_);
      ops.scale_channels(dy, dy, f_);
    }
    if (request.weights) ops.convolve_backward_weights(gradients_[kWeight], dy, u_, shape_, request.accumulate);
    ops.convolve_backward_data(dx, dy, shape_, values_[kWeight]);
    ops.channel_products(d_s_.value, dx, x_);
    if (demodulated_)
      ops.demodulate_backward({d_s_.value, {}}, request.weights ? gradients_[kWeight] : nullptr, {d_f_.value, {}},
                              {f_, {}}, {s_, {}}, demodulation());
    ops.scale_channels(dx, dx, s_);
    styles_backward(ops, d_s_.value, request);
    pass_to_styles(ops, styles_->d_w.value, d_s_.value);
    return dx;
  }

  bool is_curved() const override { return true; }
  void plan_tangent(Arena& arena, int batch) override {
    for (Tensor* tensor : {&s_dot_, &d_s_.tangent}) *tensor = arena.tensor(shape_.in_channels, batch);
    for (Tensor* tensor : {&f_dot_, &d_f_.tangent})
      *tensor = arena.tensor(demodulated_ ? shape_.out_channels : 0, batch);
    u_dot_ = arena.tensor(inputs(), batch);
    z_dot_ = arena.tensor(outputs(), batch);
    y_dot_ = demodulated_ ? arena.tensor(outputs(), batch) : z_dot_;
  }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    x_dot_ = x_dot;
    ops.dense_forward(s_dot_, styles_->w_dot, {values_[kStyle], nullptr});
    ops.combine(s_dot_, gain(), s_dot_, 0);
    ops.scale_channels(u_dot_, x_dot, s_);
    ops.scale_channels(u_dot_, x_, s_dot_, true);
    ops.convolve(z_dot_, u_dot_, shape_, values_[kWeight]);
    if (!demodulated_) return y_dot_;
    ops.demodulate_tangent(f_dot_, s_dot_, f_, s_, demodulation());
    ops.scale_channels(y_dot_, z_dot_, f_);
    ops.scale_channels(y_dot_, z_, f_dot_, true);
    return y_dot_;
  }
  /// The adjoints of y, z, u and x are dy, dy, dx and dx in turns.
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool) override {
    const int batch = dy.tangent.batch;
    const Adjoints dx{{scratch.value, inputs(), batch}, {scratch.tangent, inputs(), batch}};
    if (demodulated_) {
      ops.channel_products(d_f_.tangent, dy.tangent, z_);
      ops.channel_products(d_f_.value, dy.value, z_);
      ops.channel_products(d_f_.value, dy.tangent, z_dot_, true);
      scale_adjoints(ops, dy, f_, f_dot_);
    }
    ops.convolve_backward_weights(gradients_[kWeight], dy.value, u_, shape_, true);
    ops.convolve_backward_weights(gradients_[kWeight], dy.tangent, u_dot_, shape_, true);
    ops.convolve_backward_data(dx.value, dy.value, shape_, values_[kWeight]);
    ops.convolve_backward_data(dx.tangent, dy.tangent, shape_, values_[kWeight]);
    ops.channel_products(d_s_.tangent, dx.tangent, x_);
    ops.channel_products(d_s_.value, dx.value, x_);
    ops.channel_products(d_s_.value, dx.tangent, x_dot_, true);
    if (demodulated_)
      ops.demodulate_backward(d_s_, gradients_[kWeight], d_f_, {f_, f_dot_}, {s_, s_dot_}, demodulation());
    scale_adjoints(ops, dx, s_, s_dot_);
    styles_backward(ops, d_s_.value, {.weights = true, .accumulate = true});
    ops.combine(d_s_.tangent, gain(), d_s_.tangent, 0);
    ops.dense_backward_weights(gradients_[kStyle], nullptr, d_s_.tangent, styles_->w_dot, true);
    pass_to_styles(ops, styles_->d_w.value, d_s_.value);
    pass_to_styles(ops, styles_->d_w.tangent, d_s_.tangent);
    return dx;
  }

 private:
  enum { kWeight, kStyle, kStyleBias, kArrays };

  float gain() const { return 1 / std::sqrt(static_cast<float>(styles_->width)); }
  /// The published code divides by the norm of the filter times gain_of().
  DemodulationParameters demodulation() const {
    const float scale = gain_of(shape_);
    return {values_[kWeight], shape_.taps(), kDemodulationEpsilon / (scale * scale)};
  }
  /// From the adjoints of y = factors x and its tangent to those of x and x_dot, in place.
  static void scale_adjoints(TensorOps& ops, Adjoints d, Tensor factors, Tensor factors_dot) {
    ops.scale_channels(d.value, d.value, factors);
    ops.scale_channels(d.value, d.tangent, factors_dot, true);
    ops.scale_channels(d.tangent, d.tangent, factors);
  }
  /// In place: d_s becomes the gradient of the product of the affine function's weights and w.
  void styles_backward(TensorOps& ops, Tensor d_s, const GradientRequest& request) {
    ops.bias_leaky_backward(d_s, s_, request.weights ? gradients_[kStyleBias] : nullptr, shape_.in_channels, gain(), 1,
                            request.accumulate);
    if (request.weights) ops.dense_backward_weights(gradients_[kStyle], nullptr, d_s, styles_->w, request.accumulate);
  }
  void pass_to_styles(TensorOps& ops, Tensor d_w, Tensor d_s) {
    ops.dense_backward_data(passed_w_, d_s, values_[kStyle]);
    ops.combine(d_w, 1, passed_w_, 1);
  }

  ConvolutionShape shape_;
  std::shared_ptr<Styles> styles_;
  bool demodulated_;
  float *values_[kArrays] = {}, *gradients_[kArrays] = {};
  Tensor x_, s_, u_, z_, f_, y_;
  Tensor x_dot_, s_dot_, u_dot_, z_dot_, f_dot_, y_dot_;
  Adjoints d_s_, d_f_;
  Tensor passed_w_;  // what the layer adds to the gradient of w
};

/// image = colours of x + image of the size before, enlarged
class ToColours final : public Layer {
 public:
  ToColours(std::string name, const Colouring& colouring, std::shared_ptr<Styles> styles)
      : Layer(std::move(name)),
        shape_(colouring.shape),
        first_(colouring.first),
        last_(colouring.last),
        blocks_{.channels = shape_.out_channels, .height = shape_.in_height, .width = shape_.in_width},
        styles_(styles),
        convolution_("", shape_, std::move(styles), false),
        bias_(bias_leaky("", shape_.out_channels, shape_.in_height * shape_.in_width, gain_of(shape_), 1)) {}

  std::string kind() const override { return convolution_.kind() + (first_ ? "" : " + nearest, up by 2x2"); }
  int inputs() const override { return convolution_.inputs(); }
  int outputs() const override { return last_ ? convolution_.outputs() : inputs(); }
  std::vector<ParameterSpec> parameters() const override {
    auto all = convolution_.parameters();
    for (auto& spec : bias_->parameters()) all.push_back(std::move(spec));
    return all;
  }
  double forward_flops_per_image() const override { return convolution_.forward_flops_per_image(); }
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const override {
    return convolution_.workspace_bytes(ops, batch);
  }
  void bind(float* parameters, float* gradients, float* statistics) override {
    convolution_.bind(parameters, gradients, statistics);
    const std::size_t before = padded(convolution_.parameters());
    bias_->bind(parameters + before, gradients + before, statistics);
  }
  void plan(Arena& arena, int batch) override {
    convolution_.plan(arena, batch);
    for (Tensor* tensor : {&image_, &d_colours_.value}) *tensor = arena.tensor(convolution_.outputs(), batch);
    d_coarse_ = arena.tensor(first_ ? 0 : blocks_.coarse_features(), batch);
  }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) override {
    styles_->image = added(ops, image_, styles_->image, bias_->forward(ops, convolution_.infer(ops, x), noise));
    return last_ ? image_ : x;
  }
  Tensor infer(TensorOps& ops, Tensor x) override {
    styles_->image = added(ops, image_, styles_->image, bias_->infer(ops, convolution_.infer(ops, x)));
    return last_ ? image_ : x;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    if (last_) ops.fill(styles_->d_w.value, 0);
    const Tensor d = bias_->backward(ops, image_backward(ops, d_colours_.value, dy), nullptr, request);
    const Tensor dx = convolution_.backward(ops, d, scratch, request);
    return last_ ? dx : sum(ops, dy, dx);
  }

  bool is_curved() const override { return true; }
  void plan_tangent(Arena& arena, int batch) override {
    convolution_.plan_tangent(arena, batch);
    for (Tensor* tensor : {&image_dot_, &d_colours_.tangent}) *tensor = arena.tensor(convolution_.outputs(), batch);
  }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    const Tensor colours_dot = bias_->tangent(ops, convolution_.tangent(ops, x_dot));
    styles_->image_dot = added(ops, image_dot_, styles_->image_dot, colours_dot);
    return last_ ? image_dot_ : x_dot;
  }
  /// The image is a sum, so that nothing beside its tangent has an adjoint.
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool) override {
    if (last_) {
      assert(dy.value.data == nullptr);
      for (const Tensor d_w : {styles_->d_w.value, styles_->d_w.tangent}) ops.fill(d_w, 0);
    }
    ops.fill(d_colours_.value, 0);
    image_backward(ops, d_colours_.tangent, dy.tangent);
    const Adjoints dx =
        convolution_.tangent_backward(ops, bias_->tangent_backward(ops, d_colours_, {}, true), scratch, true);
    if (last_) return dx;
    return {sum(ops, dy.value, dx.value), sum(ops, dy.tangent, dx.tangent)};
  }

 private:
  Tensor added(TensorOps& ops, Tensor image, Tensor coarse, Tensor colours) const {
    if (!first_) ops.upsample(image, coarse, blocks_, 1);
    ops.combine(image, 1, colours, first_ ? 0 : 1);
    return image;
  }
  /// Makes the gradient of the colours that of the image, and tells that of the size before its own.
  Tensor image_backward(TensorOps& ops, Tensor d_colours, Tensor dy) {
    ops.copy(d_colours, last_ ? dy : styles_->d_image);
    if (!first_) ops.pool(d_coarse_, d_colours, blocks_, 1);
    styles_->d_image = d_coarse_;
    return d_colours;
  }
  static Tensor sum(TensorOps& ops, Tensor y, Tensor x) {
    ops.combine(y, 1, x, 1);
    return y;
  }

  ConvolutionShape shape_;
  bool first_, last_;
  BlockShape blocks_;
  std::shared_ptr<Styles> styles_;
  ModulatedConvolution convolution_;
  std::unique_ptr<Layer> bias_;
  Tensor image_, image_dot_, d_coarse_;
  Adjoints d_colours_;
};

}  // namespace

std::unique_ptr<Layer> learned_constant(std::string name, int channels, int size, std::shared_ptr<Styles> styles) {
  return std::make_unique<LearnedConstant>(std::move(name), channels, size, std::move(styles));
}

std::unique_ptr<Layer> modulated_convolution(std::string name, const ConvolutionShape& shape,
                                             std::shared_ptr<Styles> styles, bool demodulated) {
  return std::make_unique<ModulatedConvolution>(std::move(name), shape, std::move(styles), demodulated);
}

std::unique_ptr<Layer> to_colours(std::string name, const Colouring& colouring, std::shared_ptr<Styles> styles) {
  return std::make_unique<ToColours>(std::move(name), colouring, std::move(styles));
}

}  // namespace ganymede::kernel

#include "kernel/ops/tensor_ops.hpp"

#include <cassert>
#include <cmath>

#include "kernel/ops/counted.hpp"

namespace ganymede::kernel {
namespace {

/// FLOPs of the product of a matrix [outputs x inputs] with a batch of inputs.
double dense_flops(Tensor out, Tensor in) { return 2.0 * out.features * in.features * out.batch; }

double dense_parameters(Tensor out, Tensor in) { return static_cast<double>(out.features) * in.features; }

[[maybe_unused]] bool same_shape(Tensor a, Mask b) { return a.features == b.features && a.batch == b.batch; }

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  launches += other.launches;
  seconds += other.seconds;
  return *this;
}

Work operator-(Work a, const Work& b) {
  a.flops -= b.flops;
  a.bytes_read -= b.bytes_read;
  a.bytes_written -= b.bytes_written;
  a.launches -= b.launches;
  a.seconds -= b.seconds;
  return a;
}

double TensorOps::traffic(Tensor x) const { return operands(count_of(x)); }

double TensorOps::operands(double count) const {
  return count * static_cast<double>(bytes_of(element_type_)) / static_cast<double>(sizeof(float));
}

void TensorOps::dense_forward(Tensor y, Tensor x, DenseParameters parameters) {
  assert(y.batch == x.batch);
  const Counted counted(*this, ProductExtents{GrowsBy::m, 1, y.features, x.features, false, true}, dense_flops(y, x),
                        operands(dense_parameters(y, x)) + y.features + traffic(x), traffic(y));
  do_dense_forward(y, x, parameters);
}

void TensorOps::dense_backward_data(Tensor dx, Tensor dy, const float* weight) {
  assert(dx.batch == dy.batch && dx.data != dy.data);
  const Counted counted(*this, ProductExtents{GrowsBy::m, 1, dx.features, dy.features, false, false},
                        dense_flops(dy, dx), operands(dense_parameters(dy, dx)) + traffic(dy), traffic(dx));
  do_dense_backward_data(dx, dy, weight);
}

void TensorOps::dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) {
  assert(x.batch == dy.batch);
  Counted counted(*this, ProductExtents{GrowsBy::k, dy.features, x.features, 1, true, false}, dense_flops(dy, x),
                  traffic(dy) + traffic(x) + (accumulate ? dense_parameters(dy, x) + dy.features : 0),
                  dense_parameters(dy, x));
  if (d_bias != nullptr) counted.also("sum", dy, traffic(dy), dy.features);
  do_dense_backward_weights(d_weight, d_bias, dy, x, accumulate);
}

void TensorOps::convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight) {
  assert(y.batch == x.batch && x.features == shape.in_features() && y.features == shape.out_features());
  const Counted counted(*this, KernelKind::convolution, shape, x.batch,
                        operands(static_cast<double>(shape.weights())) + traffic(x), traffic(y));
  do_convolve(y, x, shape, weight);
}

void TensorOps::convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight,
                         const ConvolutionEpilogue& after) {
  assert(y.batch == x.batch && x.features == shape.in_features() && y.features == shape.out_features());
  assert(after.slope >= 0 && after.factor > 0 && (after.bias != nullptr || after.factor == 1));
  Counted counted(*this, KernelKind::convolution, shape, x.batch,
                  operands(static_cast<double>(shape.weights())) + traffic(x), traffic(y));
  if (after.bias != nullptr)
    counted.also("bias_leaky", y, traffic(y) + shape.out_channels, traffic(y));
  else
    counted.also("activate", y, traffic(y), traffic(y));
  do_convolve_leaky(y, x, shape, weight, after);
}

void TensorOps::convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight) {
  assert(dy.batch == dx.batch && dx.features == shape.in_features() && dy.features == shape.out_features());
  const Counted counted(*this, KernelKind::convolution_data_gradient, shape, dx.batch,
                        operands(static_cast<double>(shape.weights())) + traffic(dy), traffic(dx));
  do_convolve_backward_data(dx, dy, shape, weight);
}

void TensorOps::convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape,
                                          bool accumulate) {
  assert(dy.batch == x.batch && x.features == shape.in_features() && dy.features == shape.out_features());
  const auto weights = static_cast<double>(shape.weights());
  const bool rounds = element_type_ != ElementType::fp32;
  Counted counted(*this, KernelKind::convolution_weight_gradient, shape, x.batch,
                  traffic(dy) + traffic(x) + (accumulate && !rounds ? weights : 0), operands(weights));
  // A convolution's results have the type of its operands; a further kernel adds them to the gradients, which are fp32.
  if (rounds) counted.also_parameters("from_bf16", shape.weights(), accumulate ? 1.5 : 0.5, 1);
  do_convolve_backward_weights(d_weight, dy, x, shape, accumulate);
}

void TensorOps::batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& parameters) {
  assert(same_shape(y, x) && x.batch >= 2);
  const Counted counted(*this, "batch_norm", y, traffic(x) + 4.0 * x.features, traffic(y) + 4.0 * x.features);
  do_batch_norm_leaky_forward(y, x, parameters);
}

void TensorOps::batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& parameters) {
  assert(same_shape(y, x));
  const Counted counted(*this, "batch_norm_inference", y, traffic(x) + 4.0 * x.features, traffic(y));
  do_batch_norm_leaky_inference(y, x, parameters);
}

void TensorOps::batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale,
                                          float* d_shift, bool accumulate) {
  assert(same_shape(dy, x) && (d_scale == nullptr) == (d_shift == nullptr));
  const Counted counted(*this, "batch_norm_backward", dy, 2 * traffic(x) + 4.0 * x.features,
                        traffic(dy) + 2.0 * x.features);
  do_batch_norm_leaky_backward(dy, x, parameters, d_scale, d_shift, accumulate);
}

void TensorOps::instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) {
  assert(same_shape(y, x) && y.data != x.data && x.features % channels == 0);
  const Counted counted(*this, "instance_norm", y, traffic(x), traffic(y) + 2.0 * channels * x.batch);
  do_instance_norm_leaky_forward(y, x, moments, channels, slope);
}

void TensorOps::instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels, float slope) {
  assert(same_shape(dy, x) && x.features % channels == 0);
  const Counted counted(*this, "instance_norm_backward", dy, 2 * traffic(x) + 2.0 * channels * x.batch, traffic(dy));
  do_instance_norm_leaky_backward(dy, x, moments, channels, slope);
}

void TensorOps::leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters parameters, RandomStream& random) {
  assert(same_shape(x, mask) && parameters.keep > 0 && parameters.keep <= 1);
  const Counted counted(*this, "leaky_dropout", x, traffic(x), traffic(x) + count_of(x) / kFloat);
  do_leaky_dropout_forward(x, mask, parameters, random);
}

void TensorOps::leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters parameters, float* d_bias,
                                       bool accumulate) {
  assert(same_shape(dy, y) && same_shape(dy, mask));
  const Counted counted(*this, "leaky_dropout_backward", dy, 2 * traffic(y) + count_of(y) / kFloat, traffic(dy));
  do_leaky_dropout_backward(dy, y, mask, parameters, d_bias, accumulate);
}

void TensorOps::logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters parameters, DenseParameters dense,
                              RandomStream& random) {
  assert(y.features == 1 && y.batch == x.batch && same_shape(x, mask) && parameters.keep > 0 && parameters.keep <= 1);
  Counted counted(*this, ProductExtents{GrowsBy::m, 1, 1, x.features, false, true}, dense_flops(y, x),
                  dense_parameters(y, x) + 1, traffic(y));
  counted.also("leaky_dropout", x, traffic(x), traffic(x) + count_of(x) / kFloat);
  do_logit_forward(y, x, mask, parameters, dense, random);
}

void TensorOps::logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters parameters,
                               const float* weight, const LogitGradients& gradients, bool accumulate) {
  assert(dy.features == 1 && dy.batch == x.batch && same_shape(dx, x) && same_shape(x, mask) && dx.data != x.data);
  const bool weights = gradients.weight != nullptr;
  // The products for dx and for the weights are listed as one with as many FLOPs.
  Counted counted(*this, ProductExtents{GrowsBy::m, 1, (weights ? 2 : 1) * x.features, 1, false, false},
                  (weights ? 2 : 1) * dense_flops(dy, x), dense_parameters(dy, x) * (weights && accumulate ? 2 : 1),
                  weights ? dense_parameters(dy, x) : 0);
  counted.also("leaky_dropout_backward", dx, traffic(x) + count_of(x) / kFloat, traffic(dx));
  do_logit_backward(dx, dy, x, mask, parameters, weight, gradients, accumulate);
}

void TensorOps::activate(Tensor x, Activation activation) {
  assert(activation.slope >= 0);
  const Counted counted(*this, "activate", x, traffic(x), traffic(x));
  do_activate(x, activation);
}

void TensorOps::activate_backward(Tensor dy, Tensor y, Activation activation) {
  assert(same_shape(dy, y) && activation.slope >= 0);
  const Counted counted(*this, "activate_backward", dy, 2 * traffic(y), traffic(dy));
  do_activate_backward(dy, y, activation);
}

void TensorOps::bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) {
  assert(slope >= 0 && x.features % channels == 0);
  const Counted counted(*this, "bias_leaky", x, traffic(x) + channels, traffic(x));
  do_bias_leaky_forward(x, bias, channels, factor, slope);
}

void TensorOps::bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                                    bool accumulate) {
  assert(same_shape(dy, y) && slope > 0 && factor > 0 && y.features % channels == 0);
  const Counted counted(*this, "bias_leaky_backward", dy, 2 * traffic(y), traffic(dy) + channels);
  do_bias_leaky_backward(dy, y, d_bias, channels, factor, slope, accumulate);
}

void TensorOps::pixel_norm_forward(Tensor x, float* scale, int channels) {
  assert(x.features % channels == 0);
  const Counted counted(*this, "pixel_norm", x, traffic(x), traffic(x) + count_of(x) / channels);
  do_pixel_norm_forward(x, scale, channels);
}

void TensorOps::pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) {
  assert(same_shape(dy, y) && y.features % channels == 0);
  const Counted counted(*this, "pixel_norm_backward", dy, 2 * traffic(y) + count_of(y) / channels, traffic(dy));
  do_pixel_norm_backward(dy, y, scale, channels);
}

void TensorOps::minibatch_stddev_forward(Tensor y, Tensor x, int positions) {
  assert(y.features == x.features + positions && y.batch == x.batch);
  const Counted counted(*this, "minibatch_stddev", x, traffic(x), traffic(y));
  do_minibatch_stddev_forward(y, x, positions);
}

void TensorOps::minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) {
  assert(same_shape(dx, x) && dy.features == x.features + positions && dy.batch == x.batch);
  const Counted counted(*this, "minibatch_stddev_backward", x, traffic(x) + traffic(dy), traffic(dx));
  do_minibatch_stddev_backward(dx, dy, x, positions);
}

void TensorOps::pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) {
  assert(fine.features == shape.fine_features() && coarse.features == shape.coarse_features());
  const Counted counted(*this, "pool", coarse, traffic(fine), traffic(coarse));
  do_pool(coarse, fine, shape, factor);
}

void TensorOps::upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) {
  assert(fine.features == shape.fine_features() && coarse.features == shape.coarse_features());
  const Counted counted(*this, "upsample", fine, traffic(coarse), traffic(fine));
  do_upsample(fine, coarse, shape, factor);
}

void TensorOps::combine(Tensor y, float a, Tensor x, float b) {
  assert(same_shape(y, x));
  const Counted counted(*this, "combine", y, traffic(x) + (b == 0 ? 0 : traffic(y)), traffic(y));
  do_combine(y, a, x, b);
}

void TensorOps::interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) {
  assert(same_shape(between, real) && same_shape(real, fake));
  const Counted counted(*this, "interpolate", between, 2 * traffic(real), traffic(between));
  do_interpolate(between, real, fake, random);
}

void TensorOps::gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                                 float* length) {
  assert(same_shape(direction, gradient));
  const Counted counted(*this, "gradient_penalty", direction, 2 * traffic(gradient), traffic(direction));
  do_gradient_penalty(loss, direction, gradient, weight, centre, length);
}

void TensorOps::minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) {
  assert(same_shape(x, x_dot) && y_dot.features == x.features + positions);
  const Counted counted(*this, "minibatch_stddev_tangent", x, 2 * traffic(x), traffic(y_dot));
  do_minibatch_stddev_tangent(y_dot, x_dot, x, positions);
}

void TensorOps::minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) {
  assert(same_shape(dx.value, x) && same_shape(dx.tangent, x) && dy.tangent.features == x.features + positions);
  const Counted counted(*this, "minibatch_stddev_tangent_backward", x, 2 * traffic(x) + 2 * traffic(dy.tangent),
                        2 * traffic(x));
  do_minibatch_stddev_tangent_backward(dx, dy, x_dot, x, positions);
}

void TensorOps::batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& parameters) {
  assert(same_shape(y_dot, x) && same_shape(x_dot, x));
  const Counted counted(*this, "batch_norm_tangent", x, 2 * traffic(x) + 4.0 * x.features, traffic(x));
  do_batch_norm_leaky_tangent(y_dot, x_dot, x, parameters);
}

void TensorOps::batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                  const BatchNormParameters& parameters, float* d_scale, float* d_shift,
                                                  bool accumulate) {
  assert(same_shape(dx.value, x) && same_shape(dx.tangent, x) && same_shape(dy.tangent, x));
  const Counted counted(*this, "batch_norm_tangent_backward", x, 4 * traffic(x) + 4.0 * x.features,
                        2 * traffic(x) + 2.0 * x.features);
  do_batch_norm_leaky_tangent_backward(dx, dy, x_dot, x, parameters, d_scale, d_shift, accumulate);
}

void TensorOps::fill(Tensor x, float value) {
  const Counted counted(*this, "fill", x, 0, traffic(x));
  do_fill(x, value);
}

void TensorOps::append_channels(Tensor y, Tensor x, Tensor more) {
  assert(y.batch == x.batch && y.batch == more.batch && (y.features - x.features) % more.features == 0);
  const Counted counted(*this, "append_channels", y, traffic(x), traffic(y));
  do_append_channels(y, x, more, (y.features - x.features) / more.features);
}

void TensorOps::leading_channels(Tensor dx, Tensor dy, int positions) {
  assert(dx.batch == dy.batch && dx.features < dy.features && dx.features % positions == 0);
  const Counted counted(*this, "leading_channels", dx, traffic(dx), traffic(dx));
  do_leading_channels(dx, dy, positions);
}

void TensorOps::squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  assert(same_shape(dy, y) && same_shape(y, x));
  const Counted counted(*this, "squared_error", y, 2 * traffic(y), traffic(dy));
  do_squared_error(loss, dy, y, x, weight);
}

void TensorOps::absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  assert(same_shape(dy, y) && same_shape(y, x));
  const Counted counted(*this, "absolute_error", y, 2 * traffic(y), traffic(dy));
  do_absolute_error(loss, dy, y, x, weight);
}

void TensorOps::sample_code(Tensor z, Tensor code, Tensor noise) {
  assert(same_shape(z, noise) && code.features == 2 * z.features && code.batch == z.batch);
  const Counted counted(*this, "sample_code", z, 3 * traffic(z), traffic(z));
  do_sample_code(z, code, noise);
}

void TensorOps::sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) {
  assert(same_shape(d_code, code) && same_shape(dz, noise) && code.features == 2 * dz.features);
  const Counted counted(*this, "sample_code_backward", dz, 4 * traffic(dz), 2 * traffic(dz));
  do_sample_code_backward(loss, d_code, dz, code, noise);
}

void TensorOps::adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) {
  assert(same_shape(d_logits, logits) && logits.features == 1);
  const Counted counted(*this, "adversarial_loss", logits, traffic(logits), traffic(logits) + 1);
  do_adversarial_loss(loss, d_logits, logits, term);
}

void TensorOps::classification_loss(float* loss, Tensor d_logits, Tensor logits,
                                    std::span<const std::uint8_t> host_labels) {
  assert(same_shape(d_logits, logits) && host_labels.size() == static_cast<std::size_t>(logits.batch));
  const Counted counted(*this, "classification_loss", logits, traffic(logits), traffic(logits) + 1);
  do_classification_loss(loss, d_logits, logits, host_labels);
}

void TensorOps::adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
                     const AdamParameters& rule, std::int64_t step) {
  assert(step >= 1);
  const Counted counted(*this, "adam", count, 4, copy_of(parameters) == nullptr ? 3 : 3.5);
  const auto t = static_cast<double>(step);
  do_adam(parameters, gradients, first, second, count,
          {.rate = static_cast<float>(double{rule.learning_rate} / (1 - std::pow(double{rule.beta1}, t))),
           .beta1 = rule.beta1,
           .beta2 = rule.beta2,
           .inverse_root = static_cast<float>(1 / std::sqrt(1 - std::pow(double{rule.beta2}, t))),
           .epsilon = rule.epsilon});
}

void TensorOps::average(float* average, const float* values, std::size_t count, float decay) {
  assert(decay >= 0 && decay < 1);
  const Counted counted(*this, "average", count, 2, 1);
  do_average(average, values, count, decay);
}

void TensorOps::fill_normal(Tensor x, RandomStream& random) {
  const Counted counted(*this, "fill_normal", x, 0, traffic(x));
  do_fill_normal(x, random);
}

void TensorOps::load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) {
  assert(host_pixels.size() == x.size() && x.features % channels == 0);
  const Counted counted(*this, "load_images", x, count_of(x) / kFloat, traffic(x));
  do_load_images(x, host_pixels, low, channels);
}

void TensorOps::copy(float* to, const float* from, std::size_t count) {
  const Counted counted(*this, "copy", count, 1, 1);
  do_copy(to, from, count);
}

void TensorOps::copy(Tensor to, Tensor from) {
  assert(same_shape(to, from));
  const Counted counted(*this, "copy", to, traffic(from), traffic(to));
  do_copy_elements(to, from);
}

void TensorOps::pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) {
  const auto packed = static_cast<double>(compressed_bytes(compression, count, element_type_));
  const Counted counted(*this, "pack", count, operands(1), packed / kFloat / static_cast<double>(count));
  do_pack(compression, to, from, count);
}

void TensorOps::unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) {
  const auto packed = static_cast<double>(compressed_bytes(compression, count, element_type_));
  const Counted counted(*this, "unpack", count, packed / kFloat / static_cast<double>(count), operands(1));
  do_unpack(compression, to, from, count);
}

}  // namespace ganymede::kernel

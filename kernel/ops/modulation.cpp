// The public operations of modulated convolutions (see tensor_ops.cpp).

#include <cassert>

#include "kernel/ops/counted.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {
namespace {

/// Numbers of the weights between styles and factors.
double weights_of(Tensor factors, Tensor styles, const DemodulationParameters& parameters) {
  return static_cast<double>(factors.features) * styles.features * parameters.taps;
}

}  // namespace

void TensorOps::scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) {
  assert(same_shape(y, x) && factors.batch == x.batch && x.features % factors.features == 0);
  const Counted counted(*this, "scale_channels", y, (accumulate ? 2 : 1) * traffic(x), traffic(y));
  do_scale_channels(y, x, factors, accumulate);
}

void TensorOps::channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) {
  assert(same_shape(y, x) && products.batch == x.batch && x.features % products.features == 0);
  const Counted counted(*this, "channel_products", x, 2 * traffic(x), traffic(products));
  do_channel_products(products, x, y, accumulate);
}

void TensorOps::demodulate(Tensor factors, Tensor styles, DemodulationParameters parameters) {
  assert(factors.batch == styles.batch && parameters.epsilon > 0);
  const Counted counted(*this, "demodulate", styles,
                        traffic(styles) + operands(weights_of(factors, styles, parameters)), traffic(factors));
  do_demodulate(factors, styles, parameters);
}

void TensorOps::demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                                   DemodulationParameters parameters) {
  assert(same_shape(factors_dot, factors) && same_shape(styles_dot, styles) && factors.batch == styles.batch);
  const Counted counted(*this, "demodulate_tangent", styles,
                        2 * traffic(styles) + traffic(factors) + operands(weights_of(factors, styles, parameters)),
                        traffic(factors));
  do_demodulate_tangent(factors_dot, styles_dot, factors, styles, parameters);
}

void TensorOps::demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors,
                                    Adjoints styles, DemodulationParameters parameters) {
  assert(same_shape(d_styles.value, styles.value) && same_shape(d_factors.value, factors.value));
  assert(d_factors.tangent.data == nullptr || same_shape(d_factors.tangent, factors.tangent));
  const int kinds = d_factors.tangent.data == nullptr ? 1 : 2;
  const double weights = operands(weights_of(factors.value, styles.value, parameters));
  const Counted counted(*this, "demodulate_backward", styles.value,
                        2 * kinds * (traffic(styles.value) + traffic(factors.value)) + 2 * weights,
                        kinds * traffic(styles.value) + (d_weight == nullptr ? 0 : weights));
  do_demodulate_backward(d_styles, d_weight, d_factors, factors, styles, parameters);
}

}  // namespace ganymede::kernel

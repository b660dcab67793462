#pragma once
// Shared by the norms: the sums from which means and variances of columns are computed, and gradients.

#include "kernel/ops/cuda/timeline.hpp"

namespace ganymede::kernel::cuda {

/// Sums for the mean and variance of columns, taken around the first row's values: one pass over the data, without
/// cancellation where the mean is large.
template <class E>
struct AroundFirstRow {
  const E* in;
  std::size_t width;

  GANYMEDE_DEVICE Sums<2> operator()(std::size_t row, std::size_t c) const {
    const float d = in[row * width + c] - in[c];
    return {{d, d * d}};
  }
};

/// Numbers that the backward pass of batch norm and leaky ReLU needs of one value.
struct NormGradient {
  float factor;  ///< by which the value is multiplied
  float n;       ///< the value without mean and deviation
  float dz;      ///< the gradient before the leaky ReLU
};

GANYMEDE_DEVICE inline NormGradient norm_gradient(const BatchNormParameters& p, std::size_t c, float value, float dy) {
  const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
  return {factor, (value - p.mean[c]) * p.inverse_deviation[c], dy * leaky_slope(value * factor + offset, p.slope)};
}

}  // namespace ganymede::kernel::cuda

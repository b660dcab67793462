#pragma once
// The sums from which means and variances of columns are computed.

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

}  // namespace ganymede::kernel::cuda

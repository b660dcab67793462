#pragma once
// Dense layers on a GPU, as products of column-major matrices. Arguments as in TensorOps.

#include "kernel/ops/cuda/timeline.hpp"

namespace ganymede::kernel::cuda {

template <class E, class Device>
void dense_forward(Timeline<Device>& timeline, Tensor y, Tensor x, DenseParameters p) {
  timeline.gemm(
      {true, false, y.features, x.batch, x.features, p.weight, x.features, x.data, x.features, 0, y.data, y.features});
  if (p.bias == nullptr) return;
  E* out = elements_of<E>(y);
  const float* bias = p.bias;
  const std::size_t features = size_of(y.features);
  timeline.each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) { out[i] += bias[i % features]; });
}

template <class E, class Device>
void dense_backward_data(Timeline<Device>& timeline, Tensor dx, Tensor dy, const float* weight) {
  timeline.gemm({false, false, dx.features, dx.batch, dy.features, weight, dx.features, dy.data, dy.features, 0,
                 dx.data, dx.features});
}

template <class E, class Device>
void dense_backward_weights(Timeline<Device>& timeline, float* d_weight, float* d_bias, Tensor dy, Tensor x,
                            bool accumulate) {
  timeline.gemm({false, true, x.features, dy.features, x.batch, x.data, x.features, dy.data, dy.features,
                 accumulate ? 1.0F : 0.0F, d_weight, x.features});
  if (d_bias != nullptr) sum_columns(timeline, d_bias, elements_of<E>(dy), dy.batch, dy.features, accumulate);
}

}  // namespace ganymede::kernel::cuda

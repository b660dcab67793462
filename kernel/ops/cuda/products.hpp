#pragma once
// Dense layers on a GPU, as products of column-major matrices. Arguments as in TensorOps.

#include "kernel/ops/cuda/timeline.hpp"

namespace ganymede::kernel::cuda {

/// A product whose epilogue the device's library does not have: the product, then a kernel.
template <class Device>
void gemm_in_steps(Device& device, const Gemm& call) {
  Gemm plain = call;
  plain.epilogue = Epilogue::none;
  device.gemm(plain);
  const Divisor height(size_of(call.m));
  const std::size_t lead = size_of(call.c_lead), b_lead = size_of(call.b_lead);
  float *c = call.c, *vector = call.vector;
  if (call.epilogue == Epilogue::add_bias)
    return device.each(height * size_of(call.n), [=] GANYMEDE_DEVICE(std::size_t i) {
      c[i / height * lead + i % height] += vector[i % height];
    });
  const float* b = call.b;
  const bool transposed = call.transpose_b;
  device.template columns<1>(
      call.k, call.n,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t column) {
        return Sums<1>{{b[transposed ? row * b_lead + column : column * b_lead + row]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t column, const Sums<1>& sums) { vector[column] = sums.of[0]; }, NoApply{});
}

template <class E, class Device>
void dense_forward(Timeline<Device>& timeline, Tensor y, Tensor x, DenseParameters p) {
  timeline.gemm({true, false, y.features, x.batch, x.features, p.weight, x.features, x.data, x.features, 0, y.data,
                 y.features, p.bias == nullptr ? Epilogue::none : Epilogue::add_bias, const_cast<float*>(p.bias)});
}

template <class E, class Device>
void dense_backward_data(Timeline<Device>& timeline, Tensor dx, Tensor dy, const float* weight) {
  timeline.gemm({false, false, dx.features, dx.batch, dy.features, weight, dx.features, dy.data, dy.features, 0,
                 dx.data, dx.features});
}

template <class E, class Device>
void dense_backward_weights(Timeline<Device>& timeline, float* d_weight, float* d_bias, Tensor dy, Tensor x,
                            bool accumulate) {
  // The epilogue overwrites its sums, so that they cannot be added to present values.
  const bool sums = d_bias != nullptr && !accumulate;
  timeline.gemm({false, true, x.features, dy.features, x.batch, x.data, x.features, dy.data, dy.features,
                 accumulate ? 1.0F : 0.0F, d_weight, x.features, sums ? Epilogue::sum_b : Epilogue::none, d_bias});
  if (d_bias != nullptr && accumulate) sum_columns(timeline, d_bias, elements_of<E>(dy), dy.batch, dy.features, accumulate);
}

}  // namespace ganymede::kernel::cuda

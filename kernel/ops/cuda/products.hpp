#pragma once
// Dense layers on a GPU, as products of column-major matrices. Arguments as in TensorOps, but weights as an operand has
// them.

#include "kernel/ops/cuda/timeline.hpp"

namespace ganymede::kernel::cuda {

/// A product whose epilogue the device's library does not have: the product, then a kernel. The operands are stored as
/// `From`, the result and the vector as `To`.
template <class From, class To, class Device>
void gemm_in_steps_of(Device& device, const Gemm& call) {
  Gemm plain = call;
  plain.epilogue = Epilogue::none;
  device.gemm(plain);
  const Divisor height(size_of(call.m));
  const std::size_t lead = size_of(call.c_lead), b_lead = size_of(call.b_lead);
  To *c = static_cast<To*>(call.c), *vector = static_cast<To*>(call.vector);
  if (call.epilogue == Epilogue::add_bias)
    return device.each(height * size_of(call.n),
                       [=] GANYMEDE_DEVICE(std::size_t i) { c[i / height * lead + i % height] += vector[i % height]; });
  const From* b = static_cast<const From*>(call.b);
  const bool transposed = call.transpose_b;
  device.template columns<1>(
      call.k, call.n,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t column) {
        return Sums<1>{{b[transposed ? row * b_lead + column : column * b_lead + row]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t column, const Sums<1>& sums) { vector[column] = sums.of[0]; }, NoApply{});
}

template <class Device>
void gemm_in_steps(Device& device, const Gemm& call) {
  if (call.operands == ElementType::fp32) return gemm_in_steps_of<float, float>(device, call);
  if (call.result == ElementType::fp32) return gemm_in_steps_of<Bf16, float>(device, call);
  gemm_in_steps_of<Bf16, Bf16>(device, call);
}

template <class E, class Device>
void dense_forward(Timeline<Device>& timeline, Tensor y, Tensor x, const E* weight, const E* bias) {
  constexpr ElementType kStored = kStoredAs<E>;
  timeline.gemm({true, false, y.features, x.batch, x.features, weight, x.features, x.data, x.features, 0, y.data,
                 y.features, kStored, kStored, bias == nullptr ? Epilogue::none : Epilogue::add_bias,
                 const_cast<E*>(bias)});
}

template <class E, class Device>
void dense_backward_data(Timeline<Device>& timeline, Tensor dx, Tensor dy, const E* weight) {
  constexpr ElementType kStored = kStoredAs<E>;
  timeline.gemm({false, false, dx.features, dx.batch, dy.features, weight, dx.features, dy.data, dy.features, 0,
                 dx.data, dx.features, kStored, kStored});
}

template <class E, class Device>
void dense_backward_weights(Timeline<Device>& timeline, float* d_weight, float* d_bias, Tensor dy, Tensor x,
                            bool accumulate) {
  // The epilogue overwrites its sums, so that they cannot be added to present values.
  const bool sums = d_bias != nullptr && !accumulate;
  timeline.gemm({false, true, x.features, dy.features, x.batch, x.data, x.features, dy.data, dy.features,
                 accumulate ? 1.0F : 0.0F, d_weight, x.features, kStoredAs<E>, ElementType::fp32,
                 sums ? Epilogue::sum_b : Epilogue::none, d_bias});
  if (d_bias != nullptr && accumulate)
    sum_columns(timeline, d_bias, elements_of<E>(dy), dy.batch, dy.features, accumulate);
}

}  // namespace ganymede::kernel::cuda

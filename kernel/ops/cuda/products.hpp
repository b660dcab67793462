#pragma once
// Dense layers on a GPU, as products of column-major matrices.

#include "kernel/ops/cuda/cuda_ops.hpp"

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

template <class Device, class E>
void CudaOps<Device, E>::do_dense_forward(Tensor y, Tensor x, DenseParameters p) {
  const E *weight = operand(p.weight), *bias = p.bias == nullptr ? nullptr : operand(p.bias);
  constexpr ElementType kStored = kStoredAs<E>;
  t_.gemm({true, false, y.features, x.batch, x.features, weight, x.features, x.data, x.features, 0, y.data, y.features,
           kStored, kStored, bias == nullptr ? Epilogue::none : Epilogue::add_bias, const_cast<E*>(bias)});
}

template <class Device, class E>
void CudaOps<Device, E>::do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) {
  constexpr ElementType kStored = kStoredAs<E>;
  t_.gemm({false, false, dx.features, dx.batch, dy.features, operand(weight), dx.features, dy.data, dy.features, 0,
           dx.data, dx.features, kStored, kStored});
}

template <class Device, class E>
void CudaOps<Device, E>::do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x,
                                                   bool accumulate) {
  // The epilogue overwrites its sums, so that they cannot be added to present values.
  const bool sums = d_bias != nullptr && !accumulate;
  t_.gemm({false, true, x.features, dy.features, x.batch, x.data, x.features, dy.data, dy.features,
           accumulate ? 1.0F : 0.0F, d_weight, x.features, kStoredAs<E>, ElementType::fp32,
           sums ? Epilogue::sum_b : Epilogue::none, d_bias});
  if (d_bias != nullptr && accumulate) sum_columns(t_, d_bias, elements_of<E>(dy), dy.batch, dy.features, accumulate);
}

}  // namespace ganymede::kernel::cuda

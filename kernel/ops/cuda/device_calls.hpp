#pragma once
// Calls of a Device of the GPU backend: products, convolutions, staged images. See timeline.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/bf16.hpp"
#include "kernel/ops/cuda/portable.hpp"
#include "kernel/ops/op_parameters.hpp"

namespace ganymede::kernel::cuda {

/// Upper limit of the StepWords in one step.
inline constexpr std::size_t kMaxStepWords = 65536;

/// Work of a product beside its sums.
enum class Epilogue {
  none,
  add_bias,  ///< c [m x n] += vector [m], in each column
  sum_b,     ///< vector [n] = sums of op(b) [k x n] over its rows; beta must be 0
};

/// c [m x n] = op(a) op(b) + beta c with the arguments of cublasGemmEx. All matrices are column-major; *_lead is the
/// distance between columns in elements. `operands` is the type of a and b, `result` that of c and `vector`.
struct Gemm {
  bool transpose_a, transpose_b;
  int m, n, k;
  const void* a;
  int a_lead;
  const void* b;
  int b_lead;
  float beta;
  void* c;
  int c_lead;
  ElementType operands, result;
  Epilogue epilogue = Epilogue::none;
  void* vector = nullptr;
};

/// Which operand of a convolution is computed from the other two: y, x or weight.
enum class Pass { forward, data, weights };

/// One pass of a convolution: x [batch x in_frames x in_height x in_width x in_channels], y [batch x out_frames x
/// out_height x out_width x out_channels], weight [out_channels x taps x in_channels]. x, y and, as an operand, weight
/// have the device's type of elements; Pass::weights computes a gradient, which is an array of floats.
struct ConvolutionCall {
  Pass pass;
  ConvolutionShape shape;
  int batch;
  void *x, *y, *weight;
  bool accumulate;                                ///< Pass::weights: add to the gradients that are there
  std::optional<ConvolutionEpilogue> after = {};  ///< Pass::forward: what follows
};

/// Images that were copied from the host to device memory. They begin at base + slot * stride bytes; a captured step
/// keeps base and stride and reads the slot from a StepWord.
struct StagedImages {
  const std::uint8_t* base;
  std::size_t slot, stride;
};

/// The `apply` of column sums that need no second pass over the elements.
struct NoApply {
  GANYMEDE_DEVICE void operator()(std::size_t, std::size_t) const {}
};

/// The ElementType that E, float or Bf16, stores.
template <class E>
inline constexpr ElementType kStoredAs = ElementType::fp32;
template <>
inline constexpr ElementType kStoredAs<Bf16> = ElementType::bf16;

/// A tensor's elements; kStoredAs<E> is their type.
template <class E>
E* elements_of(Tensor x) {
  return static_cast<E*>(x.data);
}

inline std::size_t size_of(int value) { return static_cast<std::size_t>(value); }

}  // namespace ganymede::kernel::cuda

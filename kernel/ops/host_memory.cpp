// The virtual functions of TensorOps that backends may keep: memory of the host, and operations one after the other.
// The GPU module, which derives from TensorOps, compiles this file too, because the first of them holds the type's
// information.

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

Buffer TensorOps::allocate_host(std::size_t bytes) {
  return {{std::calloc(bytes, 1), {[](void* data, std::size_t) { std::free(data); }, bytes, nullptr}}};
}

void TensorOps::do_convolve_leaky(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight,
                                  const ConvolutionEpilogue& after) {
  do_convolve(y, x, shape, weight);
  if (after.bias == nullptr && after.factor == 1) return do_activate(y, leaky_relu(after.slope));
  assert(after.bias != nullptr);
  do_bias_leaky_forward(y, after.bias, shape.out_channels, after.factor, after.slope);
}

void TensorOps::do_logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters parameters,
                                 DenseParameters dense, RandomStream& random) {
  do_leaky_dropout_forward(x, mask, parameters, random);
  do_dense_forward(y, x, dense);
}

void TensorOps::do_logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters parameters,
                                  const float* weight, const LogitGradients& gradients, bool accumulate) {
  if (gradients.weight != nullptr) do_dense_backward_weights(gradients.weight, gradients.bias, dy, x, accumulate);
  do_dense_backward_data(dx, dy, weight);
  do_leaky_dropout_backward(dx, x, mask, parameters, gradients.input_bias, accumulate);
}

void TensorOps::end_step(const float* results, std::size_t count) {
  assert(count <= kStepResults && ended_ - taken_ < kStepsAhead);
  read({results_[ended_ % kStepsAhead], count}, results);
  ++ended_;
}

void TensorOps::take(std::span<float> results) {
  assert(taken_ < ended_ && results.size() <= kStepResults);
  std::copy_n(results_[taken_++ % kStepsAhead], results.size(), results.begin());
}

}  // namespace ganymede::kernel

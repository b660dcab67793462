#pragma once
// Convolutions on the CPU: expresses the three passes as gathered products (see kernels.hpp) and divides them among
// threads.

#include <cstddef>

#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

/// One convolution for one call. A thread's scratch memory is a part of the workspace.
class CpuConvolution {
 public:
  /// Floats of workspace that the passes need with this number of threads.
  static std::size_t workspace_floats(const ConvolutionShape& shape, const CpuKernels& kernels, int threads);

  /// `workspace` has workspace_floats() floats; all references must outlive the object.
  CpuConvolution(const ConvolutionShape& shape, const CpuKernels& kernels, ThreadPool& pool, float* workspace)
      : shape_(shape), kernels_(kernels), pool_(pool), workspace_(workspace) {}

  // As TensorOps::convolve, convolve_backward_data and convolve_backward_weights.
  void forward(Tensor y, Tensor x, const float* weight) const;
  void backward_data(Tensor dx, Tensor dy, const float* weight) const;
  void backward_weights(float* d_weight, Tensor dy, Tensor x, bool accumulate) const;

 private:
  /// Returns which elements of x the forward pass reads.
  Gather gather_of(Tensor x, const Tap* taps) const;
  /// Computes the pixels of dx whose row and column are `row` and `column` modulo the stride.
  void backward_class(Tensor dx, Tensor dy, int row, int column) const;
  /// Computes all tiles of the product, on several threads.
  void over_tiles(const Gather& gather, const GatherProduct& product) const;
  float* scratch_of(int thread) const;

  const ConvolutionShape& shape_;
  const CpuKernels& kernels_;
  ThreadPool& pool_;
  float* workspace_;  // the transposed weights, then each thread's scratch
};

}  // namespace ganymede::kernel

#pragma once
// A convolution on the CPU: which gathered products its three passes are, and how threads share them.

#include <cstddef>

#include "kernel/ops.hpp"
#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"

namespace ganymede::kernel {

class CpuConvolution {
 public:
  static std::size_t workspace_floats(const ConvolutionShape& shape, const CpuKernels& kernels, int threads);

  /// `workspace` holds workspace_floats.
  CpuConvolution(const ConvolutionShape& shape, const CpuKernels& kernels, ThreadPool& pool, float* workspace)
      : shape_(shape), kernels_(kernels), pool_(pool), workspace_(workspace) {}

  // As Ops::convolve and its gradients.
  void forward(Tensor y, Tensor x, const float* weight) const;
  void backward_data(Tensor dx, Tensor dy, const float* weight) const;
  void backward_weights(float* d_weight, Tensor dy, Tensor x, bool accumulate) const;

 private:
  Gather gather_of(Tensor x, const Tap* taps) const;
  void backward_class(Tensor dx, Tensor dy, int row, int column) const;
  void over_tiles(const Gather& gather, const GatherProduct& product) const;
  float* scratch_of(int thread) const;

  const ConvolutionShape& shape_;
  const CpuKernels& kernels_;
  ThreadPool& pool_;
  float* workspace_;  // the weights, turned; then each thread's scratch
};

}  // namespace ganymede::kernel

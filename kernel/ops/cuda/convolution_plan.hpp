#pragma once
// cuDNN's descriptors of one pass of a convolution, and the choice of its algorithm.

#include <cudnn.h>

#include <cstddef>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/device_calls.hpp"

namespace ganymede::kernel::cuda {

/// A plan for one pass, shape and batch. Memory is channels-last; what training calls a convolution is cuDNN's
/// cross-correlation.
class ConvolutionPlan {
 public:
  ConvolutionPlan(cudnnHandle_t handle, Pass pass, const ConvolutionShape& shape, int batch, Precision precision);
  ~ConvolutionPlan();
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  /// False if cuDNN has no algorithm for it; then run() must not be called.
  bool found() const { return found_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Computes the pass's operand from the other two, all of the precision's type, and adds `beta` times its old value.
  /// `workspace` has workspace_bytes().
  void run(cudnnHandle_t handle, void* x, void* y, void* weight, float beta, void* workspace) const;

 private:
  template <class Found>
  void take(const Found* best);

  Pass pass_;
  bool found_ = false;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t weight_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  int algorithm_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace ganymede::kernel::cuda

#pragma once
// cuDNN's descriptors and its choice of an algorithm for a pass of a convolution.

#include <cudnn.h>

#include <cstddef>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/cuda_base.hpp"

namespace ganymede::kernel::cuda {

/// Of one pass, shape and batch. Channels last; cuDNN's cross-correlation is what training calls a convolution.
class ConvolutionPlan {
 public:
  ConvolutionPlan(cudnnHandle_t handle, Pass pass, const ConvolutionShape& shape, int batch, Precision precision);
  ~ConvolutionPlan();
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  /// Whether cuDNN has an algorithm.
  bool found() const { return found_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Operands of the precision's type; `beta` times what is there is added.
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

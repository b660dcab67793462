#pragma once
// The operations of progressively growing networks and of the gradient penalty on the CPU.

#include "common/random.hpp"
#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

/// Arguments as in TensorOps.
class CpuGrowing {
 public:
  CpuGrowing(const CpuKernels& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  void bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) const;
  void bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                           bool accumulate) const;
  void pixel_norm_forward(Tensor x, float* scale, int channels) const;
  void pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) const;
  void pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) const;
  void upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) const;

  static void minibatch_stddev_forward(Tensor y, Tensor x, int positions);
  static void minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions);
  static void interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random, Shard shard);
  static void minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions);
  static void minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions);
  static void gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight);

 private:
  /// Calls function(begin, end) on several threads for ranges of `count` items, each of which is `elements` floats.
  template <class Function>
  void over(int count, double elements, const Function& function) const;

  const CpuKernels& kernels_;
  ThreadPool& pool_;
};

}  // namespace ganymede::kernel

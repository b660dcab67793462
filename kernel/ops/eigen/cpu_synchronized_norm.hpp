#pragma once
// Batch norm over the images of all processes: each process's sums are added up before they are used.

#include "kernel/ops/eigen/thread_pool.hpp"
#include "kernel/ops/tensor_ops.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

class CpuSynchronizedNorm {
 public:
  CpuSynchronizedNorm(Communicator& communicator, ThreadPool& pool) : communicator_(communicator), pool_(pool) {}

  // As TensorOps::batch_norm_leaky_forward and _backward.
  void forward(Tensor y, Tensor x, const BatchNormParameters& parameters) const;
  void backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale, float* d_shift,
                bool accumulate) const;

 private:
  /// Calls function(feature) for every feature, on several threads.
  template <class Function>
  void over(int features, const Function& function) const;

  Communicator& communicator_;
  ThreadPool& pool_;
};

}  // namespace ganymede::kernel

#pragma once
// cuDNN's descriptors of one pass of a convolution, and the choice of its algorithm.

#include <cstddef>
#include <utility>
#include <vector>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/cuda/handles.hpp"

namespace ganymede::kernel::cuda {

/// A plan for one pass, shape and batch. Memory is channels-last; what training calls a convolution is cuDNN's
/// cross-correlation.
class ConvolutionPlan {
 public:
  ConvolutionPlan(cudnnHandle_t handle, Pass pass, const ConvolutionShape& shape, int batch, Precision precision);

  /// False if cuDNN has no algorithm for it; then run() does nothing.
  bool found() const { return taken_ < algorithms_.size(); }
  /// Bytes that are enough for every algorithm that run() may try.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Computes the pass's operand from the other two, all of the precision's type, and adds `beta` times its old value.
  /// `workspace` has workspace_bytes(). Uses the fastest algorithm that runs, in the order of cuDNN's heuristics, whose
  /// word is no promise. Returns false if there is none; then nothing has been computed.
  bool run(cudnnHandle_t handle, void* x, void* y, void* weight, float beta, void* workspace);
  /// Times every algorithm that runs, on operands as run() takes them, in the order of cuDNN's heuristics.
  std::vector<TimedAlgorithm> time(cudnnHandle_t handle, cudaStream_t stream, void* x, void* y, void* weight,
                                   void* workspace);
  /// From now on run() tries the fastest first; those that do not compute the same bits every time come last.
  /// Returns false, and changes nothing, if one of `timed` is not offered.
  bool prefer(const std::vector<TimedAlgorithm>& timed);
  /// True once, so that a missing algorithm is reported only once.
  bool is_first_refusal() const { return !std::exchange(refused_, true); }

 private:
  struct Algorithm {
    int number;
    std::size_t workspace_bytes;
    cudnnMathType_t math;
    bool repeats;
  };
  void describe(const ConvolutionShape& shape, int batch, Precision precision);
  /// Asks cuDNN's heuristics for the algorithms of a pass.
  template <class Found, class Ask>
  void list(int most, Precision precision, const Ask& ask);
  cudnnStatus_t call(cudnnHandle_t handle, void* x, void* y, void* weight, float beta, void* workspace) const;
  void take_on();  ///< gives the descriptor the math type of the algorithm taken

  Pass pass_;
  TensorDescriptor x_, y_;
  FilterDescriptor weight_;
  ConvolutionDescriptor convolution_;
  std::vector<Algorithm> algorithms_;  ///< the best first
  std::size_t taken_ = 0, workspace_bytes_ = 0;
  mutable bool refused_ = false;
};

}  // namespace ganymede::kernel::cuda

#pragma once
// A convolution and the activation after it as one kernel: a graph of operations for which cuDNN looks for an engine.

#include <cstddef>
#include <vector>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/cuda/handles.hpp"

namespace ganymede::kernel::cuda {

/// A plan for the forward passes of one shape, batch and kind of epilogue. Results are the same bits every time.
class FusedConvolution {
 public:
  /// `call` is one of them. Engines may use a workspace of `workspace_bytes`. Whatever cuDNN answers, nothing is
  /// thrown: without a plan, run() computes nothing.
  FusedConvolution(cudnnHandle_t handle, const ConvolutionCall& call, Precision precision, std::size_t workspace_bytes);

  /// The calls that share a plan have equal keys.
  static std::vector<int> key_of(const ConvolutionCall& call);

  /// Computes y by the best engine that runs, in the order of cuDNN's heuristics, whose word is no promise. Returns
  /// false if there is none; then nothing has been computed. Throws Failure if an engine breaks off.
  bool run(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace);

 private:
  /// Describes the operations as a graph, which it returns.
  cudnnBackendDescriptor_t describe(cudnnHandle_t handle, const ConvolutionCall& call, Precision precision);
  /// Describes what follows the convolution, from its result to y.
  void describe_epilogue(const ConvolutionCall& call, cudnnBackendDescriptor_t result, cudnnBackendDescriptor_t y,
                         std::vector<cudnnBackendDescriptor_t>& operations);
  /// Asks cuDNN's heuristics for engines.
  void list(cudnnBackendDescriptor_t graph, Precision precision);
  /// Makes the plan of the next engine that can have one.
  void take_next(cudnnHandle_t handle);
  cudnnStatus_t call(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) const;
  /// Keeps a descriptor, because those that are made later refer to it.
  cudnnBackendDescriptor_t keep(BackendDescriptor descriptor);

  std::size_t workspace_limit_;
  // Members are destroyed from the last to the first, so that nothing outlives what it refers to.
  std::vector<BackendDescriptor> described_;
  std::vector<BackendDescriptor> engines_;  ///< configurations of engines, the best first
  std::size_t next_ = 0;                    ///< of them, the first that was not tried yet
  BackendDescriptor plan_;                  ///< null: there is none
};

}  // namespace ganymede::kernel::cuda

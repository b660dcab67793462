#pragma once
// A convolution and the activation after it as one kernel: a graph of operations for which cuDNN looks for an engine.

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/cuda/handles.hpp"

namespace ganymede::kernel::cuda {

/// A plan for the forward passes of one shape, batch and kind of epilogue. Results are the same bits every time. Where
/// cuDNN refuses something at planning, nothing is thrown: there is no plan then, and run() computes nothing.
class FusedConvolution {
 public:
  /// Makes no plan yet. `call` is one of the passes. Engines may use a workspace of `workspace_bytes`; those without
  /// tensor cores are listed only if `any_engine`.
  FusedConvolution(const ConvolutionCall& call, Precision precision, bool any_engine, std::size_t workspace_bytes)
      : example_(call), precision_(precision), any_engine_(any_engine), workspace_limit_(workspace_bytes) {}

  /// The calls that share a plan have equal keys.
  static std::vector<int> key_of(const ConvolutionCall& call);

  /// Makes the plan of engine `first` of cuDNN's list, or of the next one that can have a plan. Returns false, without
  /// a plan, if there is none. Compiles kernels, which takes seconds.
  bool take(cudnnHandle_t handle, std::size_t first);
  /// The engine whose plan take() or run() has made.
  std::size_t taken() const { return next_ - 1; }
  /// The plan as a text of one line; empty: cuDNN gives none.
  std::string text() const;
  /// Makes the plan of a text(). Returns false if cuDNN does not take it, or it is empty.
  bool restore(cudnnHandle_t handle, const std::string& text);

  /// Computes y. If the plan does not run, which cuDNN may say only now, that of a later engine does. Returns false if
  /// there is none; then nothing has been computed. Throws Failure if an engine breaks off.
  bool run(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace);

 private:
  /// Describes the operations as a graph, which it returns.
  cudnnBackendDescriptor_t describe(cudnnHandle_t handle);
  /// Describes what follows the convolution, from its result to y.
  void describe_epilogue(cudnnBackendDescriptor_t result, cudnnBackendDescriptor_t y,
                         std::vector<cudnnBackendDescriptor_t>& operations);
  /// Asks cuDNN's heuristics for engines, unless they are listed already.
  void list(cudnnHandle_t handle);
  void list(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode);
  /// A plan with the attributes that `describe` sets; null: there is none, or it wants more workspace than there is.
  template <class Describe>
  BackendDescriptor planned(cudnnHandle_t handle, const Describe& describe) const;
  cudnnStatus_t call(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) const;
  /// Keeps a descriptor, because those that are made later refer to it.
  cudnnBackendDescriptor_t keep(BackendDescriptor descriptor);

  ConvolutionCall example_;  ///< its addresses are not used
  Precision precision_;
  bool any_engine_, is_listed_ = false;
  std::size_t workspace_limit_;
  // Members are destroyed from the last to the first, so that nothing outlives what it refers to.
  std::vector<BackendDescriptor> described_;
  std::vector<BackendDescriptor> engines_;  ///< configurations of engines, the best first
  std::size_t next_ = 0;                    ///< of them, the first that was not tried yet
  BackendDescriptor plan_;                  ///< null: there is none
};

}  // namespace ganymede::kernel::cuda

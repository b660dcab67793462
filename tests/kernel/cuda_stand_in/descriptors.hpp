#pragma once
// The descriptors of the stand-in's cuDNN, of which graphs of operations consist.

#include <cudnn.h>

#include <map>
#include <vector>

#include "kernel/ops/op_parameters.hpp"
#include "machine.hpp"

namespace ganymede::kernel::stand_in {

inline constexpr const char* kDescriptor = "backend descriptor";

struct DescriptorState {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<int, std::vector<std::int64_t>> values = {};  ///< by attribute; a float is its bits
  const void* from = nullptr;                            ///< of an engine: the descriptor that gave it
  std::size_t number = 0;                                ///< of an engine: its place among the engines of its graph

  std::int64_t one(int name, std::int64_t otherwise = 0) const {
    const auto found = values.find(name);
    return found != values.end() ? found->second.front() : otherwise;
  }
};

inline constexpr auto kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
inline constexpr auto kShape = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
inline constexpr auto kConvolve = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
inline constexpr auto kPointwise = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
inline constexpr auto kApply = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
inline constexpr auto kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
inline constexpr auto kHeuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
inline constexpr auto kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
inline constexpr auto kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
inline constexpr auto kDevice = CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;

inline DescriptorState* use(Machine& here, std::int64_t handle) {
  return here.use<DescriptorState>(reinterpret_cast<const void*>(handle), kDescriptor);
}

/// An engine as this cuDNN has it, which is on tensor cores.
struct Engine {
  bool repeats, has_plan, runs;
  std::size_t workspace_bytes;
};
std::vector<Engine> engines(const Machine& here);

/// Notes a violation.
cudnnStatus_t refuse(Machine& here, const char* what);
/// True if a descriptor and all to which it refers are there.
bool lives(Machine& here, const DescriptorState& state);

/// The convolution of an operation.
ConvolutionShape shape_of(Machine& here, const DescriptorState& operation);
/// Elements of a tensor.
std::size_t size_of(const DescriptorState& tensor);
bool is_bf16(const DescriptorState& tensor);

/// A call on a descriptor.
template <class Body>
cudnnStatus_t graph_call(const char* name, const void* handle, const Body& body, bool ends = false) {
  return call(
      name, CUDNN_STATUS_EXECUTION_FAILED,
      [&](Machine& here, auto&) {
        auto* state = here.use<DescriptorState>(handle, kDescriptor);
        return state != nullptr ? body(here, *state) : CUDNN_STATUS_BAD_PARAM;
      },
      ends);
}

}  // namespace ganymede::kernel::stand_in

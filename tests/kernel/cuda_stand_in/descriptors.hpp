#pragma once
// The descriptors of the stand-in's cuDNN, of which graphs of operations consist.

#include <cudnn.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/ops/op_parameters.hpp"
#include "machine.hpp"

namespace ganymede::kernel::stand_in {

inline constexpr const char* kDescriptor = "backend descriptor";

/// The operation that a plan runs. It does not need the descriptors that the plan was made from.
struct Recipe {
  struct Step {
    std::int64_t mode;
    float slope;
    std::int64_t operand;  ///< number of its tensor; 0: none
    bool by_value;         ///< the operand is one number of the host
  };
  std::size_t engine = 0;
  ConvolutionShape shape = {};
  int batch = 1;
  bool halves = false;                    ///< x, weight and y are bf16
  std::int64_t x = 0, weight = 0, y = 0;  ///< numbers of tensors
  std::vector<Step> steps = {};
};

struct DescriptorState {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<int, std::vector<std::int64_t>> values = {};  ///< by attribute; a float is its bits
  const void* from = nullptr;                            ///< of an engine: the descriptor that gave it
  std::size_t number = 0;                                ///< of an engine: its place among engines()
  std::shared_ptr<const Recipe> recipe = {};             ///< of a plan

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

/// An engine as this cuDNN has it. Those without tensor cores are in the fallback list alone, and slow.
struct Engine {
  bool on_tensor_cores, repeats, has_plan, runs;
  std::size_t workspace_bytes;
};
std::vector<Engine> engines(const Machine& here);

/// Notes a violation.
cudnnStatus_t refuse(Machine& here, const char* what);
/// True if a descriptor and all to which it refers are there.
bool lives(Machine& here, const DescriptorState& state);

/// The recipe of the graph that an engine's configuration is for.
std::shared_ptr<const Recipe> recipe_of(Machine& here, const DescriptorState& configuration);
/// A recipe as a text, and back; null: the text is none.
std::string text_of(const Recipe& recipe);
std::shared_ptr<const Recipe> recipe_from(const std::string& text);

/// The convolution of an operation.
ConvolutionShape shape_of(Machine& here, const DescriptorState& operation);
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

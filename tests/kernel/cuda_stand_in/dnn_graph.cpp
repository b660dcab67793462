// Graphs of operations on the stand-in: a convolution and what follows it element by element.

#include <algorithm>
#include <bit>
#include <thread>

#include "convolutions.hpp"
#include "descriptors.hpp"
#include "libraries.hpp"

namespace ganymede::kernel::stand_in {
namespace {

/// An operation on each element of a convolution's result.
struct Step {
  cudnnPointwiseMode_t mode;
  float slope;
  const float* operand;  ///< null: `number` is the operand
  float number;
};

/// A graph of operations with the addresses of its tensors.
struct Work {
  ConvolutionShape shape = {};
  int batch = 1;
  bool halves = false;  ///< x, weight and y are bf16
  void *x = nullptr, *weight = nullptr, *y = nullptr;
  std::vector<Step> steps = {};

  void run() const {
    const auto many = static_cast<std::size_t>(batch), channels = static_cast<std::size_t>(shape.out_channels);
    InSingles from(x, static_cast<std::size_t>(shape.in_features()) * many, halves);
    InSingles by(weight, shape.weights(), halves);
    std::vector<float> result(static_cast<std::size_t>(shape.out_features()) * many);
    convolve_on_host({cuda::Pass::forward, shape, batch, from.data(), result.data(), by.data(), false});
    for (std::size_t i = 0; i < result.size(); ++i) {
      float value = result[i];
      for (const Step& step : steps) {
        const float operand = step.operand != nullptr ? step.operand[i % channels] : step.number;
        value = step.mode == CUDNN_POINTWISE_MUL   ? value * operand
                : step.mode == CUDNN_POINTWISE_ADD ? value + operand
                                                   : (value > 0 ? value : step.slope * value);
      }
      if (halves)
        static_cast<std::uint16_t*>(y)[i] = to_bf16(value);
      else
        static_cast<float*>(y)[i] = value;
    }
  }
};

/// Finds the addresses of tensors in a variant pack and checks them.
class Addresses {
 public:
  Addresses(Machine& here, const DescriptorState& pack, int device) : here_(here), pack_(pack), device_(device) {}

  void* of(std::int64_t tensor_handle) const {
    const DescriptorState& tensor = *use(here_, tensor_handle);
    const auto &uids = pack_.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
               &addresses = pack_.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const auto found = std::find(uids.begin(), uids.end(), tensor.one(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    if (found == uids.end() || uids.size() != addresses.size() || tensor.one(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0) {
      refuse(here_, "a tensor has no address, or one that is never in memory has one");
      return nullptr;
    }
    const std::int64_t address = addresses[static_cast<std::size_t>(found - uids.begin())];
    auto* memory = reinterpret_cast<void*>(address);
    if (tensor.one(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0) return memory;
    if (address % tensor.one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 0) refuse(here_, "an address is not aligned");
    here_.check_range(memory, size_of(tensor) * (is_bf16(tensor) ? 2 : 4), device_, "a graph's operand");
    return memory;
  }

 private:
  Machine& here_;
  const DescriptorState& pack_;
  int device_;
};

/// The work of a graph whose first operation is a convolution and whose others follow each other.
Work work_of(Machine& here, const DescriptorState& graph, const Addresses& addresses) {
  const auto& operations = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const DescriptorState& convolution = *use(here, operations.front());
  if (convolution.type != kConvolve) refuse(here, "the first operation is no convolution");
  const auto x = convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
             weight = convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  const DescriptorState& of_x = *use(here, x);
  Work work{shape_of(here, convolution), static_cast<int>(of_x.values.at(CUDNN_ATTR_TENSOR_DIMENSIONS).front()),
            is_bf16(of_x), addresses.of(x), addresses.of(weight)};
  std::int64_t result = convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  for (std::size_t i = 1; i < operations.size(); ++i) {
    const DescriptorState& apply = *use(here, operations[i]);
    const DescriptorState& pointwise = *use(here, apply.one(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
    if (apply.one(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != result ||
        use(here, result)->one(CUDNN_ATTR_TENSOR_IS_VIRTUAL) == 0)
      refuse(here, "an operation does not follow the one before it, or its operand is in memory");
    Step step{
        static_cast<cudnnPointwiseMode_t>(pointwise.one(CUDNN_ATTR_POINTWISE_MODE)),
        std::bit_cast<float>(static_cast<std::int32_t>(pointwise.one(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE))),
        nullptr, 0};
    if (const std::int64_t operand = apply.one(CUDNN_ATTR_OPERATION_POINTWISE_BDESC); operand != 0) {
      const auto* memory = static_cast<const float*>(addresses.of(operand));
      const bool by_value = use(here, operand)->one(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
      if (by_value)
        step.number = *memory;
      else
        step.operand = memory;
    }
    work.steps.push_back(step);
    result = apply.one(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }
  work.y = addresses.of(result);
  return work;
}

cudnnStatus_t execute(Machine& here, cudnnHandle_t handle, const DescriptorState& plan, const void* pack_handle) {
  const auto* library = here.use<LibraryState>(handle, "cudnn");
  const auto* pack = here.use<DescriptorState>(pack_handle, kDescriptor);
  if (library == nullptr || pack == nullptr || !plan.is_final || !pack->is_final || !lives(here, plan))
    return refuse(here, "a plan runs that is not complete");
  const Engine engine = engines(here)[plan.number];
  if (!engine.repeats) refuse(here, "an engine runs that does not repeat its bits");
  if (!engine.runs) return CUDNN_STATUS_NOT_SUPPORTED;
  const DescriptorState& chosen = *use(here, plan.one(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
  const DescriptorState& heuristics = *here.use<DescriptorState>(chosen.from, kDescriptor);
  const DescriptorState& graph = *use(here, heuristics.one(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  const Work work = work_of(here, graph, Addresses(here, *pack, library->device));
  auto* workspace = reinterpret_cast<std::uint8_t*>(pack->one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  if (engine.workspace_bytes > 0 &&
      !here.check_range(workspace, engine.workspace_bytes, library->device, "a graph's workspace"))
    return CUDNN_STATUS_BAD_PARAM;
  const auto run = [&here, work, workspace, bytes = engine.workspace_bytes] {
    ++here.tensor_core_convolutions;
    ++here.fused_convolutions;
    if (here.settings.slow_tensor_cores) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::fill_n(workspace, bytes, 0xFF);
    work.run();
  };
  std::vector<const void*> operands{work.x, work.weight, work.y, workspace};
  for (const Step& step : work.steps) operands.push_back(step.operand);
  compute(here, *library, "cudnnBackendExecute", run, operands);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return graph_call("cudnnBackendExecute", plan,
                    [&](Machine& here, const DescriptorState& state) { return execute(here, handle, state, pack); });
}

// Graphs of operations on the stand-in: a convolution and what follows it element by element.

#include <algorithm>
#include <bit>
#include <sstream>
#include <string_view>
#include <thread>

#include "convolutions.hpp"
#include "descriptors.hpp"
#include "libraries.hpp"

namespace ganymede::kernel::stand_in {
namespace {

constexpr std::int64_t kTensorAlignment = 16;

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

  /// The address of the tensor of this number and these bytes; 0 bytes: one number of the host.
  void* of(std::int64_t number, std::size_t bytes) const {
    const auto &numbers = pack_.values.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
               &addresses = pack_.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    if (found == numbers.end() || numbers.size() != addresses.size()) {
      refuse(here_, "a tensor has no address");
      return nullptr;
    }
    const std::int64_t address = addresses[static_cast<std::size_t>(found - numbers.begin())];
    auto* memory = reinterpret_cast<void*>(address);
    if (bytes == 0) return memory;
    if (address % kTensorAlignment != 0) refuse(here_, "an address is not aligned");
    here_.check_range(memory, bytes, device_, "a graph's operand");
    return memory;
  }

 private:
  Machine& here_;
  const DescriptorState& pack_;
  int device_;
};

Work work_of(const Recipe& recipe, const Addresses& addresses) {
  const std::size_t element = recipe.halves ? 2 : 4, batch = static_cast<std::size_t>(recipe.batch);
  const auto bytes = [&](int features) { return static_cast<std::size_t>(features) * batch * element; };
  Work work{recipe.shape,
            recipe.batch,
            recipe.halves,
            addresses.of(recipe.x, bytes(recipe.shape.in_features())),
            addresses.of(recipe.weight, recipe.shape.weights() * element),
            addresses.of(recipe.y, bytes(recipe.shape.out_features()))};
  for (const Recipe::Step& from : recipe.steps) {
    Step step{static_cast<cudnnPointwiseMode_t>(from.mode), from.slope, nullptr, 0};
    if (from.by_value)
      step.number = *static_cast<const float*>(addresses.of(from.operand, 0));
    else if (from.operand != 0)
      step.operand = static_cast<const float*>(
          addresses.of(from.operand, static_cast<std::size_t>(recipe.shape.out_channels) * sizeof(float)));
    work.steps.push_back(step);
  }
  return work;
}

std::int64_t number_of(const DescriptorState& tensor) { return tensor.one(CUDNN_ATTR_TENSOR_UNIQUE_ID); }

cudnnStatus_t execute(Machine& here, cudnnHandle_t handle, const DescriptorState& plan, const void* pack_handle) {
  const auto* library = here.use<LibraryState>(handle, "cudnn");
  const auto* pack = here.use<DescriptorState>(pack_handle, kDescriptor);
  if (library == nullptr || pack == nullptr || !plan.is_final || !pack->is_final || !lives(here, plan))
    return refuse(here, "a plan runs that is not complete");
  const Engine engine = engines(here)[plan.number];
  if (!engine.repeats) refuse(here, "an engine runs that does not repeat its bits");
  if (!engine.runs) return CUDNN_STATUS_NOT_SUPPORTED;
  const Work work = work_of(*plan.recipe, Addresses(here, *pack, library->device));
  auto* workspace = reinterpret_cast<std::uint8_t*>(pack->one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  if (engine.workspace_bytes > 0 &&
      !here.check_range(workspace, engine.workspace_bytes, library->device, "a graph's workspace"))
    return CUDNN_STATUS_BAD_PARAM;
  const auto run = [&here, work, workspace, engine] {
    if (engine.on_tensor_cores) ++here.tensor_core_convolutions;
    ++here.fused_convolutions;
    if (!engine.on_tensor_cores) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (engine.on_tensor_cores && here.settings.slow_tensor_cores)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::fill_n(workspace, engine.workspace_bytes, 0xFF);
    work.run();
  };
  std::vector<const void*> operands{work.x, work.weight, work.y, workspace};
  for (const Step& step : work.steps) operands.push_back(step.operand);
  compute(here, *library, "cudnnBackendExecute", run, operands);
  return CUDNN_STATUS_SUCCESS;
}

constexpr std::string_view kTitle = "stand-in plan";

}  // namespace

std::shared_ptr<const Recipe> recipe_of(Machine& here, const DescriptorState& configuration) {
  const DescriptorState& heuristics = *here.use<DescriptorState>(configuration.from, kDescriptor);
  const DescriptorState& graph = *use(here, heuristics.one(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  const auto& operations = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const DescriptorState& convolution = *use(here, operations.front());
  if (convolution.type != kConvolve) refuse(here, "the first operation is no convolution");
  const DescriptorState& x = *use(here, convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
  Recipe recipe{configuration.number,
                shape_of(here, convolution),
                static_cast<int>(x.values.at(CUDNN_ATTR_TENSOR_DIMENSIONS).front()),
                is_bf16(x),
                number_of(x),
                number_of(*use(here, convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)))};
  std::int64_t result = convolution.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  for (std::size_t i = 1; i < operations.size(); ++i) {
    const DescriptorState& apply = *use(here, operations[i]);
    const DescriptorState& pointwise = *use(here, apply.one(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
    if (apply.one(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != result ||
        use(here, result)->one(CUDNN_ATTR_TENSOR_IS_VIRTUAL) == 0)
      refuse(here, "an operation does not follow the one before it, or its operand is in memory");
    const auto slope = pointwise.one(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
    Recipe::Step step{pointwise.one(CUDNN_ATTR_POINTWISE_MODE), std::bit_cast<float>(static_cast<std::int32_t>(slope)),
                      0, false};
    if (const std::int64_t operand = apply.one(CUDNN_ATTR_OPERATION_POINTWISE_BDESC); operand != 0) {
      step.operand = number_of(*use(here, operand));
      step.by_value = use(here, operand)->one(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
    }
    recipe.steps.push_back(step);
    result = apply.one(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }
  const DescriptorState& y = *use(here, result);
  if (y.one(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0 || y.one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != kTensorAlignment)
    refuse(here, "the last result is never in memory, or is aligned otherwise");
  recipe.y = number_of(y);
  return std::make_shared<const Recipe>(std::move(recipe));
}

std::string text_of(const Recipe& recipe) {
  const ConvolutionShape& s = recipe.shape;
  std::vector<std::int64_t> all{static_cast<std::int64_t>(recipe.engine),
                                s.in_channels,
                                s.in_frames,
                                s.in_height,
                                s.in_width,
                                s.out_channels,
                                s.kernel,
                                s.kernel_frames,
                                s.stride,
                                s.padding,
                                s.padding_frames,
                                recipe.batch,
                                recipe.halves ? 1 : 0,
                                recipe.x,
                                recipe.weight,
                                recipe.y};
  for (const Recipe::Step& step : recipe.steps)
    all.insert(all.end(), {step.mode, std::bit_cast<std::int32_t>(step.slope), step.operand, step.by_value ? 1 : 0});
  std::ostringstream text;
  text << kTitle;
  for (const std::int64_t number : all) text << ' ' << number;
  return text.str();
}

std::shared_ptr<const Recipe> recipe_from(const std::string& text) {
  if (!text.starts_with(kTitle)) return nullptr;
  std::istringstream from(text.substr(kTitle.size()));
  Recipe recipe;
  ConvolutionShape& s = recipe.shape;
  from >> recipe.engine >> s.in_channels >> s.in_frames >> s.in_height >> s.in_width >> s.out_channels >> s.kernel >>
      s.kernel_frames >> s.stride >> s.padding >> s.padding_frames >> recipe.batch >> recipe.halves >> recipe.x >>
      recipe.weight >> recipe.y;
  if (!from) return nullptr;
  Recipe::Step step{};
  for (std::int32_t slope = 0; from >> step.mode >> slope >> step.operand >> step.by_value;) {
    step.slope = std::bit_cast<float>(slope);
    recipe.steps.push_back(step);
  }
  return std::make_shared<const Recipe>(std::move(recipe));
}

}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return graph_call("cudnnBackendExecute", plan,
                    [&](Machine& here, const DescriptorState& state) { return execute(here, handle, state, pack); });
}

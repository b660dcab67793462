#include "kernel/ops/cuda/fused_convolution.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::kernel::cuda {
namespace {

/// The numbers by which the variant pack names the tensors of a graph. Those of results within it come after them.
enum Uid : std::int64_t { kX = 1, kWeight, kY, kBias, kFactor, kWithin };

constexpr std::int64_t kTensorAlignment = 16;
/// No more engines of cuDNN's list are tried, because each may take seconds to compile.
constexpr std::size_t kMostEngines = 4;

// The type by which cuDNN knows a value.
template <class Value>
constexpr cudnnBackendAttributeType_t kTypeOf = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<std::int64_t> = CUDNN_TYPE_INT64;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<float> = CUDNN_TYPE_FLOAT;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<bool> = CUDNN_TYPE_BOOLEAN;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
constexpr cudnnBackendAttributeType_t kTypeOf<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;

BackendDescriptor make(cudnnBackendDescriptorType_t type) {
  return made_by<BackendDescriptor>("cudnnBackendCreateDescriptor", [type](cudnnBackendDescriptor_t* descriptor) {
    return cudnnBackendCreateDescriptor(type, descriptor);
  });
}

template <class Value>
void set(const BackendDescriptor& descriptor, cudnnBackendAttributeName_t name, const std::vector<Value>& values,
         cudnnBackendAttributeType_t type = kTypeOf<Value>) {
  GANYMEDE_CUDA(
      cudnnBackendSetAttribute(descriptor.get(), name, type, static_cast<std::int64_t>(values.size()), values.data()));
}
template <class Value>
void set(const BackendDescriptor& descriptor, cudnnBackendAttributeName_t name, Value value) {
  GANYMEDE_CUDA(cudnnBackendSetAttribute(descriptor.get(), name, kTypeOf<Value>, 1, &value));
}

BackendDescriptor finished(BackendDescriptor descriptor) {
  GANYMEDE_CUDA(cudnnBackendFinalize(descriptor.get()));
  return descriptor;
}

using Extents = std::vector<std::int64_t>;

/// [first, second, (frames,) height, width]
Extents dimensions_of(bool clips, int first, int second, int frames, int height, int width) {
  Extents all{first, second, height, width};
  if (clips) all.insert(all.begin() + 2, frames);
  return all;
}

/// Strides of a tensor whose second extent is innermost.
Extents strides_of(const Extents& extents) {
  Extents strides(extents.size());
  std::int64_t step = extents[1];
  for (std::size_t i = extents.size(); i-- > 2; step *= extents[i]) strides[i] = step;
  strides[0] = step;
  strides[1] = 1;
  return strides;
}

BackendDescriptor tensor(std::int64_t uid, cudnnDataType_t type, const Extents& extents) {
  BackendDescriptor tensor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  set(tensor, CUDNN_ATTR_TENSOR_STRIDES, strides_of(extents));
  set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
  set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  if (uid == kFactor) set(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);  // its address is the host's
  if (uid >= kWithin) set(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);   // it is never in memory
  return finished(std::move(tensor));
}

Extents extents_of_y(const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  return dimensions_of(s.in_frames > 1 || s.kernel_frames > 1, call.batch, s.out_channels, s.out_frames(),
                       s.out_height(), s.out_width());
}

BackendDescriptor convolution(const ConvolutionShape& s, std::size_t dimensions) {
  const bool clips = dimensions == 3;
  const Extents padding = clips ? Extents{s.padding_frames, s.padding, s.padding} : Extents{s.padding, s.padding};
  const Extents stride = clips ? Extents{1, s.stride, s.stride} : Extents{s.stride, s.stride};
  BackendDescriptor convolution = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(dimensions));
  set(convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  set(convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  set(convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  set(convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  set(convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride);
  set(convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, Extents(dimensions, 1));
  return finished(std::move(convolution));
}

/// The descriptors that an attribute of `from` refers to: copies, of type `type`, of which there are at most `most`.
std::vector<BackendDescriptor> read(const BackendDescriptor& from, cudnnBackendAttributeName_t name,
                                    cudnnBackendDescriptorType_t type, std::int64_t most) {
  std::vector<BackendDescriptor> copies;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < most; ++i) handles.push_back(copies.emplace_back(make(type)).get());
  std::int64_t count = 0;
  GANYMEDE_CUDA(
      cudnnBackendGetAttribute(from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, handles.data()));
  copies.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, most)));
  return copies;
}

/// True if the engine repeats its bits and is for this precision. Without `any` it must be on tensor cores.
bool is_allowed(const BackendDescriptor& engine, Precision precision, bool any) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  std::int64_t count = 0;
  GANYMEDE_CUDA(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes, notes + count, note) != notes + count;
  };
  // On fp32 operands tensor cores round to TF32.
  const bool rounds = has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  return !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && (precision == Precision::fp32 ? any && !rounds : any || rounds);
}

}  // namespace

std::vector<int> FusedConvolution::key_of(const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  return {call.batch,
          s.in_channels,
          s.in_height,
          s.in_width,
          s.out_channels,
          s.kernel,
          s.stride,
          s.padding,
          s.in_frames,
          s.kernel_frames,
          s.padding_frames,
          call.after->bias != nullptr ? 1 : 0,
          call.after->factor != 1 ? 1 : 0,
          static_cast<int>(bits_of(call.after->slope))};
}

cudnnBackendDescriptor_t FusedConvolution::keep(BackendDescriptor descriptor) {
  return described_.emplace_back(std::move(descriptor)).get();
}

cudnnBackendDescriptor_t FusedConvolution::describe(cudnnHandle_t handle) {
  const ConvolutionCall& call = example_;
  const ConvolutionShape& s = call.shape;
  const cudnnDataType_t type = precision_ == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const Extents y = extents_of_y(call);
  const bool clips = y.size() == 5;
  // Within the graph numbers are fp32, so that only y is rounded.
  const auto result = keep(tensor(kWithin, CUDNN_DATA_FLOAT, y));
  BackendDescriptor operation = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, keep(convolution(s, y.size() - 2)));
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      keep(tensor(kX, type, dimensions_of(clips, call.batch, s.in_channels, s.in_frames, s.in_height, s.in_width))));
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      keep(tensor(kWeight, type,
                  dimensions_of(clips, s.out_channels, s.in_channels, s.kernel_frames, s.kernel, s.kernel))));
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, result);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0F);
  set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0F);
  std::vector<cudnnBackendDescriptor_t> operations{keep(finished(std::move(operation)))};
  describe_epilogue(result, keep(tensor(kY, type, y)), operations);
  BackendDescriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  return keep(finished(std::move(graph)));
}

void FusedConvolution::describe_epilogue(cudnnBackendDescriptor_t result, cudnnBackendDescriptor_t y,
                                         std::vector<cudnnBackendDescriptor_t>& operations) {
  const ConvolutionCall& call = example_;
  const Extents of_y = extents_of_y(call);
  struct Step {
    cudnnPointwiseMode_t mode;
    Uid operand;  ///< kY: none
  };
  std::vector<Step> steps;
  // Engines have no scale of a convolution, nor one of a sum's operand.
  if (call.after->factor != 1) steps.push_back({CUDNN_POINTWISE_MUL, kFactor});
  if (call.after->bias != nullptr) steps.push_back({CUDNN_POINTWISE_ADD, kBias});
  if (call.after->slope != 1 || steps.empty()) steps.push_back({CUDNN_POINTWISE_RELU_FWD, kY});
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    BackendDescriptor pointwise = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, step.mode);
    set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    if (step.operand == kY) set(pointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, call.after->slope);
    BackendDescriptor operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(finished(std::move(pointwise))));
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, result);
    if (step.operand != kY) {
      Extents operand(of_y.size(), 1);
      if (step.operand == kBias) operand[1] = call.shape.out_channels;
      set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, keep(tensor(step.operand, CUDNN_DATA_FLOAT, operand)));
    }
    result =
        i + 1 == steps.size() ? y : keep(tensor(kWithin + 1 + static_cast<std::int64_t>(i), CUDNN_DATA_FLOAT, of_y));
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result);
    operations.push_back(keep(finished(std::move(operation))));
  }
}

void FusedConvolution::list(cudnnHandle_t handle) {
  if (std::exchange(is_listed_, true)) return;
  try {
    const cudnnBackendDescriptor_t graph = describe(handle);
    list(graph, CUDNN_HEUR_MODE_A);
    // The list for graphs that other engines do not have, the only one with engines without tensor cores.
    if (any_engine_) list(graph, CUDNN_HEUR_MODE_FALLBACK);
  } catch (const Failure& failure) {
    if (engines_.empty())
      std::fprintf(stderr, "ganymede: %s: a convolution and its activation are two kernels\n", failure.what());
  }
}

void FusedConvolution::list(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode) {
  BackendDescriptor heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristics = finished(std::move(heuristics));
  std::int64_t most = 0;
  GANYMEDE_CUDA(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         0, &most, nullptr));
  auto found = read(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most);
  keep(std::move(heuristics));
  for (BackendDescriptor& one : found) {
    if (engines_.size() == kMostEngines) return;
    const auto engine = read(one, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (!engine.empty() && is_allowed(engine.front(), precision_, any_engine_)) engines_.push_back(std::move(one));
  }
}

template <class Describe>
BackendDescriptor FusedConvolution::planned(cudnnHandle_t handle, const Describe& describe) const {
  try {
    BackendDescriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    describe(plan);
    plan = finished(std::move(plan));
    std::int64_t bytes = 0, count = 0;
    GANYMEDE_CUDA(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                           &count, &bytes));
    if (static_cast<std::size_t>(bytes) <= workspace_limit_) return plan;
  } catch (const Failure&) {
    // Another engine may do better; without any, two kernels do the same.
  }
  return nullptr;
}

bool FusedConvolution::take(cudnnHandle_t handle, std::size_t first) {
  if (plan_ != nullptr && next_ == first + 1) return true;
  list(handle);
  plan_.reset();
  for (next_ = first; plan_ == nullptr && next_ < engines_.size(); ++next_)
    plan_ = planned(handle, [engine = engines_[next_].get()](const BackendDescriptor& plan) {
      set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
    });
  return plan_ != nullptr;
}

std::string FusedConvolution::text() const {
  try {
    std::int64_t count = 0;
    const auto read_text = [&](std::int64_t most, char* to) {
      GANYMEDE_CUDA(cudnnBackendGetAttribute(plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, most, &count, to));
    };
    read_text(0, nullptr);
    std::string text(static_cast<std::size_t>(count), '\0');
    read_text(count, text.data());
    return text;
  } catch (const Failure&) {
    return {};
  }
}

bool FusedConvolution::restore(cudnnHandle_t handle, const std::string& text) {
  if (text.empty()) return false;
  next_ = 0;
  plan_ = planned(handle, [&](const BackendDescriptor& plan) {
    GANYMEDE_CUDA(cudnnBackendSetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                           static_cast<std::int64_t>(text.size()), text.data()));
  });
  return plan_ != nullptr;
}

cudnnStatus_t FusedConvolution::call(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) const {
  float factor = call.after->factor;
  Extents uids{kX, kWeight, kY};
  std::vector<void*> addresses{call.x, call.weight, call.y};
  if (call.after->bias != nullptr) {
    uids.push_back(kBias);
    addresses.push_back(const_cast<float*>(call.after->bias));
  }
  if (factor != 1) {
    uids.push_back(kFactor);
    addresses.push_back(&factor);
  }
  BackendDescriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses, CUDNN_TYPE_VOID_PTR);
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::vector<void*>{workspace}, CUDNN_TYPE_VOID_PTR);
  pack = finished(std::move(pack));
  return cudnnBackendExecute(handle, plan_.get(), pack.get());
}

bool FusedConvolution::run(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) {
  for (; plan_ != nullptr; take(handle, next_)) {
    const cudnnStatus_t status = this->call(handle, call, workspace);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) continue;
    GANYMEDE_CUDA(status);
    return true;
  }
  return false;
}

}  // namespace ganymede::kernel::cuda

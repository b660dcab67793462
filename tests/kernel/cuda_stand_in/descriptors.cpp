// The stand-in's descriptors: which attributes they have, in which order they are made, and what they answer. Also the
// description of a device, for which tools/cudnn_device.py asks.

#include "descriptors.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ganymede::kernel::stand_in {
namespace {

/// An attribute that a type of descriptors has.
struct Row {
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t least, most;  ///< values
  bool required = true;
};
constexpr Row kRows[] = {
    {kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 5},
    {kTensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 5},
    {kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {kTensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, false},
    {kTensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, false},
    {kShape, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {kShape, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1},
    {kShape, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1},
    {kShape, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 3},
    {kShape, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 3},
    {kShape, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 3},
    {kShape, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 3},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 1},
    {kConvolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 1},
    {kPointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1},
    {kPointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {kPointwise, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_FLOAT, 1, 1, false},
    {kApply, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kApply, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kApply, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, false},
    {kApply, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
    {kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, 8},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {kHeuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, false},
    {kPlan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1, 1 << 20, false},
    {kPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 8},
    {kPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 8},
    {kPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1},
    {kDevice, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, 1}};

}  // namespace

std::vector<Engine> engines(const Machine& here) {
  if (here.settings.no_fusion) return {};
  std::vector<Engine> all{{true, false, true, true, 0}, {true, true, true, true, std::size_t{1} << 40}};
  if (here.settings.broken_promises) {
    all.push_back({true, true, false, true, 0});
    all.push_back({true, true, true, false, 64});
  }
  all.push_back({true, true, true, true, 1024});
  all.push_back({false, true, true, true, 0});
  return all;
}

cudnnStatus_t refuse(Machine& here, const char* what) {
  here.violate(fmt::format("a graph of operations: {}", what));
  return CUDNN_STATUS_BAD_PARAM;
}

bool lives(Machine& here, const DescriptorState& state) {
  std::vector<const DescriptorState*> others;
  for (const Row& row : kRows)
    if (row.of == state.type && row.type == CUDNN_TYPE_BACKEND_DESCRIPTOR && state.values.contains(row.name))
      for (const std::int64_t handle : state.values.at(row.name)) others.push_back(use(here, handle));
  if (state.from != nullptr) others.push_back(here.use<DescriptorState>(state.from, kDescriptor));
  return std::all_of(others.begin(), others.end(),
                     [&](const DescriptorState* other) { return other != nullptr && lives(here, *other); });
}

bool is_bf16(const DescriptorState& tensor) { return tensor.one(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16; }

ConvolutionShape shape_of(Machine& here, const DescriptorState& operation) {
  const auto& x =
      use(here, operation.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X))->values.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto& weight =
      use(here, operation.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W))->values.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto& by = use(here, operation.one(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC))->values;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const bool clips = x.size() == 5;
  ConvolutionShape s;
  s.in_channels = number(x[1]), s.in_height = number(x[x.size() - 2]), s.in_width = number(x.back());
  s.out_channels = number(weight[0]), s.kernel = number(weight.back());
  s.stride = number(by.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).back());
  s.padding = number(by.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).back());
  if (!clips) return s;
  s.in_frames = number(x[2]), s.kernel_frames = number(weight[2]);
  s.padding_frames = number(by.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).front());
  return s;
}

namespace {

constexpr std::string_view kDeviceDescription = R"({"name": "stand-in"})";

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  if (type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR) return 1;
  const bool wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_VOID_PTR ||
                    type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
  return wide ? sizeof(std::int64_t) : sizeof(std::int32_t);
}

/// Names a call on a variant pack, which is made when a plan runs, apart from calls at planning.
const char* named(const void* handle, const char* at_planning, const char* at_running) {
  const std::lock_guard lock(machine_mutex());
  const auto found = machine().handles.find(handle);
  const bool runs = found != machine().handles.end() && std::string_view(found->second.kind) == kDescriptor &&
                    static_cast<const DescriptorState*>(found->second.state.get())->type == kPack;
  return runs ? at_running : at_planning;
}

cudnnStatus_t set(Machine& here, DescriptorState& to, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, std::int64_t count, const void* from) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& one) { return one.of == to.type && one.name == name; });
  if (row == std::end(kRows)) return refuse(here, "a descriptor has no such attribute");
  if (row->type != type || count < row->least || count > row->most)
    return refuse(here, "an attribute has another type or number of values");
  if (to.is_final) return refuse(here, "an attribute is set after its descriptor was finalized");
  auto& values = to.values[name];
  values.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(from) + static_cast<std::size_t>(i) * bytes_of(type),
                bytes_of(type));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const DescriptorState* other = use(here, value);
      if (other == nullptr || !other->is_final) return refuse(here, "a descriptor is used before it was finalized");
    }
    values.push_back(value);
  }
  return CUDNN_STATUS_SUCCESS;
}

/// True if the second extent is innermost.
bool is_channels_last(const DescriptorState& tensor) {
  const auto &extents = tensor.values.at(CUDNN_ATTR_TENSOR_DIMENSIONS),
             &strides = tensor.values.at(CUDNN_ATTR_TENSOR_STRIDES);
  if (extents.size() != strides.size() || strides[1] != 1) return false;
  std::int64_t step = extents[1];
  for (std::size_t i = extents.size(); i-- > 2; step *= extents[i])
    if (strides[i] != step) return false;
  return strides[0] == step;
}

/// True if the extents of a convolution's tensors fit together.
bool fits(Machine& here, const DescriptorState& operation) {
  const ConvolutionShape s = shape_of(here, operation);
  const auto extents = [&](cudnnBackendAttributeName_t name) {
    return use(here, operation.one(name))->values.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
  };
  const auto x = extents(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  std::vector<std::int64_t> y{x[0], s.out_channels, s.out_height(), s.out_width()};
  if (x.size() == 5) y.insert(y.begin() + 2, s.out_frames());
  return extents(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y) == y &&
         extents(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)[1] == s.in_channels;
}

/// Gives a plan its recipe: by compiling it for an engine, or from a text.
cudnnStatus_t plan(Machine& here, DescriptorState& state) {
  const auto configuration = state.one(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto text = state.values.find(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  if ((configuration != 0) == (text != state.values.end())) return refuse(here, "a plan is of an engine or of a text");
  if (configuration != 0) {
    state.number = use(here, configuration)->number;
    if (!engines(here)[state.number].has_plan) return CUDNN_STATUS_NOT_SUPPORTED;
    state.recipe = recipe_of(here, *use(here, configuration));
    ++here.compiled_plans;
    return CUDNN_STATUS_SUCCESS;
  }
  state.recipe = recipe_from({text->second.begin(), text->second.end()});
  if (state.recipe == nullptr || state.recipe->engine >= engines(here).size()) return CUDNN_STATUS_BAD_PARAM;
  state.number = state.recipe->engine;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(Machine& here, DescriptorState& state) {
  if (state.is_final) return refuse(here, "a descriptor is finalized twice");
  for (const Row& row : kRows)
    if (row.of == state.type && row.required && !state.values.contains(row.name))
      return refuse(here, "a descriptor is finalized without an attribute that it must have");
  if (!lives(here, state)) return CUDNN_STATUS_BAD_PARAM;
  if (state.type == kTensor && !is_channels_last(state)) return refuse(here, "a tensor is not channels-last");
  if (state.type == kConvolve && !fits(here, state)) return refuse(here, "a convolution's tensors do not fit");
  if (state.type == kPlan)
    if (const auto status = plan(here, state); status != CUDNN_STATUS_SUCCESS) return status;
  state.is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

/// Turns the descriptor into an engine, or its configuration, that `from` gives.
cudnnStatus_t become(Machine& here, void* handle, cudnnBackendDescriptorType_t type, const void* from,
                     std::size_t number) {
  auto* state = here.use<DescriptorState>(handle, kDescriptor);
  if (state == nullptr || state->type != type || state->is_final) return refuse(here, "an engine has no descriptor");
  state->from = from, state->number = number, state->is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give(std::string_view text, std::int64_t most, std::int64_t* count, void* to) {
  *count = static_cast<std::int64_t>(text.size());
  if (to != nullptr) std::memcpy(to, text.data(), static_cast<std::size_t>(std::min(most, *count)));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get(Machine& here, const void* handle, DescriptorState& from, cudnnBackendAttributeName_t name,
                  std::int64_t most, std::int64_t* count, void* to) {
  if (!from.is_final) return refuse(here, "an attribute is read before its descriptor was finalized");
  const auto all = engines(here);
  auto** const descriptors = static_cast<void**>(to);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].on_tensor_cores == (from.one(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK)) continue;
        if (*count < most)
          if (const auto status = become(here, descriptors[*count], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, handle, i);
              status != CUDNN_STATUS_SUCCESS)
            return status;
        ++*count;
      }
      // As the real one, it announces engines that turn out not to be there.
      if (most == 0) ++*count;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      return become(here, descriptors[0], CUDNN_BACKEND_ENGINE_DESCRIPTOR, handle, from.number);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      auto* notes = static_cast<cudnnBackendNumericalNote_t*>(to);
      *count = 0;
      if (all[from.number].on_tensor_cores) notes[(*count)++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      if (!all[from.number].repeats) notes[(*count)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *count = 1;
      *static_cast<std::int64_t*>(to) = static_cast<std::int64_t>(all[from.number].workspace_bytes);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
      return give(text_of(*from.recipe), most, count, to);
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
      return give(kDeviceDescription, most, count, to);
    default:
      return refuse(here, "an attribute is read that the stand-in does not have");
  }
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* to) {
  const char* name = type == kPack ? "cudnnBackendCreateDescriptor of a variant pack" : "cudnnBackendCreateDescriptor";
  return call(name, CUDNN_STATUS_EXECUTION_FAILED, [&](Machine& here, auto&) {
    *to = here.make(kDescriptor, DescriptorState{type});
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  return graph_call(named(descriptor, "cudnnBackendSetAttribute", "cudnnBackendSetAttribute of a variant pack"),
                    descriptor,
                    [&](Machine& here, DescriptorState& state) { return set(here, state, name, type, count, values); });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return graph_call(named(descriptor, "cudnnBackendFinalize", "cudnnBackendFinalize of a variant pack"), descriptor,
                    [](Machine& here, DescriptorState& state) { return finalize(here, state); });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t most, std::int64_t* count, void* to) {
  return graph_call("cudnnBackendGetAttribute", descriptor, [&](Machine& here, DescriptorState& state) {
    return get(here, descriptor, state, name, most, count, to);
  });
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return graph_call(
      "cudnnBackendDestroyDescriptor", descriptor,
      [&](Machine& here, DescriptorState&) {
        here.destroy<DescriptorState>(descriptor, kDescriptor);
        return CUDNN_STATUS_SUCCESS;
      },
      true);
}

// The stand-in's cuDNN: convolutions of channels-last tensors by its older interface.

#include <cudnn.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "convolutions.hpp"
#include "libraries.hpp"

namespace ganymede::kernel::stand_in {
namespace {

using cuda::Pass;

struct TensorState {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> extents = {};  ///< [first, second, (depth,) height, width]

  std::size_t size() const {
    return std::accumulate(extents.begin(), extents.end(), std::size_t{1},
                           [](std::size_t product, int extent) { return product * cuda::size_of(extent); });
  }
  std::size_t bytes() const { return size() * (type == CUDNN_DATA_FLOAT ? 4 : 2); }
  int depth() const { return extents.size() == 5 ? extents[2] : 1; }
  int height() const { return extents[extents.size() - 2]; }
  int width() const { return extents.back(); }
};

struct ConvolutionState {
  std::vector<int> padding = {}, stride = {};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

template <class Body>
cudnnStatus_t dnn_call(const char* name, const Body& body, bool ends = false) {
  return call(name, CUDNN_STATUS_EXECUTION_FAILED, body, ends);
}

template <class State, class Handle>
cudnnStatus_t create(const char* name, Handle* to) {
  return dnn_call(name, [&](Machine& here, auto&) {
    *to = reinterpret_cast<Handle>(here.make(name, State{}));
    return CUDNN_STATUS_SUCCESS;
  });
}
template <class State>
cudnnStatus_t destroy(const char* name, const char* made_by, const void* handle) {
  return dnn_call(
      name,
      [&](Machine& here, auto&) {
        return here.destroy<State>(handle, made_by) != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
      },
      true);
}

constexpr const char *kTensor = "tensor descriptor", *kFilter = "filter descriptor",
                     *kConvolution = "convolution descriptor";

cudnnStatus_t describe(const char* name, const char* kind, const void* handle, cudnnTensorFormat_t format,
                       cudnnDataType_t type, int rank, const int* extents) {
  return dnn_call(name, [&](Machine& here, auto&) {
    auto* tensor = here.use<TensorState>(handle, kind);
    if (tensor == nullptr || format != CUDNN_TENSOR_NHWC || rank < 4 || rank > 5) return CUDNN_STATUS_BAD_PARAM;
    *tensor = {type, {extents, extents + rank}};
    // The documentation limits a tensor to 2^31 elements.
    if (tensor->size() >> 31 != 0) here.violate("a tensor has 2^31 elements or more");
    return tensor->size() >> 31 == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
  });
}

/// A convolution as its three descriptors and its own say.
struct Problem {
  const TensorState *x, *y, *weight;
  ConvolutionState* convolution;

  Problem(Machine& here, const void* x_handle, const void* y_handle, const void* weight_handle, const void* handle)
      : x(here.use<TensorState>(x_handle, kTensor)),
        y(here.use<TensorState>(y_handle, kTensor)),
        weight(here.use<TensorState>(weight_handle, kFilter)),
        convolution(here.use<ConvolutionState>(handle, kConvolution)) {}

  bool is_there() const { return x != nullptr && y != nullptr && weight != nullptr && convolution != nullptr; }
  bool is_bf16() const { return x->type == CUDNN_DATA_BFLOAT16; }
  ConvolutionShape shape() const {
    const bool clips = x->extents.size() == 5;
    ConvolutionShape s;
    s.in_channels = x->extents[1], s.in_height = x->height(), s.in_width = x->width();
    s.out_channels = weight->extents[0];
    s.kernel = weight->height(), s.stride = convolution->stride.back(), s.padding = convolution->padding.back();
    s.in_frames = x->depth(), s.kernel_frames = weight->depth();
    s.padding_frames = clips ? convolution->padding.front() : 0;
    return s;
  }
  /// True if the descriptors fit together.
  bool fits() const {
    const ConvolutionShape s = shape();
    return x->type == y->type && y->type == weight->type && weight->extents[1] == s.in_channels &&
           y->extents[0] == x->extents[0] && y->extents[1] == s.out_channels && y->depth() == s.out_frames() &&
           y->height() == s.out_height() && y->width() == s.out_width();
  }
};

/// An algorithm as this cuDNN has it. The numbers are those of real algorithms that take channels-last tensors: forward
/// IMPLICIT_PRECOMP_GEMM, backward ALGO_1, and ALGO_0, which adds in any order.
struct Offer {
  int number;
  cudnnMathType_t math;
  bool repeats, runs;
  std::size_t workspace_bytes;
};

std::vector<Offer> offers(const Machine& here, Pass pass, const Problem& problem) {
  const std::size_t some = 4096 + 512 * cuda::size_of(problem.x->extents[1]);  // any size that differs by layer
  std::vector<Offer> all;
  if (here.settings.broken_promises) {
    all.push_back({5, CUDNN_TENSOR_OP_MATH, true, false, 2 * some});
    all.push_back({4, CUDNN_FMA_MATH, true, false, some});
  }
  if (pass != Pass::forward) all.push_back({0, CUDNN_TENSOR_OP_MATH, false, true, 0});
  all.push_back({1, CUDNN_TENSOR_OP_MATH, true, true, some});
  if (!problem.is_bf16()) all.push_back({1, CUDNN_FMA_MATH, true, true, some});
  return all;
}

template <class Perf>
cudnnStatus_t heuristics(const char* name, Pass pass, const void* x, const void* y, const void* weight,
                         const void* convolution, int most, int* count, Perf* to) {
  return dnn_call(name, [&](Machine& here, auto&) {
    const Problem problem(here, x, y, weight, convolution);
    if (!problem.is_there() || !problem.fits()) {
      here.violate("the descriptors of a convolution do not fit together");
      return CUDNN_STATUS_BAD_PARAM;
    }
    *count = 0;
    for (const Offer& offer : offers(here, pass, problem)) {
      if (*count == most) break;
      Perf& one = to[(*count)++];
      one = {};
      one.algo = static_cast<decltype(one.algo)>(offer.number);
      one.memory = offer.workspace_bytes;
      one.determinism = offer.repeats ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
      one.mathType = offer.math;
    }
    // An algorithm that it does not have comes last, with that status.
    if (*count < most) to[(*count)++].status = CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
  });
}

void check_operands(Machine& here, int device, const Problem& problem, const Offer& offer,
                    const std::vector<std::pair<const TensorState*, const void*>>& operands) {
  for (const auto& [tensor, data] : operands) {
    here.check_range(data, tensor->bytes(), device, "a convolution's operand");
    if (offer.math == CUDNN_TENSOR_OP_MATH && reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
      here.violate("an operand for tensor cores is not aligned to 16 bytes");
  }
  if (!problem.fits()) here.violate("the descriptors of a convolution do not fit together");
}

struct ConvolutionArguments {
  const void *x_handle, *y_handle, *weight_handle, *convolution_handle;
  void *x, *y, *weight, *workspace;
  std::size_t workspace_bytes;
  float alpha, beta;
};

cudnnStatus_t convolve(const char* name, Pass pass, cudnnHandle_t handle, int number,
                       const ConvolutionArguments& given) {
  return dnn_call(name, [&](Machine& here, auto&) {
    const auto* library = here.use<LibraryState>(handle, "cudnn");
    const Problem problem(here, given.x_handle, given.y_handle, given.weight_handle, given.convolution_handle);
    if (library == nullptr || !problem.is_there() || given.alpha != 1 || (given.beta != 0 && given.beta != 1))
      return CUDNN_STATUS_BAD_PARAM;
    const auto all = offers(here, pass, problem);
    const auto offer = std::find_if(all.begin(), all.end(), [&](const Offer& one) {
      return one.number == number && one.math == problem.convolution->math;
    });
    if (offer == all.end()) here.violate("an algorithm runs that was not offered with this math type");
    if (offer == all.end() || !offer->runs) return CUDNN_STATUS_NOT_SUPPORTED;
    check_operands(here, library->device, problem, *offer,
                   {{problem.x, given.x}, {problem.y, given.y}, {problem.weight, given.weight}});
    if (given.workspace_bytes < offer->workspace_bytes) here.violate("a convolution's workspace is too small");
    if (offer->workspace_bytes > 0 &&
        !here.check_range(given.workspace, given.workspace_bytes, library->device, "a convolution's workspace"))
      return CUDNN_STATUS_BAD_PARAM;
    const cuda::ConvolutionCall like{pass,    problem.shape(), problem.x->extents[0], nullptr,
                                     nullptr, nullptr,         given.beta == 1};
    const bool on_tensor_cores = offer->math == CUDNN_TENSOR_OP_MATH;
    const auto work = [&here, like, given, on_tensor_cores, halves = problem.is_bf16(), x_size = problem.x->size(),
                       y_size = problem.y->size(), weight_size = problem.weight->size()] {
      if (on_tensor_cores) ++here.tensor_core_convolutions;
      if ((on_tensor_cores && here.settings.slow_tensor_cores) || here.settings.slow_algorithms)
        std::this_thread::sleep_for(std::chrono::milliseconds(15));  // more than a busy machine lets a thread wait
      // Numbers as a real algorithm leaves them behind in its workspace.
      if (given.workspace_bytes > 0)
        std::fill_n(static_cast<std::uint8_t*>(given.workspace), given.workspace_bytes, 0xFF);
      InSingles x(given.x, x_size, halves), y(given.y, y_size, halves), weight(given.weight, weight_size, halves);
      cuda::ConvolutionCall call = like;
      call.x = x.data(), call.y = y.data(), call.weight = weight.data();
      convolve_on_host(call);
      (like.pass == Pass::forward ? y : like.pass == Pass::data ? x : weight).write_back();
    };
    compute(here, *library, name, work, {given.x, given.y, given.weight, given.workspace});
    return CUDNN_STATUS_SUCCESS;
  });
}

float number_at(const void* scale) { return *static_cast<const float*>(scale); }

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;
using ganymede::kernel::cuda::Pass;

const char* cudnnGetErrorString(cudnnStatus_t) { return "a status of the stand-in"; }

std::size_t cudnnGetVersion() { return 91900; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* to) {
  return dnn_call("cudnnCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cudnnHandle_t>(here.make("cudnn", LibraryState{current_device()}));
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy<LibraryState>("cudnnDestroy", "cudnn", handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return dnn_call("cudnnSetStream", [&](Machine& here, auto&) {
    if (auto* state = here.use<LibraryState>(handle, "cudnn")) state->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* to) { return create<TensorState>(kTensor, to); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* to) { return create<TensorState>(kFilter, to); }
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* to) {
  return create<ConvolutionState>(kConvolution, to);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t handle) {
  return destroy<TensorState>("cudnnDestroyTensorDescriptor", kTensor, handle);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t handle) {
  return destroy<TensorState>("cudnnDestroyFilterDescriptor", kFilter, handle);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle) {
  return destroy<ConvolutionState>("cudnnDestroyConvolutionDescriptor", kConvolution, handle);
}
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int rank, const int extents[]) {
  return describe("cudnnSetTensorNdDescriptorEx", kTensor, handle, format, type, rank, extents);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int extents[]) {
  return describe("cudnnSetFilterNdDescriptor", kFilter, handle, format, type, rank, extents);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t handle, int rank, const int padding[],
                                              const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  return dnn_call("cudnnSetConvolutionNdDescriptor", [&](Machine& here, auto&) {
    auto* state = here.use<ConvolutionState>(handle, kConvolution);
    if (state == nullptr || mode != CUDNN_CROSS_CORRELATION || compute_type != CUDNN_DATA_FLOAT || dilation[0] != 1)
      return CUDNN_STATUS_BAD_PARAM;
    *state = {{padding, padding + rank}, {stride, stride + rank}};
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
  return dnn_call("cudnnSetConvolutionMathType", [&](Machine& here, auto&) {
    if (auto* state = here.use<ConvolutionState>(handle, kConvolution)) state->math = math;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t weight,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t y, int most, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* to) {
  return heuristics("cudnnGetConvolutionForwardAlgorithm_v7", Pass::forward, x, y, weight, convolution, most, count,
                    to);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t weight,
                                                          cudnnTensorDescriptor_t y,
                                                          cudnnConvolutionDescriptor_t convolution,
                                                          cudnnTensorDescriptor_t x, int most, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* to) {
  return heuristics("cudnnGetConvolutionBackwardDataAlgorithm_v7", Pass::data, x, y, weight, convolution, most, count,
                    to);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y,
                                                            cudnnConvolutionDescriptor_t convolution,
                                                            cudnnFilterDescriptor_t weight, int most, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* to) {
  return heuristics("cudnnGetConvolutionBackwardFilterAlgorithm_v7", Pass::weights, x, y, weight, convolution, most,
                    count, to);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_of,
                                      const void* x, cudnnFilterDescriptor_t weight_of, const void* weight,
                                      cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_of, void* y) {
  return convolve("cudnnConvolutionForward", Pass::forward, handle, algorithm,
                  {x_of, y_of, weight_of, convolution, const_cast<void*>(x), y, const_cast<void*>(weight), workspace,
                   bytes, number_at(alpha), number_at(beta)});
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t weight_of,
                                           const void* weight, cudnnTensorDescriptor_t y_of, const void* y,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, std::size_t bytes,
                                           const void* beta, cudnnTensorDescriptor_t x_of, void* x) {
  return convolve("cudnnConvolutionBackwardData", Pass::data, handle, algorithm,
                  {x_of, y_of, weight_of, convolution, x, const_cast<void*>(y), const_cast<void*>(weight), workspace,
                   bytes, number_at(alpha), number_at(beta)});
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_of,
                                             const void* x, cudnnTensorDescriptor_t y_of, const void* y,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, cudnnFilterDescriptor_t weight_of,
                                             void* weight) {
  return convolve("cudnnConvolutionBackwardFilter", Pass::weights, handle, algorithm,
                  {x_of, y_of, weight_of, convolution, const_cast<void*>(x), const_cast<void*>(y), weight, workspace,
                   bytes, number_at(alpha), number_at(beta)});
}

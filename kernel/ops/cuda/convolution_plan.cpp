#include "kernel/ops/cuda/convolution_plan.hpp"

#include <algorithm>
#include <tuple>

namespace ganymede::kernel::cuda {
namespace {

/// Algorithms that need more scratch memory are not used.
constexpr std::size_t kMaxWorkspaceBytes = std::size_t{512} << 20;

/// [first, second, (depth,) height, width]
std::vector<int> extents(bool clips, int first, int second, int depth, int height, int width) {
  if (clips) return {first, second, depth, height, width};
  return {first, second, height, width};
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(cudnnHandle_t handle, Pass pass, const ConvolutionShape& s, int batch,
                                 Precision precision)
    : pass_(pass) {
  describe(s, batch, precision);
  switch (pass) {
    case Pass::forward:
      list<cudnnConvolutionFwdAlgoPerf_t>(CUDNN_CONVOLUTION_FWD_ALGO_COUNT, precision, [&](auto... to) {
        return cudnnGetConvolutionForwardAlgorithm_v7(handle, x_.get(), weight_.get(), convolution_.get(), y_.get(),
                                                      to...);
      });
      break;
    case Pass::data:
      list<cudnnConvolutionBwdDataAlgoPerf_t>(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, precision, [&](auto... to) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, weight_.get(), y_.get(), convolution_.get(),
                                                           x_.get(), to...);
      });
      break;
    case Pass::weights:
      list<cudnnConvolutionBwdFilterAlgoPerf_t>(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, precision, [&](auto... to) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_.get(), y_.get(), convolution_.get(),
                                                             weight_.get(), to...);
      });
      break;
  }
  take_on();
}

void ConvolutionPlan::describe(const ConvolutionShape& s, int batch, Precision precision) {
  const cudnnDataType_t type = precision == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const bool clips = s.in_frames > 1 || s.kernel_frames > 1;
  x_ = made_by<TensorDescriptor>("cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor);
  y_ = made_by<TensorDescriptor>("cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor);
  weight_ = made_by<FilterDescriptor>("cudnnCreateFilterDescriptor", cudnnCreateFilterDescriptor);
  convolution_ = made_by<ConvolutionDescriptor>("cudnnCreateConvolutionDescriptor", cudnnCreateConvolutionDescriptor);
  const auto x = extents(clips, batch, s.in_channels, s.in_frames, s.in_height, s.in_width);
  const auto y = extents(clips, batch, s.out_channels, s.out_frames(), s.out_height(), s.out_width());
  const auto w = extents(clips, s.out_channels, s.in_channels, s.kernel_frames, s.kernel, s.kernel);
  const int rank = static_cast<int>(x.size());
  GANYMEDE_CUDA(cudnnSetTensorNdDescriptorEx(x_.get(), CUDNN_TENSOR_NHWC, type, rank, x.data()));
  GANYMEDE_CUDA(cudnnSetTensorNdDescriptorEx(y_.get(), CUDNN_TENSOR_NHWC, type, rank, y.data()));
  GANYMEDE_CUDA(cudnnSetFilterNdDescriptor(weight_.get(), type, CUDNN_TENSOR_NHWC, rank, w.data()));
  std::vector<int> padding{s.padding, s.padding}, stride{s.stride, s.stride}, dilation(x.size() - 2, 1);
  if (clips) {
    padding.insert(padding.begin(), s.padding_frames);
    stride.insert(stride.begin(), 1);
  }
  GANYMEDE_CUDA(cudnnSetConvolutionNdDescriptor(convolution_.get(), rank - 2, padding.data(), stride.data(),
                                                dilation.data(), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  // By default tensor cores round fp32 operands to TF32; Precision::fp32 forbids that.
  GANYMEDE_CUDA(cudnnSetConvolutionMathType(convolution_.get(),
                                            precision == Precision::fp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
}

template <class Found, class Ask>
void ConvolutionPlan::list(int most, Precision precision, const Ask& ask) {
  std::vector<Found> found(static_cast<std::size_t>(most));
  int count = 0;
  GANYMEDE_CUDA(ask(most, &count, found.data()));
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [&](const Found& one) {
    return one.status != CUDNN_STATUS_SUCCESS || one.memory > kMaxWorkspaceBytes ||
           (precision == Precision::fp32 && one.mathType != CUDNN_FMA_MATH);
  });
  // First those that give the same bits every time.
  std::stable_partition(found.begin(), found.end(),
                        [](const Found& one) { return one.determinism == CUDNN_DETERMINISTIC; });
  for (const Found& one : found) {
    algorithms_.push_back(
        {static_cast<int>(one.algo), one.memory, one.mathType, one.determinism == CUDNN_DETERMINISTIC});
    workspace_bytes_ = std::max(workspace_bytes_, one.memory);
  }
}

void ConvolutionPlan::take_on() {
  // An algorithm belongs to one math type, which the descriptor must also have.
  if (found()) GANYMEDE_CUDA(cudnnSetConvolutionMathType(convolution_.get(), algorithms_[taken_].math));
}

bool ConvolutionPlan::run(cudnnHandle_t handle, void* x, void* y, void* weight, float beta, void* workspace) {
  while (found()) {
    const cudnnStatus_t status = call(handle, x, y, weight, beta, workspace);
    if (CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED) {
      GANYMEDE_CUDA(status);
      return true;
    }
    ++taken_;
    take_on();
  }
  return false;
}

std::vector<TimedAlgorithm> ConvolutionPlan::time(cudnnHandle_t handle, cudaStream_t stream, void* x, void* y,
                                                  void* weight, void* workspace) {
  constexpr int kRuns = 5;
  const Event begin = make_timed_event(), end = make_timed_event();
  std::vector<TimedAlgorithm> timed;
  for (taken_ = 0; taken_ < algorithms_.size(); ++taken_) {
    take_on();
    // The first run loads the kernels, or shows that there are none.
    const cudnnStatus_t status = call(handle, x, y, weight, 0, workspace);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) continue;
    GANYMEDE_CUDA(status);
    GANYMEDE_CUDA(cudaEventRecord(begin.get(), stream));
    for (int i = 0; i < kRuns; ++i) GANYMEDE_CUDA(call(handle, x, y, weight, 0, workspace));
    GANYMEDE_CUDA(cudaEventRecord(end.get(), stream));
    GANYMEDE_CUDA(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    GANYMEDE_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    const Algorithm& one = algorithms_[taken_];
    timed.push_back({one.number, one.math, one.repeats, 1e-3 * static_cast<double>(milliseconds) / kRuns});
  }
  taken_ = 0;
  take_on();
  return timed;
}

bool ConvolutionPlan::prefer(const std::vector<TimedAlgorithm>& timed) {
  const auto find = [&](const Algorithm& one) {
    return std::find_if(timed.begin(), timed.end(), [&](const TimedAlgorithm& other) {
      return other.number == one.number && other.math == one.math && other.repeats == one.repeats;
    });
  };
  const auto offered = std::count_if(algorithms_.begin(), algorithms_.end(),
                                     [&](const Algorithm& one) { return find(one) != timed.end(); });
  if (static_cast<std::size_t>(offered) != timed.size()) return false;
  const auto rank = [&](const Algorithm& one) {
    const auto found = find(one);
    return std::tuple(found == timed.end(), !one.repeats, found == timed.end() ? 0 : found->seconds);
  };
  std::stable_sort(algorithms_.begin(), algorithms_.end(),
                   [&](const Algorithm& a, const Algorithm& b) { return rank(a) < rank(b); });
  taken_ = 0;
  take_on();
  return true;
}

cudnnStatus_t ConvolutionPlan::call(cudnnHandle_t handle, void* x, void* y, void* weight, float beta,
                                    void* workspace) const {
  const float one = 1;
  const Algorithm& taken = algorithms_[taken_];
  switch (pass_) {
    case Pass::forward:
      return cudnnConvolutionForward(handle, &one, x_.get(), x, weight_.get(), weight, convolution_.get(),
                                     static_cast<cudnnConvolutionFwdAlgo_t>(taken.number), workspace,
                                     taken.workspace_bytes, &beta, y_.get(), y);
    case Pass::data:
      return cudnnConvolutionBackwardData(handle, &one, weight_.get(), weight, y_.get(), y, convolution_.get(),
                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(taken.number), workspace,
                                          taken.workspace_bytes, &beta, x_.get(), x);
    case Pass::weights:
      return cudnnConvolutionBackwardFilter(handle, &one, x_.get(), x, y_.get(), y, convolution_.get(),
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(taken.number), workspace,
                                            taken.workspace_bytes, &beta, weight_.get(), weight);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

}  // namespace ganymede::kernel::cuda

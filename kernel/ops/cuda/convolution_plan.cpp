#include "kernel/ops/cuda/convolution_plan.hpp"

#include <vector>

#include "kernel/ops/cuda/check.hpp"

namespace ganymede::kernel::cuda {
namespace {

/// Algorithms that need more scratch memory are not used.
constexpr std::size_t kMaxWorkspaceBytes = std::size_t{512} << 20;

/// The fastest algorithm, in the order of cuDNN's heuristics, that is available, fits into memory, does not round fp32
/// operands if the precision is fp32 and, if possible, gives the same bits every time; null: none.
template <class Found>
const Found* chosen(const std::vector<Found>& found, int count, Precision precision) {
  for (const bool must_repeat : {true, false})
    for (int i = 0; i < count; ++i) {
      const Found& one = found[static_cast<std::size_t>(i)];
      if (one.status == CUDNN_STATUS_SUCCESS && one.memory <= kMaxWorkspaceBytes &&
          (precision != Precision::fp32 || one.mathType == CUDNN_FMA_MATH) &&
          (!must_repeat || one.determinism == CUDNN_DETERMINISTIC))
        return &one;
    }
  return nullptr;
}

/// [first, second, (depth,) height, width]
std::vector<int> extents(bool clips, int first, int second, int depth, int height, int width) {
  if (clips) return {first, second, depth, height, width};
  return {first, second, height, width};
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(cudnnHandle_t handle, Pass pass, const ConvolutionShape& s, int batch,
                                 Precision precision)
    : pass_(pass) {
  const cudnnDataType_t type = precision == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const bool clips = s.in_frames > 1 || s.kernel_frames > 1;
  GANYMEDE_CUDA(cudnnCreateTensorDescriptor(&x_));
  GANYMEDE_CUDA(cudnnCreateTensorDescriptor(&y_));
  GANYMEDE_CUDA(cudnnCreateFilterDescriptor(&weight_));
  GANYMEDE_CUDA(cudnnCreateConvolutionDescriptor(&convolution_));
  const auto x = extents(clips, batch, s.in_channels, s.in_frames, s.in_height, s.in_width);
  const auto y = extents(clips, batch, s.out_channels, s.out_frames(), s.out_height(), s.out_width());
  const auto w = extents(clips, s.out_channels, s.in_channels, s.kernel_frames, s.kernel, s.kernel);
  const int rank = static_cast<int>(x.size());
  GANYMEDE_CUDA(cudnnSetTensorNdDescriptorEx(x_, CUDNN_TENSOR_NHWC, type, rank, x.data()));
  GANYMEDE_CUDA(cudnnSetTensorNdDescriptorEx(y_, CUDNN_TENSOR_NHWC, type, rank, y.data()));
  GANYMEDE_CUDA(cudnnSetFilterNdDescriptor(weight_, type, CUDNN_TENSOR_NHWC, rank, w.data()));
  std::vector<int> padding{s.padding, s.padding}, stride{s.stride, s.stride}, dilation(x.size() - 2, 1);
  if (clips) {
    padding.insert(padding.begin(), s.padding_frames);
    stride.insert(stride.begin(), 1);
  }
  GANYMEDE_CUDA(cudnnSetConvolutionNdDescriptor(convolution_, rank - 2, padding.data(), stride.data(), dilation.data(),
                                                CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  // By default tensor cores round fp32 operands to TF32; Precision::fp32 forbids that.
  GANYMEDE_CUDA(
      cudnnSetConvolutionMathType(convolution_, precision == Precision::fp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));

  int count = 0;
  switch (pass) {
    case Pass::forward: {
      std::vector<cudnnConvolutionFwdAlgoPerf_t> found(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
      GANYMEDE_CUDA(cudnnGetConvolutionForwardAlgorithm_v7(handle, x_, weight_, convolution_, y_,
                                                           static_cast<int>(found.size()), &count, found.data()));
      take(chosen(found, count, precision));
      break;
    }
    case Pass::data: {
      std::vector<cudnnConvolutionBwdDataAlgoPerf_t> found(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
      GANYMEDE_CUDA(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, weight_, y_, convolution_, x_,
                                                                static_cast<int>(found.size()), &count, found.data()));
      take(chosen(found, count, precision));
      break;
    }
    case Pass::weights: {
      std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> found(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
      GANYMEDE_CUDA(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
          handle, x_, y_, convolution_, weight_, static_cast<int>(found.size()), &count, found.data()));
      take(chosen(found, count, precision));
      break;
    }
  }
}

template <class Found>
void ConvolutionPlan::take(const Found* best) {
  if (best == nullptr) return;
  found_ = true;
  algorithm_ = best->algo;
  workspace_bytes_ = best->memory;
  // An algorithm belongs to one math type, which the descriptor must also have.
  GANYMEDE_CUDA(cudnnSetConvolutionMathType(convolution_, best->mathType));
}

ConvolutionPlan::~ConvolutionPlan() {
  cudnnDestroyConvolutionDescriptor(convolution_);
  cudnnDestroyFilterDescriptor(weight_);
  cudnnDestroyTensorDescriptor(y_);
  cudnnDestroyTensorDescriptor(x_);
}

void ConvolutionPlan::run(cudnnHandle_t handle, void* x, void* y, void* weight, float beta, void* workspace) const {
  const float one = 1;
  switch (pass_) {
    case Pass::forward:
      GANYMEDE_CUDA(cudnnConvolutionForward(handle, &one, x_, x, weight_, weight, convolution_,
                                            static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_), workspace,
                                            workspace_bytes_, &beta, y_, y));
      return;
    case Pass::data:
      GANYMEDE_CUDA(cudnnConvolutionBackwardData(handle, &one, weight_, weight, y_, y, convolution_,
                                                 static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), workspace,
                                                 workspace_bytes_, &beta, x_, x));
      return;
    case Pass::weights:
      GANYMEDE_CUDA(cudnnConvolutionBackwardFilter(handle, &one, x_, x, y_, y, convolution_,
                                                   static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), workspace,
                                                   workspace_bytes_, &beta, weight_, weight));
      return;
  }
}

}  // namespace ganymede::kernel::cuda

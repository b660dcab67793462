#pragma once
// The parts of the CPU backend that eigen_ops.cpp puts together.

#include <algorithm>
#include <cstddef>
#include <string>

#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"
#include "kernel/ops/tensor_ops.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

/// Operations that the inner loops do not bind: those of progressively growing networks, of the gradient penalty and of
/// the losses. Losses are computed in double precision, because a batch of logits costs little.
class CpuOps : public TensorOps {
 protected:
  CpuOps(DeviceTimeline& timeline, int threads, const CpuKernels& kernels)
      : TensorOps(timeline, MemoryLayout::batch_innermost), kernels_(kernels), pool_(threads) {}

  const CpuKernels& kernels_;
  ThreadPool pool_;

 private:
  void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) override;
  void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                              bool accumulate) override;
  void do_instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) override;
  void do_instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels, float slope) override;
  void do_pixel_norm_forward(Tensor x, float* scale, int channels) override;
  void do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) override;
  void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) override;
  void do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) override;
  void do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) override;
  void do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) override;
  void do_scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) override;
  void do_channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) override;
  void do_demodulate(Tensor factors, Tensor styles, DemodulationParameters parameters) override;
  void do_demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                             DemodulationParameters parameters) override;
  void do_demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors, Adjoints styles,
                              DemodulationParameters parameters) override;
  void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) override;
  void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                           float* length) override;
  void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) override;
  void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                              std::span<const std::uint8_t> labels) override;
  void do_append_channels(Tensor y, Tensor x, Tensor more, int positions) override;
  void do_leading_channels(Tensor dx, Tensor dy, int positions) override;
  void do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) override;
  void do_absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) override;
  void do_sample_code(Tensor z, Tensor code, Tensor noise) override;
  void do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) override;

  /// Calls function(begin, end) on several threads for ranges of `count` items, each of which is `elements` floats.
  template <class Function>
  void over(int count, double elements, const Function& function) {
    constexpr double kChunkElements = 16384;  // floats, enough to make handing them to a thread worthwhile
    const int chunk = std::clamp(static_cast<int>(kChunkElements / elements), 1, std::max(1, count));
    pool_.run((count + chunk - 1) / chunk, [&](int i, int) { function(i * chunk, std::min(count, (i + 1) * chunk)); });
  }
};

/// One convolution for one call: expresses the three passes as gathered products (see kernels.hpp) and divides them
/// among threads. A thread's scratch memory is a part of the workspace.
class CpuConvolution {
 public:
  /// Floats of workspace that the passes need with this number of threads.
  static std::size_t workspace_floats(const ConvolutionShape& shape, const CpuKernels& kernels, int threads);

  /// `workspace` has workspace_floats() floats; all references must outlive the object.
  CpuConvolution(const ConvolutionShape& shape, const CpuKernels& kernels, ThreadPool& pool, float* workspace)
      : shape_(shape), kernels_(kernels), pool_(pool), workspace_(workspace) {}

  // As TensorOps::convolve, convolve_backward_data and convolve_backward_weights.
  void forward(Tensor y, Tensor x, const float* weight) const;
  void backward_data(Tensor dx, Tensor dy, const float* weight) const;
  void backward_weights(float* d_weight, Tensor dy, Tensor x, bool accumulate) const;

 private:
  /// Returns which elements of x the forward pass reads.
  Gather gather_of(Tensor x, const Tap* taps) const;
  /// Computes the pixels of dx whose row and column are `row` and `column` modulo the stride.
  void backward_class(Tensor dx, Tensor dy, int row, int column) const;
  /// Computes all tiles of the product, on several threads.
  void over_tiles(const Gather& gather, const GatherProduct& product) const;
  float* scratch_of(int thread) const;

  const ConvolutionShape& shape_;
  const CpuKernels& kernels_;
  ThreadPool& pool_;
  float* workspace_;  // the transposed weights, then each thread's scratch
};

/// Batch norm over the images of all processes: each process's sums are added up before they are used.
class CpuSynchronizedNorm {
 public:
  CpuSynchronizedNorm(Communicator& communicator, ThreadPool& pool) : communicator_(communicator), pool_(pool) {}

  // As TensorOps::batch_norm_leaky_forward and _backward.
  void forward(Tensor y, Tensor x, const BatchNormParameters& parameters) const;
  void backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale, float* d_shift,
                bool accumulate) const;

 private:
  /// Calls function(feature) for every feature, on several threads.
  template <class Function>
  void over(int features, const Function& function) const;

  Communicator& communicator_;
  ThreadPool& pool_;
};

// The operating system's report on the processor and its memory.

std::string cpu_name();      ///< for example "AMD EPYC"; "CPU" if the system does not report one
double free_memory_bytes();  ///< bytes available without swapping; 0: not known

}  // namespace ganymede::kernel

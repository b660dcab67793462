#pragma once
// Operations of the CPU backend that its inner loops do not bind: those of progressively growing networks, of the
// gradient penalty and of the losses. Losses are computed in double precision, because a batch of logits costs little.

#include "kernel/ops/eigen/kernels.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

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
  void do_pixel_norm_forward(Tensor x, float* scale, int channels) override;
  void do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) override;
  void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) override;
  void do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) override;
  void do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) override;
  void do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) override;
  void do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) override;
  void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) override;
  void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre) override;
  void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) override;
  void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                              std::span<const std::uint8_t> labels) override;
  void do_append_channels(Tensor y, Tensor x, Tensor more, int positions) override;
  void do_leading_channels(Tensor dx, Tensor dy, int positions) override;
  void do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) override;
  void do_sample_code(Tensor z, Tensor code, Tensor noise) override;
  void do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) override;

  /// Calls function(begin, end) on several threads for ranges of `count` items, each of which is `elements` floats.
  template <class Function>
  void over(int count, double elements, const Function& function);
};

}  // namespace ganymede::kernel

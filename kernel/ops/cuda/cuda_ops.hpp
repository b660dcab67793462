#pragma once
// The GPU backend: which kernels, products and convolutions an operation is. The machine that runs them is a parameter,
// so that the same code runs on the CPU in tests, where no GPU is.
//
// Memory: activations are [batch x positions x channels] (cuDNN's NHWC, which tensor cores want); so a Tensor of
// [features x batch] is a row-major matrix of a row an image. Weights of convolutions are [outputs x taps x inputs].
// Nothing else of the kernel knows; what crosses to the host is turned there (Ops::read_rows and its like).
//
// A Machine has:
//   each(count, body)                         body(i) for every i below count
//   columns<N>(rows, columns, term, finish, apply)
//                                             term(row, column) is a Sums<N>; finish(column, sums over the rows); then
//                                             apply(row, column) for all
//   rows<N>(rows, length, term, apply)        term(row, i) is a Sums<N>; apply(row, i, sums over the row)
//   gemm(...)                                 as cublasSgemm, all column-major
//   convolve(...)                             as cuDNN's three passes
//   memory and copies between host and device; capture of a step and its replay; readings of its clock; averages of
//   gradients between replicas
// and runs what it is told in that order.

#include "kernel/loss_terms.hpp"
#include "kernel/ops/cuda/cuda_elements.hpp"

namespace ganymede::kernel::cuda {

template <class Machine>
class CudaOps final : public CudaElements<Machine> {
 public:
  using Base = CudaElements<Machine>;
  using Base::Base;
  using Base::convolve;
  using Base::each;
  using Base::gemm;
  using Base::machine_;
  using Base::mean_into;
  using Base::mode_;
  using Base::scratch;
  using Base::sum_columns;

  void do_dense_forward(Tensor y, Tensor x, DenseParameters p) override {
    gemm({true, false, y.features, x.batch, x.features, p.weight, x.features, x.data, x.features, 0, y.data,
          y.features});
    if (p.bias == nullptr) return;
    float* out = y.data;
    const float* bias = p.bias;
    const std::size_t features = size_of(y.features);
    each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) { out[i] += bias[i % features]; });
  }
  void do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) override {
    gemm({false, false, dx.features, dx.batch, dy.features, weight, dx.features, dy.data, dy.features, 0, dx.data,
          dx.features});
  }
  void do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) override {
    gemm({false, true, x.features, dy.features, x.batch, x.data, x.features, dy.data, dy.features,
          accumulate ? 1.0F : 0.0F, d_weight, x.features});
    if (d_bias != nullptr) sum_columns(d_bias, dy.data, dy.batch, dy.features, accumulate);
  }

  void do_convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight) override {
    convolve({Pass::forward, shape, x.batch, x.data, y.data, const_cast<float*>(weight), false});
  }
  void do_convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight) override {
    convolve({Pass::data, shape, dx.batch, dx.data, dy.data, const_cast<float*>(weight), false});
  }
  void do_convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape,
                                    bool accumulate) override {
    convolve({Pass::weights, shape, x.batch, x.data, dy.data, d_weight, accumulate});
  }

  void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight) override {
    const float *g = gradient.data, many = static_cast<float>(gradient.batch);
    float *to = direction.data, *terms = scratch(size_of(gradient.batch));
    const std::size_t width = size_of(gradient.features);
    this->template rows<1>(
        gradient.batch, gradient.features,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
          return Sums<1>{{g[row * width + i] * g[row * width + i]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
          const float norm = sqrtf(sums.of[0]);
          // Where the norm is zero it has no gradient.
          const float factor = norm > 0 ? 2 * weight / many * (norm - 1) / norm : 0;
          to[row * width + i] = factor * g[row * width + i];
          if (i == 0) terms[row] = weight * (norm - 1) * (norm - 1);
        });
    mean_into(loss, terms, gradient.batch);
  }
  void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) override {
    const float *l = logits.data, many = static_cast<float>(logits.batch);
    float* d = d_logits.data;
    this->template rows<1>(
        1, logits.batch,
        [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) { return Sums<1>{{loss_of_logit(l[i], term).value}}; },
        [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
          d[i] = loss_of_logit(l[i], term).slope / many;
          if (i == 0) *loss = sums.of[0] / many;
        });
  }
  void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                              std::span<const std::uint8_t> host_labels) override {
    assert(mode_ == Base::Mode::eager);
    const std::size_t classes = size_of(logits.features);
    const float *l = logits.data, many = static_cast<float>(logits.batch);
    float *d = d_logits.data, *terms = scratch(2 * size_of(logits.batch));
    auto* labels = reinterpret_cast<std::uint8_t*>(terms + logits.batch);
    machine_->to_device(labels, host_labels.data(), host_labels.size());
    each(size_of(logits.batch), [=] GANYMEDE_DEVICE(std::size_t image) {
      const float* row = l + image * classes;
      float most = row[0], sum = 0;
      for (std::size_t c = 1; c < classes; ++c) most = fmaxf(most, row[c]);
      for (std::size_t c = 0; c < classes; ++c) sum += expf(row[c] - most);
      terms[image] = most + logf(sum) - row[labels[image]];
      for (std::size_t c = 0; c < classes; ++c)
        d[image * classes + c] = (expf(row[c] - most) / sum - (c == labels[image] ? 1.0F : 0.0F)) / many;
    });
    mean_into(loss, terms, logits.batch);
  }
};

}  // namespace ganymede::kernel::cuda

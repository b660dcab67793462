#pragma once
// Losses on a GPU.

#include "kernel/loss_terms.hpp"
#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                                             float* length) {
  const E* g = elements_of<E>(gradient);
  const float many = static_cast<float>(gradient.batch);
  E* to = elements_of<E>(direction);
  float *terms = t_.scratch(2 * size_of(gradient.batch)), *norms = terms + gradient.batch;
  const std::size_t width = size_of(gradient.features);
  t_.template rows<1>(
      gradient.batch, gradient.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        return Sums<1>{{g[row * width + i] * g[row * width + i]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        const float norm = sqrtf(sums.of[0]), off = norm - centre;
        // At a gradient of zero the norm has no derivative; 0 is used.
        const float factor = norm > 0 ? 2 * weight / many * off / norm : 0;
        to[row * width + i] = factor * g[row * width + i];
        if (i > 0) return;
        terms[row] = weight * off * off;
        norms[row] = norm;
      });
  mean_into(t_, loss, terms, gradient.batch);
  if (length != nullptr) mean_into(t_, length, norms, gradient.batch);
}

template <class Device, class E>
void CudaOps<Device, E>::do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) {
  const E* l = elements_of<E>(logits);
  const float many = static_cast<float>(logits.batch);
  E* d = elements_of<E>(d_logits);
  t_.template rows<1>(
      1, logits.batch,
      [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) {
        return Sums<1>{{loss_of_logit(static_cast<float>(l[i]), term).value}};
      },
      [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
        d[i] = loss_of_logit(static_cast<float>(l[i]), term).slope / many;
        if (i == 0) *loss = sums.of[0] / many;
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                                                std::span<const std::uint8_t> host_labels) {
  assert(t_.is_eager());
  const std::size_t classes = size_of(logits.features);
  const E* l = elements_of<E>(logits);
  const float many = static_cast<float>(logits.batch);
  E* d = elements_of<E>(d_logits);
  float* terms = t_.scratch(2 * size_of(logits.batch));
  auto* labels = reinterpret_cast<std::uint8_t*>(terms + logits.batch);
  t_.device().to_device(labels, host_labels.data(), host_labels.size());
  t_.each(size_of(logits.batch), [=] GANYMEDE_DEVICE(std::size_t image) {
    const E* row = l + image * classes;
    float largest = row[0], sum = 0;
    for (std::size_t c = 1; c < classes; ++c) largest = fmaxf(largest, row[c]);
    for (std::size_t c = 0; c < classes; ++c) sum += expf(row[c] - largest);
    terms[image] = largest + logf(sum) - row[labels[image]];
    for (std::size_t c = 0; c < classes; ++c)
      d[image * classes + c] = (expf(row[c] - largest) / sum - (c == labels[image] ? 1.0F : 0.0F)) / many;
  });
  mean_into(t_, loss, terms, logits.batch);
}

}  // namespace ganymede::kernel::cuda

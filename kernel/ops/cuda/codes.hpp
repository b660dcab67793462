#pragma once
// Operations of labels and of variational autoencoders on a GPU.

#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_append_channels(Tensor y, Tensor x, Tensor more, int positions) {
  const E *from = elements_of<E>(x), *added = elements_of<E>(more);
  E* to = elements_of<E>(y);
  const std::size_t depth = size_of(x.features / positions), further = size_of(more.features);
  const Divisor wide(depth + further), places(size_of(positions));
  t_.each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t c = i % wide, place = i / wide;
    if (c < depth)
      to[i] = from[place * depth + c];
    else
      to[i] = added == nullptr ? 0.0F : static_cast<float>(added[place / places * further + c - depth]);
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_leading_channels(Tensor dx, Tensor dy, int positions) {
  const E* from = elements_of<E>(dy);
  E* to = elements_of<E>(dx);
  const std::size_t wide = size_of(dy.features / positions);
  const Divisor depth(size_of(dx.features / positions));
  t_.each(dx.size(), [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = from[i / depth * wide + i % depth]; });
}

template <class Device, class E>
void CudaOps<Device, E>::do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  const E *found = elements_of<E>(y), *wanted = elements_of<E>(x);
  E* to = elements_of<E>(dy);
  const std::size_t width = size_of(y.features);
  const float factor = 2 * weight / static_cast<float>(y.batch);
  float* terms = t_.scratch(size_of(y.batch));
  t_.template rows<1>(
      y.batch, y.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        const float difference = found[row * width + i] - wanted[row * width + i];
        return Sums<1>{{difference * difference}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        to[row * width + i] = factor * (found[row * width + i] - wanted[row * width + i]);
        if (i == 0) terms[row] = weight * sums.of[0];
      });
  mean_into(t_, loss, terms, y.batch);
}

template <class Device, class E>
void CudaOps<Device, E>::do_sample_code(Tensor z, Tensor code, Tensor noise) {
  const E *in = elements_of<E>(code), *drawn = elements_of<E>(noise);
  E* to = elements_of<E>(z);
  const Divisor width(size_of(z.features));
  t_.each(z.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t mean = i / width * 2 * width + i % width;
    to[i] = in[mean] + expf(in[mean + width] / 2) * drawn[i];
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) {
  const E *in = elements_of<E>(code), *dy = elements_of<E>(dz), *drawn = elements_of<E>(noise);
  E* to = elements_of<E>(d_code);
  const std::size_t width = size_of(dz.features);
  const float many = static_cast<float>(dz.batch);
  float* terms = t_.scratch(size_of(dz.batch));
  t_.template rows<1>(
      dz.batch, dz.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        const float mean = in[row * 2 * width + i], log_variance = in[row * 2 * width + width + i];
        return Sums<1>{{(mean * mean + expf(log_variance) - log_variance - 1) / 2}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        const std::size_t mean = row * 2 * width + i, at = row * width + i;
        const float log_variance = in[mean + width];
        to[mean] = dy[at] + in[mean] / many;
        to[mean + width] = dy[at] * drawn[at] * expf(log_variance / 2) / 2 + (expf(log_variance) - 1) / (2 * many);
        if (i == 0) terms[row] = sums.of[0];
      });
  mean_into(t_, loss, terms, dz.batch);
}

}  // namespace ganymede::kernel::cuda

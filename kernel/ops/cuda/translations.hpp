#pragma once
// Instance norm and the absolute error on a GPU.

#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

/// Where the values of an instance norm are: a column is a channel of an image, a row a position.
struct InstanceColumns {
  Divisor channels;
  std::size_t positions;

  GANYMEDE_DEVICE std::size_t operator()(std::size_t row, std::size_t c) const {
    return (c / channels * positions + row) * channels + c % channels;
  }
};

template <class Device, class E>
void CudaOps<Device, E>::do_instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) {
  const E* in = elements_of<E>(x);
  E* out = elements_of<E>(y);
  const int positions = x.features / channels, columns = channels * x.batch;
  const InstanceColumns at{Divisor(size_of(channels)), size_of(positions)};
  const float many = static_cast<float>(positions);
  float* inverse_deviations = moments + columns;
  // The sums are taken around the first position's values: one pass over the data, without cancellation.
  t_.template columns<2>(
      positions, columns,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const float d = in[at(row, c)] - in[at(0, c)];
        return Sums<2>{{d, d * d}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        const float around = sums.of[0] / many, variance = fmaxf(0.0F, sums.of[1] / many - around * around);
        moments[c] = in[at(0, c)] + around;
        inverse_deviations[c] = 1.0F / sqrtf(variance + kInstanceNormEpsilon);
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = at(row, c);
        out[i] = leaky((in[i] - moments[c]) * inverse_deviations[c], slope);
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels,
                                                         float slope) {
  const E* in = elements_of<E>(x);
  E* g = elements_of<E>(dy);
  const int positions = x.features / channels, columns = channels * x.batch;
  const InstanceColumns at{Divisor(size_of(channels)), size_of(positions)};
  const float many = static_cast<float>(positions);
  const float* inverse_deviations = moments + columns;
  float* sums_of = t_.scratch(2 * size_of(columns));
  t_.template columns<2>(
      positions, columns,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = at(row, c);
        const float n = (in[i] - moments[c]) * inverse_deviations[c], dn = g[i] * leaky_slope(n, slope);
        return Sums<2>{{dn, dn * n}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        sums_of[2 * c] = sums.of[0];
        sums_of[2 * c + 1] = sums.of[1];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = at(row, c);
        const float n = (in[i] - moments[c]) * inverse_deviations[c], dn = g[i] * leaky_slope(n, slope);
        g[i] = (dn - sums_of[2 * c] / many - n * (sums_of[2 * c + 1] / many)) * inverse_deviations[c];
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  const E *found = elements_of<E>(y), *wanted = elements_of<E>(x);
  E* to = elements_of<E>(dy);
  const std::size_t width = size_of(y.features);
  const float factor = weight / static_cast<float>(y.batch);
  float* terms = t_.scratch(size_of(y.batch));
  t_.template rows<1>(
      y.batch, y.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        return Sums<1>{{fabsf(found[row * width + i] - wanted[row * width + i])}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        const float difference = found[row * width + i] - wanted[row * width + i];
        to[row * width + i] = difference > 0 ? factor : difference < 0 ? -factor : 0.0F;
        if (i == 0) terms[row] = weight * sums.of[0];
      });
  mean_into(t_, loss, terms, y.batch);
}

}  // namespace ganymede::kernel::cuda

#pragma once
// The tangent of batch norm on a GPU, for the gradients of gradient penalties. For the formulas see
// kernel/ops/eigen/batch_norm_tangent.inl.

#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x,
                                                     const BatchNormParameters& p) {
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot);
  const float many = static_cast<float>(x.batch);
  E* out = elements_of<E>(y_dot);
  float* means = t_.scratch(2 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  t_.template columns<2>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const float d = dot[row * width + c];
        return Sums<2>{{d, d * (in[row * width + c] - p.mean[c]) * p.inverse_deviation[c]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        means[2 * c] = sums.of[0] / many;
        means[2 * c + 1] = sums.of[1] / many;
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
        const float value = in[row * width + c], n = (value - p.mean[c]) * p.inverse_deviation[c];
        out[row * width + c] = factor * leaky_slope(value * factor + offset, p.slope) *
                               (dot[row * width + c] - means[2 * c] - n * means[2 * c + 1]);
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                              const BatchNormParameters& p, float* d_scale,
                                                              float* d_shift, bool accumulate) {
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot), *by_value = elements_of<E>(dy.value),
          *by_tangent = elements_of<E>(dy.tangent);
  const float many = static_cast<float>(x.batch);
  E *to_value = elements_of<E>(dx.value), *to_tangent = elements_of<E>(dx.tangent);
  float* kept = t_.scratch(7 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  t_.template columns<7>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
        const float mask = leaky_slope(in[i] * factor + offset, p.slope);
        const float n = (in[i] - p.mean[c]) * p.inverse_deviation[c], v = mask * by_tangent[i];
        const float y = by_value == nullptr ? 0.0F : mask * by_value[i];
        return Sums<7>{{v, n * v, dot[i], n * dot[i], v * dot[i], y, n * y}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<7>& sums) {
        for (std::size_t k = 0; k < 7; ++k) kept[7 * c + k] = sums.of[k];
        if (d_shift == nullptr) return;
        const float q =
            p.inverse_deviation[c] * (sums.of[4] - sums.of[0] * sums.of[2] / many - sums.of[1] * sums.of[3] / many);
        d_shift[c] = (accumulate ? d_shift[c] : 0.0F) + sums.of[5];
        d_scale[c] = (accumulate ? d_scale[c] : 0.0F) + sums.of[6] + q;
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        const float inverse = p.inverse_deviation[c], factor = p.scale[c] * inverse;
        const float mask = leaky_slope(in[i] * factor + (p.shift[c] - p.mean[c] * factor), p.slope);
        const float n = (in[i] - p.mean[c]) * inverse, v = mask * by_tangent[i], d = dot[i];
        const float y = by_value == nullptr ? 0.0F : mask * by_value[i];
        const float* s = kept + 7 * c;
        const float q = factor * (s[4] - s[0] * s[2] / many - s[1] * s[3] / many);
        const float mean_w = (s[0] * s[3] + s[2] * s[1]) / many, along_w = 2 * s[1] * s[3] / many;
        to_tangent[i] = factor * (v - s[0] / many - n * s[1] / many);
        to_value[i] = factor * (y - s[5] / many - n * s[6] / many) - q * inverse / many * n -
                      factor * inverse / many * (v * s[3] + d * s[1] - mean_w - n * along_w);
      });
}

}  // namespace ganymede::kernel::cuda

#pragma once
// Batch norm and pixel norm on a GPU. Arguments as in TensorOps.

#include "kernel/ops/cuda/column_moments.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

template <class E, class Device>
void batch_norm_leaky_forward(Timeline<Device>& timeline, Tensor y, Tensor x, const BatchNormParameters& p) {
  const E* in = elements_of<E>(x);
  const float many = static_cast<float>(x.batch);
  E* out = elements_of<E>(y);
  const std::size_t width = size_of(x.features);
  timeline.template columns<2>(
      x.batch, x.features, AroundFirstRow<E>{in, width},
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        const float around = sums.of[0] / many, mean = in[c] + around;
        const float variance = fmaxf(0.0F, sums.of[1] / many - around * around);
        p.mean[c] = mean;
        p.inverse_deviation[c] = 1.0F / sqrtf(variance + p.epsilon);
        p.running_mean[c] += p.momentum * (mean - p.running_mean[c]);
        p.running_variance[c] += p.momentum * (variance * many / (many - 1) - p.running_variance[c]);
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
        out[row * width + c] = leaky(in[row * width + c] * factor + offset, p.slope);
      });
}

template <class E, class Device>
void batch_norm_leaky_inference(Timeline<Device>& timeline, Tensor y, Tensor x, const BatchNormParameters& p) {
  const E* in = elements_of<E>(x);
  const Divisor width(size_of(x.features));
  each_element(
      timeline, x.size(),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v, E from) {
        const std::size_t c = i % width;
        const float factor = p.scale[c] / sqrtf(p.running_variance[c] + p.epsilon);
        v = leaky(from * factor + (p.shift[c] - p.running_mean[c] * factor), p.slope);
      },
      Written<E>{elements_of<E>(y)}, in);
}

/// What the backward pass of batch norm and leaky ReLU needs of one value.
struct NormGradient {
  float factor;  ///< by which the value is multiplied
  float n;       ///< the value without mean and deviation
  float dz;      ///< the gradient before the leaky ReLU
};

GANYMEDE_DEVICE inline NormGradient norm_gradient(const BatchNormParameters& p, std::size_t c, float value, float dy) {
  const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
  return {factor, (value - p.mean[c]) * p.inverse_deviation[c], dy * leaky_slope(value * factor + offset, p.slope)};
}

template <class E, class Device>
void batch_norm_leaky_backward(Timeline<Device>& timeline, Tensor dy, Tensor x, const BatchNormParameters& p,
                               float* d_scale, float* d_shift, bool accumulate) {
  const E* in = elements_of<E>(x);
  const float many = static_cast<float>(x.batch);
  E* g = elements_of<E>(dy);
  float* sums_of = timeline.scratch(2 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  timeline.template columns<2>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const NormGradient of = norm_gradient(p, c, in[row * width + c], g[row * width + c]);
        return Sums<2>{{of.dz, of.dz * of.n}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        sums_of[2 * c] = sums.of[0];
        sums_of[2 * c + 1] = sums.of[1];
        if (d_shift == nullptr) return;
        d_shift[c] = (accumulate ? d_shift[c] : 0.0F) + sums.of[0];
        d_scale[c] = (accumulate ? d_scale[c] : 0.0F) + sums.of[1];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const NormGradient of = norm_gradient(p, c, in[row * width + c], g[row * width + c]);
        g[row * width + c] = of.factor * (of.dz - sums_of[2 * c] / many - of.n * sums_of[2 * c + 1] / many);
      });
}

// For the formulas see kernel/ops/eigen/batch_norm_tangent.inl.
template <class E, class Device>
void batch_norm_leaky_tangent(Timeline<Device>& timeline, Tensor y_dot, Tensor x_dot, Tensor x,
                              const BatchNormParameters& p) {
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot);
  const float many = static_cast<float>(x.batch);
  E* out = elements_of<E>(y_dot);
  float* means = timeline.scratch(2 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  timeline.template columns<2>(
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

template <class E, class Device>
void batch_norm_leaky_tangent_backward(Timeline<Device>& timeline, Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                       const BatchNormParameters& p, float* d_scale, float* d_shift, bool accumulate) {
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot), *by_value = elements_of<E>(dy.value),
          *by_tangent = elements_of<E>(dy.tangent);
  const float many = static_cast<float>(x.batch);
  E *to_value = elements_of<E>(dx.value), *to_tangent = elements_of<E>(dx.tangent);
  float* kept = timeline.scratch(7 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  timeline.template columns<7>(
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

template <class E, class Device>
void pixel_norm_forward(Timeline<Device>& timeline, Tensor x, float* factors, int channels) {
  E* v = elements_of<E>(x);
  const std::size_t width = size_of(channels);
  const float many = static_cast<float>(channels);
  timeline.template rows<1>(
      x.features / channels * x.batch, channels,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        return Sums<1>{{v[row * width + c] * v[row * width + c]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c, const Sums<1>& sums) {
        const float factor = 1.0F / sqrtf(sums.of[0] / many + kPixelNormEpsilon);
        v[row * width + c] *= factor;
        if (c == 0) factors[row] = factor;
      });
}

template <class E, class Device>
void pixel_norm_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, const float* factors, int channels) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const float many = static_cast<float>(channels);
  const std::size_t width = size_of(channels);
  timeline.template rows<1>(
      y.features / channels * y.batch, channels,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        return Sums<1>{{g[row * width + c] * out[row * width + c]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c, const Sums<1>& sums) {
        const std::size_t i = row * width + c;
        g[i] = (g[i] - out[i] * (sums.of[0] / many)) * factors[row];
      });
}

}  // namespace ganymede::kernel::cuda

#pragma once
// Normalisations on a GPU: over the batch, over the channels of a pixel, and the deviation over the minibatch.

#include "kernel/ops/cuda/cuda_base.hpp"

namespace ganymede::kernel::cuda {

/// Sums for mean and variance of columns around the first row's values: one pass, and no cancellation where the mean is
/// large.
struct AroundFirstRow {
  const float* in;
  std::size_t width;

  GANYMEDE_DEVICE Sums<2> operator()(std::size_t row, std::size_t c) const {
    const float d = in[row * width + c] - in[c];
    return {{d, d * d}};
  }
};

template <class Machine>
class CudaNorms : public CudaBase<Machine> {
 public:
  using Base = CudaBase<Machine>;
  using Base::Base;
  using Base::each;
  using Base::mean_into;
  using Base::scratch;

  void do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& p) override {
    const float *in = x.data, many = static_cast<float>(x.batch);
    float* out = y.data;
    const std::size_t width = size_of(x.features);
    this->template columns<2>(
        x.batch, x.features, AroundFirstRow{in, width},
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
  void do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& p) override {
    const float* in = x.data;
    float* out = y.data;
    const std::size_t width = size_of(x.features);
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::size_t c = i % width;
      const float factor = p.scale[c] / sqrtf(p.running_variance[c] + p.epsilon);
      out[i] = leaky(in[i] * factor + (p.shift[c] - p.running_mean[c] * factor), p.slope);
    });
  }
  void do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale, float* d_shift,
                                    bool accumulate) override {
    const float *in = x.data, many = static_cast<float>(x.batch);
    float *g = dy.data, *sums_of = scratch(2 * size_of(x.features));
    const std::size_t width = size_of(x.features);
    this->template columns<2>(
        x.batch, x.features,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
          const float value = in[row * width + c];
          const float dz = g[row * width + c] * leaky_slope(value * factor + offset, p.slope);
          return Sums<2>{{dz, dz * (value - p.mean[c]) * p.inverse_deviation[c]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
          sums_of[2 * c] = sums.of[0];
          sums_of[2 * c + 1] = sums.of[1];
          if (d_shift == nullptr) return;
          d_shift[c] = (accumulate ? d_shift[c] : 0.0F) + sums.of[0];
          d_scale[c] = (accumulate ? d_scale[c] : 0.0F) + sums.of[1];
        },
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
          const float value = in[row * width + c], n = (value - p.mean[c]) * p.inverse_deviation[c];
          const float dz = g[row * width + c] * leaky_slope(value * factor + offset, p.slope);
          g[row * width + c] = factor * (dz - sums_of[2 * c] / many - n * sums_of[2 * c + 1] / many);
        });
  }
  // The formulas stand in batch_norm_tangent.inl.
  void do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& p) override {
    const float *in = x.data, *dot = x_dot.data, many = static_cast<float>(x.batch);
    float *out = y_dot.data, *means = scratch(2 * size_of(x.features));
    const std::size_t width = size_of(x.features);
    this->template columns<2>(
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
  void do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                            const BatchNormParameters& p, float* d_scale, float* d_shift,
                                            bool accumulate) override {
    const float *in = x.data, *dot = x_dot.data, *by_value = dy.value.data, *by_tangent = dy.tangent.data;
    const float many = static_cast<float>(x.batch);
    float *to_value = dx.value.data, *to_tangent = dx.tangent.data, *kept = scratch(7 * size_of(x.features));
    const std::size_t width = size_of(x.features);
    this->template columns<7>(
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

  void do_pixel_norm_forward(Tensor x, Tensor scale, int channels) override {
    float *v = x.data, *factors = scale.data;
    const std::size_t width = size_of(channels);
    const float many = static_cast<float>(channels);
    this->template rows<1>(
        static_cast<int>(scale.size()), channels,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          return Sums<1>{{v[row * width + c] * v[row * width + c]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c, const Sums<1>& sums) {
          const float factor = 1.0F / sqrtf(sums.of[0] / many + kPixelNormEpsilon);
          v[row * width + c] *= factor;
          if (c == 0) factors[row] = factor;
        });
  }
  void do_pixel_norm_backward(Tensor dy, Tensor y, Tensor scale, int channels) override {
    float* g = dy.data;
    const float *out = y.data, *factors = scale.data, many = static_cast<float>(channels);
    const std::size_t width = size_of(channels);
    this->template rows<1>(
        static_cast<int>(scale.size()), channels,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          return Sums<1>{{g[row * width + c] * out[row * width + c]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c, const Sums<1>& sums) {
          const std::size_t i = row * width + c;
          g[i] = (g[i] - out[i] * (sums.of[0] / many)) * factors[row];
        });
  }

  void do_append_deviation_forward(Tensor y, Tensor x, int positions) override {
    const float* value = mean_deviation(x);
    append(y, x, positions, value);
  }
  void do_append_deviation_backward(Tensor dx, Tensor dy, Tensor x, int positions) override {
    const Feature f = feature_moments(x);
    const float* d_mean = sum_appended(dy, positions, f.free);
    const float *in = x.data, *from = dy.data, all = static_cast<float>(x.size());
    float* to = dx.data;
    const std::size_t width = size_of(x.features), channels = size_of(x.features / positions);
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::size_t feature = i % width;
      to[i] = from[i / channels * (channels + 1) + i % channels] +
              *d_mean / (all * f.deviation[feature]) * (in[i] - f.mean[feature]);
    });
  }
  void do_append_deviation_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) override {
    const Feature f = feature_moments(x);
    const float *in = x.data, *dot = x_dot.data, many = static_cast<float>(x.batch);
    float* along = f.free;
    const std::size_t width = size_of(x.features);
    this->template columns<1>(
        x.batch, x.features,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          return Sums<1>{{(in[row * width + c] - f.mean[c]) * dot[row * width + c]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) { along[c] = sums.of[0] / (f.deviation[c] * many); },
        Nothing{});
    append(y_dot, x_dot, positions, mean_of(along, x.features));
  }
  // The formulas stand in cpu_growing.cpp.
  void do_append_deviation_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) override {
    const Feature f = feature_moments(x);
    const std::size_t width = size_of(x.features), channels = size_of(x.features / positions);
    const float *in = x.data, *dot = x_dot.data, many = static_cast<float>(x.batch);
    const float all = static_cast<float>(x.size());
    float *mean_dot = f.free, *along = f.free + width, *next = f.free + 2 * width;
    this->template columns<2>(
        x.batch, x.features,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          const float d = dot[row * width + c];
          return Sums<2>{{d, d * (in[row * width + c] - f.mean[c]) / f.deviation[c]}};
        },
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
          mean_dot[c] = sums.of[0] / many;
          along[c] = sums.of[1] / many;
        },
        Nothing{});
    const float* of_value = dy.value.data == nullptr ? nullptr : sum_appended(dy.value, positions, next++);
    const float* of_tangent = sum_appended(dy.tangent, positions, next++);
    const float *by_value = dy.value.data, *by_tangent = dy.tangent.data;
    float *to_value = dx.value.data, *to_tangent = dx.tangent.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::size_t c = i % width, from = i / channels * (channels + 1) + i % channels;
      const float n = (in[i] - f.mean[c]) / f.deviation[c];
      const float bent = (dot[i] - mean_dot[c] - n * along[c]) / f.deviation[c];
      const float passed = of_value == nullptr ? 0.0F : by_value[from] + *of_value / all * n;
      to_value[i] = passed + *of_tangent / all * bent;
      to_tangent[i] = by_tangent[from] + *of_tangent / all * n;
    });
  }

  /// Moments of the features over the batch, in scratch memory, and the rest of that.
  struct Feature {
    float *mean, *deviation, *free;
  };
  Feature feature_moments(Tensor x) {
    const std::size_t width = size_of(x.features);
    float* memory = scratch(5 * width + 8);
    const Feature f{memory, memory + width, memory + 2 * width};
    const float *in = x.data, many = static_cast<float>(x.batch);
    this->template columns<2>(
        x.batch, x.features, AroundFirstRow{in, width},
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
          const float around = sums.of[0] / many, variance = fmaxf(0.0F, sums.of[1] / many - around * around);
          f.mean[c] = in[c] + around;
          f.deviation[c] = sqrtf(variance + kDeviationEpsilon);
        },
        Nothing{});
    return f;
  }
  const float* mean_of(float* values, int count) {
    float* mean = values + count;
    mean_into(mean, values, count);
    return mean;
  }
  const float* mean_deviation(Tensor x) { return mean_of(feature_moments(x).deviation, x.features); }

  /// y = x with one more channel, which is *value everywhere.
  void append(Tensor y, Tensor x, int positions, const float* value) {
    const float* from = x.data;
    float* to = y.data;
    const std::size_t channels = size_of(x.features / positions);
    each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::size_t c = i % (channels + 1);
      to[i] = c == channels ? *value : from[i / (channels + 1) * channels + c];
    });
  }
  /// Of an output with one channel appended, the sum of that channel.
  const float* sum_appended(Tensor dy, int positions, float* to) {
    const float* from = dy.data;
    const std::size_t width = size_of(dy.features / positions);
    this->template rows<1>(
        1, positions * dy.batch,
        [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) { return Sums<1>{{from[(i + 1) * width - 1]}}; },
        [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
          if (i == 0) *to = sums.of[0];
        });
    return to;
  }
};

}  // namespace ganymede::kernel::cuda

#pragma once
// The minibatch standard deviation on a GPU.

#include "kernel/ops/cuda/column_moments.hpp"
#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

/// Mean and standard deviation of each feature over the batch, in scratch memory.
struct FeatureMoments {
  float *mean, *deviation;
  float* free;  ///< the rest of the scratch memory: 3 features + 8 floats
};

template <class E, class Device>
FeatureMoments feature_moments(Timeline<Device>& timeline, Tensor x) {
  const std::size_t width = size_of(x.features);
  float* memory = timeline.scratch(5 * width + 8);
  const FeatureMoments f{memory, memory + width, memory + 2 * width};
  const E* in = elements_of<E>(x);
  const float many = static_cast<float>(x.batch);
  timeline.template columns<2>(
      x.batch, x.features, AroundFirstRow<E>{in, width},
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        const float around = sums.of[0] / many, variance = fmaxf(0.0F, sums.of[1] / many - around * around);
        f.mean[c] = in[c] + around;
        f.deviation[c] = sqrtf(variance + kStddevEpsilon);
      },
      NoApply{});
  return f;
}

/// The mean of `count` values, written to the place behind them.
template <class Device>
const float* mean_of(Timeline<Device>& timeline, float* values, int count) {
  float* mean = values + count;
  mean_into(timeline, mean, values, count);
  return mean;
}

/// y = x with one more channel that is *value everywhere.
template <class E, class Device>
void append_channel(Timeline<Device>& timeline, Tensor y, Tensor x, int positions, const float* value) {
  const E* from = elements_of<E>(x);
  E* to = elements_of<E>(y);
  const std::size_t channels = size_of(x.features / positions);
  const Divisor widened(channels + 1);
  timeline.each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t c = i % widened;
    to[i] = c == channels ? *value : from[i / widened * channels + c];
  });
}

/// *to = the sum of the last channel of dy, which is the appended one. Returns `to`.
template <class E, class Device>
const float* sum_appended_channel(Timeline<Device>& timeline, Tensor dy, int positions, float* to) {
  const E* from = elements_of<E>(dy);
  const std::size_t width = size_of(dy.features / positions);
  timeline.template rows<1>(
      1, positions * dy.batch,
      [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) { return Sums<1>{{from[(i + 1) * width - 1]}}; },
      [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
        if (i == 0) *to = sums.of[0];
      });
  return to;
}

template <class Device, class E>
void CudaOps<Device, E>::do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) {
  const float* stddev = mean_of(t_, feature_moments<E>(t_, x).deviation, x.features);
  append_channel<E>(t_, y, x, positions, stddev);
}

template <class Device, class E>
void CudaOps<Device, E>::do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) {
  const FeatureMoments f = feature_moments<E>(t_, x);
  const float* d_mean = sum_appended_channel<E>(t_, dy, positions, f.free);
  const E *in = elements_of<E>(x), *from = elements_of<E>(dy);
  const float all = static_cast<float>(x.size());
  E* to = elements_of<E>(dx);
  const Divisor width(size_of(x.features)), channels(size_of(x.features / positions));
  t_.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t feature = i % width;
    to[i] = from[i / channels * (channels + 1) + i % channels] +
            *d_mean / (all * f.deviation[feature]) * (in[i] - f.mean[feature]);
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) {
  const FeatureMoments f = feature_moments<E>(t_, x);
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot);
  const float many = static_cast<float>(x.batch);
  float* along = f.free;
  const std::size_t width = size_of(x.features);
  t_.template columns<1>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        return Sums<1>{{(in[row * width + c] - f.mean[c]) * dot[row * width + c]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) { along[c] = sums.of[0] / (f.deviation[c] * many); },
      NoApply{});
  append_channel<E>(t_, y_dot, x_dot, positions, mean_of(t_, along, x.features));
}

// For the formulas see cpu_ops.cpp.
template <class Device, class E>
void CudaOps<Device, E>::do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                              int positions) {
  const FeatureMoments f = feature_moments<E>(t_, x);
  const Divisor width(size_of(x.features)), channels(size_of(x.features / positions));
  const E *in = elements_of<E>(x), *dot = elements_of<E>(x_dot);
  const float many = static_cast<float>(x.batch);
  const float all = static_cast<float>(x.size());
  float *mean_dot = f.free, *along = f.free + width, *next = f.free + 2 * width;
  t_.template columns<2>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const float d = dot[row * width + c];
        return Sums<2>{{d, d * (in[row * width + c] - f.mean[c]) / f.deviation[c]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
        mean_dot[c] = sums.of[0] / many;
        along[c] = sums.of[1] / many;
      },
      NoApply{});
  const float* of_value = dy.value.data == nullptr ? nullptr : sum_appended_channel<E>(t_, dy.value, positions, next++);
  const float* of_tangent = sum_appended_channel<E>(t_, dy.tangent, positions, next++);
  const E *by_value = elements_of<E>(dy.value), *by_tangent = elements_of<E>(dy.tangent);
  E *to_value = elements_of<E>(dx.value), *to_tangent = elements_of<E>(dx.tangent);
  t_.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t c = i % width, from = i / channels * (channels + 1) + i % channels;
    const float n = (in[i] - f.mean[c]) / f.deviation[c];
    const float bent = (dot[i] - mean_dot[c] - n * along[c]) / f.deviation[c];
    const float passed = of_value == nullptr ? 0.0F : by_value[from] + *of_value / all * n;
    to_value[i] = passed + *of_tangent / all * bent;
    to_tangent[i] = by_tangent[from] + *of_tangent / all * n;
  });
}

}  // namespace ganymede::kernel::cuda

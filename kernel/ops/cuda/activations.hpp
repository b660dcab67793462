#pragma once
// Activations on a GPU, with the bias before them and their gradients.

#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_activate(Tensor x, Activation activation) {
  each_element(
      t_, x.size(), [=] GANYMEDE_DEVICE(std::size_t, E & v) { v = activated(v, activation); }, elements_of<E>(x));
}

template <class Device, class E>
void CudaOps<Device, E>::do_activate_backward(Tensor dy, Tensor y, Activation activation) {
  const E* out = elements_of<E>(y);
  each_element(
      t_, dy.size(), [=] GANYMEDE_DEVICE(std::size_t, E & g, E v) { g *= activation_slope(v, activation); },
      elements_of<E>(dy), out);
}

/// The derivative of leaky_dropout_forward.
template <class E>
struct LeakyDropoutSlope {
  const E* out;  ///< its results
  const std::uint8_t* kept;
  float inverse_keep, slope;

  GANYMEDE_DEVICE float of(float y, std::uint8_t keeps) const {
    return (static_cast<float>(keeps) * inverse_keep) * leaky_slope(y, slope);
  }
  /// At element i.
  GANYMEDE_DEVICE float operator()(std::size_t i) const { return of(out[i], kept[i]); }
};

template <class Device, class E>
void CudaOps<Device, E>::do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p,
                                                   float* d_bias, bool accumulate) {
  E* g = elements_of<E>(dy);
  const LeakyDropoutSlope<E> slope_of{elements_of<E>(y), mask.data, 1.0F / p.keep, p.slope};
  if (d_bias == nullptr)
    return each_element(
        t_, dy.size(), [=] GANYMEDE_DEVICE(std::size_t, E & d, E v, std::uint8_t keeps) { d *= slope_of.of(v, keeps); },
        g, slope_of.out, slope_of.kept);
  const std::size_t width = size_of(dy.features);
  t_.template columns<1>(
      dy.batch, dy.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        return Sums<1>{{g[i] * slope_of(i)}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) {
        d_bias[c] = (accumulate ? d_bias[c] : 0.0F) + sums.of[0];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        g[i] *= slope_of(i);
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters p,
                                           const float* weight, const LogitGradients& d, bool accumulate) {
  const LogitGradients to = d;
  const E *in = elements_of<E>(x), *g = elements_of<E>(dy);
  const LeakyDropoutSlope<E> slope_of{in, mask.data, 1.0F / p.keep, p.slope};
  E* out = elements_of<E>(dx);
  const Divisor width(size_of(x.features));
  if (d.weight == nullptr)
    return each_element(
        t_, dx.size(),
        [=] GANYMEDE_DEVICE(std::size_t i, E & to_x, E v, std::uint8_t keeps) {
          to_x = g[i / width] * weight[i % width] * slope_of.of(v, keeps);
        },
        Written<E>{out}, in, slope_of.kept);
  t_.template columns<3>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        return Sums<3>{{g[row] * in[i], g[row] * weight[c] * slope_of(i), g[row]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<3>& sums) {
        to.weight[c] = (accumulate ? to.weight[c] : 0.0F) + sums.of[0];
        if (to.input_bias != nullptr) to.input_bias[c] = (accumulate ? to.input_bias[c] : 0.0F) + sums.of[1];
        if (c == 0) *to.bias = (accumulate ? *to.bias : 0.0F) + sums.of[2];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        out[i] = g[row] * weight[c] * slope_of(i);
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) {
  const Divisor width(size_of(channels));
  each_element(
      t_, x.size(), [=] GANYMEDE_DEVICE(std::size_t i, E & v) { v = leaky(v * factor + bias[i % width], slope); },
      elements_of<E>(x));
}

template <class Device, class E>
void CudaOps<Device, E>::do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor,
                                                float slope, bool accumulate) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const std::size_t width = size_of(channels);
  if (d_bias == nullptr)
    return each_element(
        t_, dy.size(), [=] GANYMEDE_DEVICE(std::size_t, E & d, E v) { d *= factor * leaky_slope(v, slope); }, g, out);
  t_.template columns<1>(
      static_cast<int>(dy.size() / width), channels,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        return Sums<1>{{g[row * width + c] * leaky_slope(out[row * width + c], slope)}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) {
        d_bias[c] = (accumulate ? d_bias[c] : 0.0F) + sums.of[0];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        g[row * width + c] *= factor * leaky_slope(out[row * width + c], slope);
      });
}

}  // namespace ganymede::kernel::cuda

#pragma once
// Operations of modulated convolutions on a GPU.

#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) {
  const E *from = elements_of<E>(x), *by = elements_of<E>(factors);
  E* to = elements_of<E>(y);
  const Divisor channels(size_of(factors.features)), image(size_of(x.features));
  t_.each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const float scaled = from[i] * by[i / image * channels + i % channels];
    to[i] = accumulate ? to[i] + scaled : scaled;
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) {
  const E *a = elements_of<E>(x), *b = elements_of<E>(y);
  E* to = elements_of<E>(products);
  const Divisor channels(size_of(products.features));
  const std::size_t image = size_of(x.features);
  t_.template rows<1>(
      products.features * products.batch, x.features / products.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t position) {
        const std::size_t at = row / channels * image + position * channels + row % channels;
        return Sums<1>{{a[at] * b[at]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t position, const Sums<1>& sums) {
        if (position == 0) to[row] = accumulate ? to[row] + sums.of[0] : sums.of[0];
      });
}

/// A convolution's weights squared and summed over its taps, [outputs x inputs], in scratch memory.
template <class Device>
float* squared_weights(Timeline<Device>& timeline, const DemodulationParameters& p, int inputs, int outputs,
                       std::size_t more) {
  const std::size_t count = size_of(inputs) * size_of(outputs), taps = size_of(p.taps);
  float* to = timeline.scratch(count + more);
  const Divisor width(size_of(inputs));
  const float* weight = p.weight;
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t at) {
    const float* from = weight + at / width * taps * width + at % width;
    float sum = 0;
    for (std::size_t k = 0; k < taps; ++k) sum += from[k * width] * from[k * width];
    to[at] = sum;
  });
  return to;
}

template <class Device, class E>
void CudaOps<Device, E>::do_demodulate(Tensor factors, Tensor styles, DemodulationParameters p) {
  const float* q = squared_weights(t_, p, styles.features, factors.features, 0);
  const E* s = elements_of<E>(styles);
  E* to = elements_of<E>(factors);
  const std::size_t inputs = size_of(styles.features);
  const Divisor outputs(size_of(factors.features));
  t_.template rows<1>(
      factors.features * factors.batch, styles.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        const float style = s[row / outputs * inputs + i];
        return Sums<1>{{q[row % outputs * inputs + i] * style * style}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        if (i == 0) to[row] = 1 / sqrtf(sums.of[0] + p.epsilon);
      });
}

// For the formulas of the following two see cpu_modulation.cpp.
template <class Device, class E>
void CudaOps<Device, E>::do_demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                                               DemodulationParameters p) {
  const float* q = squared_weights(t_, p, styles.features, factors.features, 0);
  const E *s = elements_of<E>(styles), *s_dot = elements_of<E>(styles_dot), *f = elements_of<E>(factors);
  E* to = elements_of<E>(factors_dot);
  const std::size_t inputs = size_of(styles.features);
  const Divisor outputs(size_of(factors.features));
  t_.template rows<1>(
      factors.features * factors.batch, styles.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i) {
        const std::size_t at = row / outputs * inputs + i;
        return Sums<1>{{q[row % outputs * inputs + i] * s[at] * s_dot[at]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t i, const Sums<1>& sums) {
        if (i == 0) to[row] = -f[row] * f[row] * f[row] * sums.of[0];
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors,
                                                Adjoints factors, Adjoints styles, DemodulationParameters p) {
  const std::size_t count = factors.value.size(), outputs = size_of(factors.value.features), taps = size_of(p.taps);
  float* q = squared_weights(t_, p, styles.value.features, factors.value.features, 2 * count);
  const Divisor inputs(size_of(styles.value.features));
  float *of_r = q + inputs * outputs, *of_r_dot = of_r + count;
  const E *f = elements_of<E>(factors.value), *f_dot = elements_of<E>(factors.tangent);
  const E *s = elements_of<E>(styles.value), *s_dot = elements_of<E>(styles.tangent);
  const E *g = elements_of<E>(d_factors.value), *h = elements_of<E>(d_factors.tangent);
  t_.each(count, [=] GANYMEDE_DEVICE(std::size_t at) {
    const float cube = -f[at] * f[at] * f[at] / 2;
    const float also = h == nullptr ? 0.0F : 3 * h[at] * f_dot[at] / f[at];
    of_r[at] = cube * (g[at] + also);
    of_r_dot[at] = h == nullptr ? 0.0F : cube * h[at];
  });
  E *ds = elements_of<E>(d_styles.value), *ds_dot = elements_of<E>(d_styles.tangent);
  t_.each(styles.value.size(), [=] GANYMEDE_DEVICE(std::size_t at) {
    const std::size_t row = at / inputs * outputs, i = at % inputs;
    float by_r = 0, by_r_dot = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
      by_r += q[o * inputs + i] * of_r[row + o];
      by_r_dot += q[o * inputs + i] * of_r_dot[row + o];
    }
    ds[at] = ds[at] + 2 * by_r * s[at] + (h == nullptr ? 0.0F : 2 * by_r_dot * s_dot[at]);
    if (h != nullptr) ds_dot[at] = ds_dot[at] + 2 * by_r_dot * s[at];
  });
  if (d_weight == nullptr) return;
  const float* weight = p.weight;
  const std::size_t batch = size_of(styles.value.batch);
  t_.each(inputs * outputs, [=] GANYMEDE_DEVICE(std::size_t at) {
    const std::size_t o = at / inputs, i = at % inputs;
    float d_q = 0;
    for (std::size_t b = 0; b < batch; ++b) {
      const float style = s[b * inputs + i];
      d_q += of_r[b * outputs + o] * style * style;
      if (h != nullptr) d_q += 2 * of_r_dot[b * outputs + o] * style * s_dot[b * inputs + i];
    }
    for (std::size_t k = 0; k < taps; ++k) {
      const std::size_t w = (o * taps + k) * inputs + i;
      d_weight[w] += 2 * weight[w] * d_q;
    }
  });
}

}  // namespace ganymede::kernel::cuda

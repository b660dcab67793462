// Operations of modulated convolutions on the CPU.

#include <cmath>

#include "kernel/ops/eigen/cpu_ops.hpp"

namespace ganymede::kernel {
namespace {

/// Sum of the squares of `taps` weights.
double squares(const float* weight, int taps) {
  double sum = 0;
  for (int k = 0; k < taps; ++k) sum += double{weight[k]} * double{weight[k]};
  return sum;
}

}  // namespace

void CpuOps::do_scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) {
  const int positions = x.features / factors.features, batch = x.batch;
  const std::ptrdiff_t length = std::ptrdiff_t{positions} * batch;
  over(factors.features, static_cast<double>(length), [&](int begin, int end) {
    for (int c = begin; c < end; ++c) {
      const float *by = factors.floats() + std::ptrdiff_t{c} * batch, *from = x.floats() + c * length;
      float* to = y.floats() + c * length;
      for (int p = 0; p < positions; ++p, from += batch, to += batch)
        for (int b = 0; b < batch; ++b) to[b] = from[b] * by[b] + (accumulate ? to[b] : 0.0F);
    }
  });
}

void CpuOps::do_channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) {
  const int positions = x.features / products.features, batch = x.batch;
  const std::ptrdiff_t length = std::ptrdiff_t{positions} * batch;
  over(products.features, static_cast<double>(length), [&](int begin, int end) {
    for (int c = begin; c < end; ++c) {
      float* to = products.floats() + std::ptrdiff_t{c} * batch;
      const float *a = x.floats() + c * length, *b = y.floats() + c * length;
      for (int i = 0; !accumulate && i < batch; ++i) to[i] = 0;
      for (int p = 0; p < positions; ++p, a += batch, b += batch)
        for (int i = 0; i < batch; ++i) to[i] += a[i] * b[i];
    }
  });
}

void CpuOps::do_demodulate(Tensor factors, Tensor styles, DemodulationParameters p) {
  const int inputs = styles.features, batch = styles.batch;
  over(factors.features, double{1} * inputs * (batch + p.taps), [&](int begin, int end) {
    for (int o = begin; o < end; ++o) {
      float* to = factors.floats() + std::ptrdiff_t{o} * batch;
      for (int b = 0; b < batch; ++b) to[b] = p.epsilon;
      for (int i = 0; i < inputs; ++i) {
        const auto q = static_cast<float>(squares(p.weight + (std::ptrdiff_t{o} * inputs + i) * p.taps, p.taps));
        const float* s = styles.floats() + std::ptrdiff_t{i} * batch;
        for (int b = 0; b < batch; ++b) to[b] += q * s[b] * s[b];
      }
      for (int b = 0; b < batch; ++b) to[b] = 1 / std::sqrt(to[b]);
    }
  });
}

// With r = sum of q s^2 + epsilon a factor is f = r^-1/2, its tangent -1/2 f^3 r_dot, where r_dot = sum of 2 q s s_dot.
void CpuOps::do_demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                                   DemodulationParameters p) {
  const int inputs = styles.features, batch = styles.batch;
  over(factors.features, double{1} * inputs * (batch + p.taps), [&](int begin, int end) {
    for (int o = begin; o < end; ++o) {
      float* to = factors_dot.floats() + std::ptrdiff_t{o} * batch;
      const float* f = factors.floats() + std::ptrdiff_t{o} * batch;
      for (int b = 0; b < batch; ++b) to[b] = 0;
      for (int i = 0; i < inputs; ++i) {
        const auto q = static_cast<float>(squares(p.weight + (std::ptrdiff_t{o} * inputs + i) * p.taps, p.taps));
        const float *s = styles.floats() + std::ptrdiff_t{i} * batch,
                    *s_dot = styles_dot.floats() + std::ptrdiff_t{i} * batch;
        for (int b = 0; b < batch; ++b) to[b] += q * s[b] * s_dot[b];
      }
      for (int b = 0; b < batch; ++b) to[b] *= -f[b] * f[b] * f[b];
    }
  });
}

// Let g and h be the adjoints of f and f_dot. Those of r and r_dot are a = -1/2 f^3 (g + 3 h f_dot / f) and
// b = -1/2 f^3 h. They pass on 2 q (a s + b s_dot) to s, 2 q b s to s_dot, and a s^2 + 2 b s s_dot to q.
void CpuOps::do_demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors,
                                    Adjoints styles, DemodulationParameters p) {
  const int inputs = styles.value.features, outputs = factors.value.features, batch = styles.value.batch;
  float *g = d_factors.value.floats(), *h = d_factors.tangent.floats();
  for (std::size_t at = 0; at < factors.value.size(); ++at) {
    const float f = factors.value.floats()[at];
    if (h != nullptr) g[at] += 3 * h[at] * factors.tangent.floats()[at] / f;
    g[at] *= -f * f * f / 2;
    if (h != nullptr) h[at] *= -f * f * f / 2;
  }
  over(inputs, double{1} * outputs * (batch + 2 * p.taps), [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const std::ptrdiff_t row = std::ptrdiff_t{i} * batch;
      const float *s = styles.value.floats() + row, *s_dot = h == nullptr ? nullptr : styles.tangent.floats() + row;
      float *ds = d_styles.value.floats() + row, *ds_dot = h == nullptr ? nullptr : d_styles.tangent.floats() + row;
      for (int o = 0; o < outputs; ++o) {
        const std::ptrdiff_t weights = (std::ptrdiff_t{o} * inputs + i) * p.taps;
        const auto q = static_cast<float>(squares(p.weight + weights, p.taps));
        const float *of_r = g + std::ptrdiff_t{o} * batch,
                    *of_r_dot = h + (h == nullptr ? 0 : std::ptrdiff_t{o} * batch);
        float d_q = 0;
        for (int b = 0; b < batch; ++b) {
          ds[b] += 2 * q * of_r[b] * s[b];
          d_q += of_r[b] * s[b] * s[b];
        }
        for (int b = 0; h != nullptr && b < batch; ++b) {
          ds[b] += 2 * q * of_r_dot[b] * s_dot[b];
          ds_dot[b] += 2 * q * of_r_dot[b] * s[b];
          d_q += 2 * of_r_dot[b] * s[b] * s_dot[b];
        }
        for (int k = 0; d_weight != nullptr && k < p.taps; ++k)
          d_weight[weights + k] += 2 * p.weight[weights + k] * d_q;
      }
    }
  });
}

}  // namespace ganymede::kernel

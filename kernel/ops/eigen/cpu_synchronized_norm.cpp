#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/ops/eigen/cpu_ops.hpp"

namespace ganymede::kernel {

template <class Function>
void CpuSynchronizedNorm::over(int features, const Function& function) const {
  constexpr int kChunk = 8;
  pool_.run((features + kChunk - 1) / kChunk, [&](int chunk, int) {
    for (int f = chunk * kChunk; f < std::min(features, (chunk + 1) * kChunk); ++f) function(f);
  });
}

void CpuSynchronizedNorm::forward(Tensor y, Tensor x, const BatchNormParameters& p) const {
  const double all = double{1} * x.batch * communicator_.shard().ranks;
  std::vector<double> means(static_cast<std::size_t>(x.features)), variances(means.size());
  over(x.features, [&](int f) {
    const float* row = x.floats() + std::ptrdiff_t{f} * x.batch;
    double sum = 0;
    for (int i = 0; i < x.batch; ++i) sum += double{row[i]};
    means[static_cast<std::size_t>(f)] = sum / all;
  });
  communicator_.sum(means);
  over(x.features, [&](int f) {
    const float* row = x.floats() + std::ptrdiff_t{f} * x.batch;
    const double mean = means[static_cast<std::size_t>(f)];
    double squares = 0;
    for (int i = 0; i < x.batch; ++i) squares += (double{row[i]} - mean) * (double{row[i]} - mean);
    variances[static_cast<std::size_t>(f)] = squares / all;
  });
  communicator_.sum(variances);
  over(x.features, [&](int f) {
    const auto mean = static_cast<float>(means[static_cast<std::size_t>(f)]);
    const auto variance = static_cast<float>(variances[static_cast<std::size_t>(f)]);
    const float inverse = 1.0F / std::sqrt(variance + p.epsilon);
    p.mean[f] = mean;
    p.inverse_deviation[f] = inverse;
    p.running_mean[f] += p.momentum * (mean - p.running_mean[f]);
    const auto unbiased = static_cast<float>(all / (all - 1));
    p.running_variance[f] += p.momentum * (variance * unbiased - p.running_variance[f]);
    const float factor = p.scale[f] * inverse, offset = p.shift[f] - mean * factor;
    const float* from = x.floats() + std::ptrdiff_t{f} * x.batch;
    float* to = y.floats() + std::ptrdiff_t{f} * x.batch;
    for (int i = 0; i < x.batch; ++i) {
      const float z = from[i] * factor + offset;
      to[i] = z > 0 ? z : p.slope * z;
    }
  });
}

void CpuSynchronizedNorm::backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale, float* d_shift,
                                   bool accumulate) const {
  const auto features = static_cast<std::size_t>(x.features);
  std::vector<double> sums(2 * features);  // sums of dz, then of dz n
  over(x.features, [&](int f) {
    const float mean = p.mean[f], inverse = p.inverse_deviation[f];
    const float factor = p.scale[f] * inverse, offset = p.shift[f] - mean * factor;
    const float* in = x.floats() + std::ptrdiff_t{f} * x.batch;
    float* g = dy.floats() + std::ptrdiff_t{f} * x.batch;
    double sum = 0, dot = 0;
    for (int i = 0; i < x.batch; ++i) {
      g[i] *= in[i] * factor + offset > 0 ? 1.0F : p.slope;
      sum += double{g[i]};
      dot += double{g[i] * (in[i] - mean) * inverse};
    }
    const auto at = static_cast<std::size_t>(f);
    sums[at] = sum;
    sums[features + at] = dot;
    // These gradients are this process's own; like all gradients they are averaged later.
    if (d_shift != nullptr) {
      d_shift[f] = (accumulate ? d_shift[f] : 0.0F) + static_cast<float>(sum);
      d_scale[f] = (accumulate ? d_scale[f] : 0.0F) + static_cast<float>(dot);
    }
  });
  communicator_.sum(sums);
  const double all = double{1} * x.batch * communicator_.shard().ranks;
  over(x.features, [&](int f) {
    const auto at = static_cast<std::size_t>(f);
    const auto mean_dz = static_cast<float>(sums[at] / all), along = static_cast<float>(sums[features + at] / all);
    const float mean = p.mean[f], inverse = p.inverse_deviation[f], factor = p.scale[f] * inverse;
    const float* in = x.floats() + std::ptrdiff_t{f} * x.batch;
    float* g = dy.floats() + std::ptrdiff_t{f} * x.batch;
    for (int i = 0; i < x.batch; ++i) g[i] = factor * (g[i] - mean_dz - (in[i] - mean) * inverse * along);
  });
}

}  // namespace ganymede::kernel

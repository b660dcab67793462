#include "kernel/ops/eigen/cpu_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "kernel/loss_terms.hpp"

namespace ganymede::kernel {
namespace {

Blocks blocks_of(const BlockShape& shape, int batch) {
  return {shape.frames, shape.height, shape.width, batch, shape.block_frames, shape.block};
}

/// Mean and standard deviation of one feature over the batch.
struct Moments {
  double mean, deviation;
};

Moments moments_of(const float* row, int batch) {
  double sum = 0, squares = 0;
  for (int i = 0; i < batch; ++i) sum += double{row[i]};
  const double mean = sum / batch;
  for (int i = 0; i < batch; ++i) squares += (double{row[i]} - mean) * (double{row[i]} - mean);
  return {mean, std::sqrt(squares / batch + double{kStddevEpsilon})};
}

}  // namespace

void CpuOps::do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) {
  const int length = x.features / channels * x.batch;
  over(channels, length,
       [&](int begin, int end) { kernels_.bias_leaky_forward(x.floats(), bias, factor, slope, length, begin, end); });
}

void CpuOps::do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                                    bool accumulate) {
  const int length = y.features / channels * y.batch;
  over(channels, length, [&](int begin, int end) {
    kernels_.bias_leaky_backward(dy.floats(), y.floats(), d_bias, factor, slope, accumulate, length, begin, end);
  });
}

void CpuOps::do_instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) {
  const int positions = x.features / channels, batch = x.batch;
  float* const inverse_deviations = moments + std::ptrdiff_t{channels} * batch;
  over(channels, double{1} * positions * batch, [&](int begin, int end) {
    kernels_.instance_norm_forward(x.floats(), y.floats(), moments, inverse_deviations,
                                   {positions, batch, kInstanceNormEpsilon, slope}, begin, end);
  });
}

void CpuOps::do_instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels, float slope) {
  const int positions = x.features / channels, batch = x.batch;
  const float* const inverse_deviations = moments + std::ptrdiff_t{channels} * batch;
  over(channels, double{1} * positions * batch, [&](int begin, int end) {
    kernels_.instance_norm_backward(dy.floats(), x.floats(), moments, inverse_deviations,
                                    {positions, batch, kInstanceNormEpsilon, slope}, begin, end);
  });
}

void CpuOps::do_pixel_norm_forward(Tensor x, float* scale, int channels) {
  const int length = x.features / channels * x.batch;
  over(length, channels, [&](int begin, int end) {
    kernels_.pixel_norm_forward(x.floats(), scale, channels, kPixelNormEpsilon, length, begin, end);
  });
}

void CpuOps::do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) {
  const int length = y.features / channels * y.batch;
  over(length, channels, [&](int begin, int end) {
    kernels_.pixel_norm_backward(dy.floats(), y.floats(), scale, channels, length, begin, end);
  });
}

void CpuOps::do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) {
  const int width = shape.width / shape.block;
  over(shape.coarse_features() / width, double{1} * width * shape.elements() * fine.batch, [&](int begin, int end) {
    kernels_.pool(coarse.floats(), fine.floats(), blocks_of(shape, fine.batch), factor, begin, end);
  });
}

void CpuOps::do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) {
  const int width = shape.width / shape.block;
  over(shape.coarse_features() / width, double{1} * width * shape.elements() * fine.batch, [&](int begin, int end) {
    kernels_.upsample(fine.floats(), coarse.floats(), blocks_of(shape, fine.batch), factor, begin, end);
  });
}

void CpuOps::do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) {
  std::memcpy(y.floats(), x.floats(), x.size() * sizeof(float));
  double sum = 0;
  for (int f = 0; f < x.features; ++f) sum += moments_of(x.floats() + std::ptrdiff_t{f} * x.batch, x.batch).deviation;
  const std::size_t appended = static_cast<std::size_t>(positions) * static_cast<std::size_t>(x.batch);
  std::fill_n(y.floats() + x.size(), appended, static_cast<float>(sum / x.features));
}

void CpuOps::do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) {
  const std::size_t appended = static_cast<std::size_t>(positions) * static_cast<std::size_t>(x.batch);
  double d_mean = 0;  // gradient of the mean deviation, summed over the images and positions that hold a copy of it
  for (std::size_t i = 0; i < appended; ++i) d_mean += double{dy.floats()[x.size() + i]};
  for (int f = 0; f < x.features; ++f) {
    const std::ptrdiff_t at = std::ptrdiff_t{f} * x.batch;
    const auto [mean, deviation] = moments_of(x.floats() + at, x.batch);
    const double factor = d_mean / (double{1} * x.features * x.batch * deviation);
    for (int i = 0; i < x.batch; ++i)
      dx.floats()[at + i] = dy.floats()[at + i] + static_cast<float>(factor * (double{x.floats()[at + i]} - mean));
  }
}

void CpuOps::do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) {
  std::memcpy(y_dot.floats(), x_dot.floats(), x.size() * sizeof(float));
  double sum = 0;
  for (int f = 0; f < x.features; ++f) {
    const std::ptrdiff_t at = std::ptrdiff_t{f} * x.batch;
    const auto [mean, deviation] = moments_of(x.floats() + at, x.batch);
    double dot = 0;
    for (int i = 0; i < x.batch; ++i) dot += (double{x.floats()[at + i]} - mean) * double{x_dot.floats()[at + i]};
    sum += dot / (deviation * x.batch);
  }
  const std::size_t appended = static_cast<std::size_t>(positions) * static_cast<std::size_t>(x.batch);
  std::fill_n(y_dot.floats() + x.size(), appended, static_cast<float>(sum / x.features));
}

// With n = (x - mean) / deviation of a feature, the derivative of the mean deviation with respect to x is n / (features
// batch). The derivative of that along x_dot is (x_dot - mean(x_dot) - n mean(n x_dot)) / (features batch deviation).
void CpuOps::do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions) {
  const std::size_t appended = static_cast<std::size_t>(positions) * static_cast<std::size_t>(x.batch);
  const auto sum_of = [&](Tensor adjoint) {
    double sum = 0;
    for (std::size_t i = 0; i < appended && adjoint.data != nullptr; ++i) sum += double{adjoint.floats()[x.size() + i]};
    return sum;
  };
  const double all = double{1} * x.features * x.batch;
  const double by_value = sum_of(dy.value) / all, by_tangent = sum_of(dy.tangent) / all;
  for (int f = 0; f < x.features; ++f) {
    const std::ptrdiff_t at = std::ptrdiff_t{f} * x.batch;
    const auto [mean, deviation] = moments_of(x.floats() + at, x.batch);
    const auto n_of = [&, mean = mean, deviation = deviation](int i) {
      return (double{x.floats()[at + i]} - mean) / deviation;
    };
    double mean_dot = 0, along = 0;
    for (int i = 0; i < x.batch; ++i) {
      mean_dot += double{x_dot.floats()[at + i]} / x.batch;
      along += n_of(i) * double{x_dot.floats()[at + i]} / x.batch;
    }
    for (int i = 0; i < x.batch; ++i) {
      const double n = n_of(i), bent = (double{x_dot.floats()[at + i]} - mean_dot - n * along) / deviation;
      const float passed = dy.value.data == nullptr ? 0.0F : dy.value.floats()[at + i];
      dx.value.floats()[at + i] = passed + static_cast<float>(by_value * n + by_tangent * bent);
      dx.tangent.floats()[at + i] = dy.tangent.floats()[at + i] + static_cast<float>(by_tangent * n);
    }
  }
}

void CpuOps::do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) {
  const Shard part = shard();
  for (int image = 0; image < real.batch * part.ranks; ++image) {
    const auto u = static_cast<float>(random.uniform());
    const int i = image - real.batch * part.rank;
    if (i < 0 || i >= real.batch) continue;
    for (std::ptrdiff_t at = i; at < static_cast<std::ptrdiff_t>(real.size()); at += real.batch)
      between.floats()[at] = u * real.floats()[at] + (1 - u) * fake.floats()[at];
  }
}

void CpuOps::do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                                 float* length) {
  const auto size = static_cast<std::ptrdiff_t>(gradient.size());
  double sum = 0, norms = 0;
  for (int i = 0; i < gradient.batch; ++i) {
    double squares = 0;
    for (std::ptrdiff_t at = i; at < size; at += gradient.batch)
      squares += double{gradient.floats()[at]} * double{gradient.floats()[at]};
    const double norm = std::sqrt(squares);
    const double off = norm - double{centre};
    sum += off * off;
    norms += norm;
    // At a gradient of zero the norm has no derivative; 0 is used.
    const double factor = norm > 0 ? 2 * double{weight} / gradient.batch * off / norm : 0;
    for (std::ptrdiff_t at = i; at < size; at += gradient.batch)
      direction.floats()[at] = static_cast<float>(factor * double{gradient.floats()[at]});
  }
  *loss = static_cast<float>(double{weight} * sum / gradient.batch);
  if (length != nullptr) *length = static_cast<float>(norms / gradient.batch);
}

void CpuOps::do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) {
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    const auto [value, slope] = loss_of_logit(double{logits.floats()[i]}, term);
    sum += value;
    d_logits.floats()[i] = static_cast<float>(slope / logits.batch);
  }
  *loss = static_cast<float>(sum / logits.batch);
}

void CpuOps::do_classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> labels) {
  const auto stride = std::ptrdiff_t{logits.batch};
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    double largest = double{logits.floats()[i]}, all = 0;
    for (int c = 1; c < logits.features; ++c) largest = std::max(largest, double{logits.floats()[c * stride + i]});
    for (int c = 0; c < logits.features; ++c) all += std::exp(double{logits.floats()[c * stride + i]} - largest);
    const int label = labels[static_cast<std::size_t>(i)];
    sum += largest + std::log(all) - double{logits.floats()[label * stride + i]};
    for (int c = 0; c < logits.features; ++c) {
      const double p = std::exp(double{logits.floats()[c * stride + i]} - largest) / all;
      d_logits.floats()[c * stride + i] = static_cast<float>((p - (c == label ? 1 : 0)) / logits.batch);
    }
  }
  *loss = static_cast<float>(sum / logits.batch);
}

void CpuOps::do_append_channels(Tensor y, Tensor x, Tensor more, int positions) {
  std::memcpy(y.floats(), x.floats(), x.size() * sizeof(float));
  float* to = y.floats() + x.size();
  for (int row = 0; row < more.features * positions; ++row, to += y.batch)
    if (more.data == nullptr)
      std::fill_n(to, y.batch, 0.0F);
    else
      std::copy_n(more.floats() + std::ptrdiff_t{row / positions} * y.batch, y.batch, to);
}

void CpuOps::do_leading_channels(Tensor dx, Tensor dy, int /*positions*/) {
  std::memcpy(dx.floats(), dy.floats(), dx.size() * sizeof(float));
}

void CpuOps::do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  const float factor = 2 * weight / static_cast<float>(y.batch);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float difference = y.floats()[i] - x.floats()[i];
    sum += double{difference} * double{difference};
    dy.floats()[i] = factor * difference;
  }
  *loss = static_cast<float>(double{weight} * sum / y.batch);
}

void CpuOps::do_absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) {
  const float factor = weight / static_cast<float>(y.batch);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float difference = y.floats()[i] - x.floats()[i];
    sum += std::abs(double{difference});
    dy.floats()[i] = difference > 0 ? factor : difference < 0 ? -factor : 0.0F;
  }
  *loss = static_cast<float>(double{weight} * sum / y.batch);
}

void CpuOps::do_sample_code(Tensor z, Tensor code, Tensor noise) {
  for (std::size_t i = 0; i < z.size(); ++i)
    z.floats()[i] = code.floats()[i] + std::exp(code.floats()[z.size() + i] / 2) * noise.floats()[i];
}

void CpuOps::do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) {
  const std::size_t size = dz.size();
  const auto many = static_cast<float>(dz.batch);
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const float mean = code.floats()[i], log_variance = code.floats()[size + i], variance = std::exp(log_variance);
    sum += (double{mean} * double{mean} + double{variance} - double{log_variance} - 1) / 2;
    d_code.floats()[i] = dz.floats()[i] + mean / many;
    d_code.floats()[size + i] =
        dz.floats()[i] * noise.floats()[i] * std::exp(log_variance / 2) / 2 + (variance - 1) / (2 * many);
  }
  *loss = static_cast<float>(sum / dz.batch);
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

double free_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return 1024.0 * std::strtod(line.c_str() + 13, nullptr);
  return 0;
}

std::vector<const CpuKernels*> available_cpu_kernels() {
  std::vector<const CpuKernels*> found;
#ifdef GANYMEDE_X86_LEVELS
  __builtin_cpu_init();
  // The extensions of x86-64-v4 and -v3 that the compiler may use in the inner loops.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    found.push_back(&v4::cpu_kernels());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    found.push_back(&v3::cpu_kernels());
#endif
  found.push_back(&baseline::cpu_kernels());
  return found;
}

}  // namespace ganymede::kernel

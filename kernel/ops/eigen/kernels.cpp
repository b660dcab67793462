// Compiled once for each level with GANYMEDE_LEVEL=baseline|v3|v4 and with `Eigen` renamed to a namespace of that
// level. Otherwise the linker would merge Eigen's inline functions across levels, and an old processor would run
// instructions that it does not have. For the same reason only inlined functions of the standard library may be used
// here.

#include "kernel/ops/eigen/kernels.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace ganymede::kernel::GANYMEDE_LEVEL {
namespace {

#include "kernel/ops/eigen/product.inl"

using Rows = Eigen::Map<Eigen::ArrayXf>;
using ConstRows = Eigen::Map<const Eigen::ArrayXf>;

double multiply_add(std::int64_t repeats) {
  constexpr int kRegisters = 12;  // at least latency x units, and not more than SSE and AVX2 have
  Packet sum[kRegisters];
  for (int i = 0; i < kRegisters; ++i) sum[i] = pset1<Packet>(static_cast<float>(i));
  Packet factor = pset1<Packet>(0.999F), addend = pset1<Packet>(0.001F);
  for (std::int64_t k = 0; k < repeats; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kRegisters; ++i) sum[i] = pmadd(sum[i], factor, addend);
  }
  alignas(64) float kept[kRegisters * kWidth];
  for (int i = 0; i < kRegisters; ++i) pstoreu(kept + std::ptrdiff_t{i} * kWidth, sum[i]);
  // The result must depend on the loop, or the compiler removes it.
  return kept[0] > 1e30F ? 0 : 2.0 * kWidth * kRegisters * static_cast<double>(repeats);
}

void transpose(const float* in, float* out, int rows, int columns, int begin, int end) {
  int r = begin;
  for (; r + kWidth <= end; r += kWidth) {
    int c = 0;
    for (; c + kWidth <= columns; c += kWidth) {
      Eigen::internal::PacketBlock<Packet, kWidth> block;
      for (int i = 0; i < kWidth; ++i) block.packet[i] = ploadu<Packet>(in + std::ptrdiff_t{r + i} * columns + c);
      Eigen::internal::ptranspose(block);
      for (int i = 0; i < kWidth; ++i) pstoreu(out + std::ptrdiff_t{c + i} * rows + r, block.packet[i]);
    }
    for (; c < columns; ++c)
      for (int i = r; i < r + kWidth; ++i) out[std::ptrdiff_t{c} * rows + i] = in[std::ptrdiff_t{i} * columns + c];
  }
  for (; r < end; ++r)
    for (int c = 0; c < columns; ++c) out[std::ptrdiff_t{c} * rows + r] = in[std::ptrdiff_t{r} * columns + c];
}

#include "kernel/ops/eigen/gather.inl"

void add_bias(float* x, const float* bias, int batch, int begin, int end) {
  for (int r = begin; r < end; ++r) Rows(x + std::ptrdiff_t{r} * batch, batch) += bias[r];
}

void row_sums(const float* x, float* sums, int batch, bool accumulate, int begin, int end) {
  for (int r = begin; r < end; ++r)
    sums[r] = (accumulate ? sums[r] : 0.0F) + ConstRows(x + std::ptrdiff_t{r} * batch, batch).sum();
}

/// y = leaky(x * factor + offset)
void affine_leaky(const float* x, float* y, float factor, float offset, float slope, int batch) {
  for (int i = 0; i < batch; ++i) {
    const float z = x[i] * factor + offset;
    y[i] = z > 0 ? z : slope * z;
  }
}

void batch_norm_forward(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end) {
  const float inverse_batch = 1.0F / static_cast<float>(batch);
  const float unbiased = static_cast<float>(batch) / static_cast<float>(std::max(1, batch - 1));
  for (int r = begin; r < end; ++r) {
    const std::ptrdiff_t at = std::ptrdiff_t{r} * batch;
    const ConstRows row(x + at, batch);
    const float mean = row.sum() * inverse_batch;
    const float variance = (row - mean).square().sum() * inverse_batch;
    const float inverse_deviation = 1.0F / std::sqrt(variance + rows.epsilon);
    rows.mean[r] = mean;
    rows.inverse_deviation[r] = inverse_deviation;
    rows.running_mean[r] += rows.momentum * (mean - rows.running_mean[r]);
    rows.running_variance[r] += rows.momentum * (variance * unbiased - rows.running_variance[r]);
    const float factor = rows.scale[r] * inverse_deviation;
    affine_leaky(x + at, y + at, factor, rows.shift[r] - mean * factor, rows.slope, batch);
  }
}

void batch_norm_inference(const float* x, float* y, const BatchNormRows& rows, int batch, int begin, int end) {
  for (int r = begin; r < end; ++r) {
    const std::ptrdiff_t at = std::ptrdiff_t{r} * batch;
    const float factor = rows.scale[r] / std::sqrt(rows.running_variance[r] + rows.epsilon);
    affine_leaky(x + at, y + at, factor, rows.shift[r] - rows.running_mean[r] * factor, rows.slope, batch);
  }
}

void batch_norm_backward(float* dy, const float* x, const BatchNormRows& rows, float* d_scale, float* d_shift,
                         bool accumulate, int batch, int begin, int end) {
  // With n = (x - mean) / deviation and z = scale n + shift (Ioffe and Szegedy 2015):
  //   dz = dy leaky'(z)
  //   d_shift = sum of dz
  //   d_scale = sum of dz n
  //   dx = scale / deviation (dz - mean(dz) - n mean(dz n))
  const float inverse_batch = 1.0F / static_cast<float>(batch);
  for (int r = begin; r < end; ++r) {
    const std::ptrdiff_t at = std::ptrdiff_t{r} * batch;
    const float mean = rows.mean[r], inverse = rows.inverse_deviation[r], scale = rows.scale[r];
    // The same expression as in the forward pass, so that both get the same sign.
    const float factor = scale * inverse, offset = rows.shift[r] - mean * factor, slope = rows.slope;
    float* g = dy + at;
    const float* in = x + at;
    for (int i = 0; i < batch; ++i) g[i] *= in[i] * factor + offset > 0 ? 1.0F : slope;
    const Rows dz(g, batch);
    const ConstRows row(in, batch);
    const float sum = dz.sum();
    const float dot = (dz * (row - mean)).sum() * inverse;
    if (d_shift != nullptr) {
      d_shift[r] = (accumulate ? d_shift[r] : 0.0F) + sum;
      d_scale[r] = (accumulate ? d_scale[r] : 0.0F) + dot;
    }
    const float a = scale * inverse, b = -a * inverse * dot * inverse_batch, c = -a * sum * inverse_batch;
    for (int i = 0; i < batch; ++i) g[i] = a * g[i] + b * (in[i] - mean) + c;
  }
}

#include "kernel/ops/eigen/batch_norm_tangent.inl"
#include "kernel/ops/eigen/growing.inl"
#include "kernel/ops/eigen/instance_norm.inl"

void leaky_dropout_forward(float* x, const std::uint8_t* mask, float inverse_keep, float slope, std::size_t begin,
                           std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    x[i] = (x[i] > 0 ? x[i] : slope * x[i]) * (static_cast<float>(mask[i]) * inverse_keep);
}

void leaky_dropout_backward(float* dy, const float* y, const std::uint8_t* mask, float inverse_keep, float slope,
                            std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    dy[i] *= (static_cast<float>(mask[i]) * inverse_keep) * (y[i] > 0 ? 1.0F : slope);
}

void leaky_forward(float* x, float slope, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) x[i] = x[i] > 0 ? x[i] : slope * x[i];
}

void leaky_backward(float* dy, const float* y, float slope, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) dy[i] *= y[i] > 0 ? 1.0F : slope;
}

void tanh_forward(float* x, std::size_t begin, std::size_t end) {
  Rows row(x + begin, static_cast<Eigen::Index>(end - begin));
  row = row.tanh();
}

void tanh_backward(float* dy, const float* y, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) dy[i] *= 1.0F - y[i] * y[i];
}

void sigmoid_forward(float* x, std::size_t begin, std::size_t end) {
  Rows row(x + begin, static_cast<Eigen::Index>(end - begin));
  row = (1.0F + (-row).exp()).inverse();
}

void sigmoid_backward(float* dy, const float* y, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) dy[i] *= y[i] * (1.0F - y[i]);
}

void average(float* average, const float* values, float decay, std::size_t begin, std::size_t end) {
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) average[i] += (1.0F - decay) * (values[i] - average[i]);
}

void adam(float* parameters, const float* gradients, float* first, float* second, const AdamRule& rule,
          std::size_t begin, std::size_t end) {
  const AdamRule r = rule;
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) {
    const float g = gradients[i];
    const float m = r.beta1 * first[i] + (1.0F - r.beta1) * g;
    const float v = r.beta2 * second[i] + (1.0F - r.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameters[i] -= r.rate * m / (std::sqrt(v) * r.inverse_root + r.epsilon);
  }
}

constexpr CpuKernels kKernels = {GANYMEDE_INSTRUCTIONS,
                                 multiply_add,
                                 product,
                                 transpose,
                                 kTileColumns,
                                 gather_product,
                                 gather_weights,
                                 add_bias,
                                 row_sums,
                                 batch_norm_forward,
                                 batch_norm_inference,
                                 batch_norm_backward,
                                 batch_norm_tangent,
                                 batch_norm_tangent_backward,
                                 leaky_dropout_forward,
                                 leaky_dropout_backward,
                                 leaky_forward,
                                 leaky_backward,
                                 tanh_forward,
                                 tanh_backward,
                                 sigmoid_forward,
                                 sigmoid_backward,
                                 bias_leaky_forward,
                                 bias_leaky_backward,
                                 instance_norm_forward,
                                 instance_norm_backward,
                                 pixel_norm_forward,
                                 pixel_norm_backward,
                                 pool,
                                 upsample,
                                 combine,
                                 average,
                                 adam};

}  // namespace

const CpuKernels& cpu_kernels() { return kKernels; }

}  // namespace ganymede::kernel::GANYMEDE_LEVEL

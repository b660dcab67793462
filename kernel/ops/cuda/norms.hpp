#pragma once
// Batch norm and pixel norm on a GPU.

#include "kernel/ops/cuda/column_moments.hpp"
#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

/// Batch norm over the images of all replicas on GPUs: each gathers the statistics of all, in the order of their ranks,
/// so that all compute the same bits. Arguments as in TensorOps.
template <class E, class Device>
class SynchronizedNorm {
 public:
  SynchronizedNorm(Timeline<Device>& timeline, int replicas) : t_(timeline), replicas_(replicas) {}

  void forward(Tensor y, Tensor x, const BatchNormParameters& p) const {
    const E* in = elements_of<E>(x);
    const float mine_many = static_cast<float>(x.batch);
    float *mine = mine_of(x), *all = all_of(x);
    const std::size_t width = size_of(x.features);
    t_.template columns<2>(
        x.batch, x.features, AroundFirstRow<E>{in, width},
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
          const float around = sums.of[0] / mine_many;
          mine[2 * c] = in[c] + around;                                             // the mean of this replica's images
          mine[2 * c + 1] = fmaxf(0.0F, sums.of[1] / mine_many - around * around);  // and their variance
        },
        NoApply{});
    gather(x);
    const std::size_t replicas = size_of(replicas_);
    t_.each(width, [=] GANYMEDE_DEVICE(std::size_t c) {
      const float many = static_cast<float>(replicas);
      float mean = 0, variance = 0;
      for (std::size_t r = 0; r < replicas; ++r) mean += all[r * 2 * width + 2 * c] / many;
      for (std::size_t r = 0; r < replicas; ++r) {
        const float* one = all + r * 2 * width + 2 * c;
        variance += (one[1] + (one[0] - mean) * (one[0] - mean)) / many;
      }
      const float images = many * mine_many;
      p.mean[c] = mean;
      p.inverse_deviation[c] = 1.0F / sqrtf(variance + p.epsilon);
      p.running_mean[c] += p.momentum * (mean - p.running_mean[c]);
      p.running_variance[c] += p.momentum * (variance * images / (images - 1) - p.running_variance[c]);
    });
    const Divisor features(width);
    each_element(
        t_, x.size(),
        [=] GANYMEDE_DEVICE(std::size_t i, E & v, E from) {
          const std::size_t c = i % features;
          const float factor = p.scale[c] * p.inverse_deviation[c], offset = p.shift[c] - p.mean[c] * factor;
          v = leaky(from * factor + offset, p.slope);
        },
        Written<E>{elements_of<E>(y)}, in);
  }

  void backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale, float* d_shift,
                bool accumulate) const {
    const E* in = elements_of<E>(x);
    E* g = elements_of<E>(dy);
    float *mine = mine_of(x), *all = all_of(x);
    const std::size_t width = size_of(x.features);
    t_.template columns<2>(
        x.batch, x.features,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
          const NormGradient of = norm_gradient(p, c, in[row * width + c], g[row * width + c]);
          return Sums<2>{{of.dz, of.dz * of.n}};
        },
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<2>& sums) {
          mine[2 * c] = sums.of[0];
          mine[2 * c + 1] = sums.of[1];
          // These gradients are this replica's own; like all gradients they are averaged later.
          if (d_shift == nullptr) return;
          d_shift[c] = (accumulate ? d_shift[c] : 0.0F) + sums.of[0];
          d_scale[c] = (accumulate ? d_scale[c] : 0.0F) + sums.of[1];
        },
        NoApply{});
    gather(x);
    const std::size_t replicas = size_of(replicas_);
    const float images = static_cast<float>(replicas_) * static_cast<float>(x.batch);
    t_.each(width, [=] GANYMEDE_DEVICE(std::size_t c) {
      float sum = 0, along = 0;
      for (std::size_t r = 0; r < replicas; ++r) {
        sum += all[r * 2 * width + 2 * c];
        along += all[r * 2 * width + 2 * c + 1];
      }
      mine[2 * c] = sum / images;
      mine[2 * c + 1] = along / images;
    });
    const Divisor features(width);
    each_element(
        t_, x.size(),
        [=] GANYMEDE_DEVICE(std::size_t i, E & d, E v) {
          const std::size_t c = i % features;
          const NormGradient of = norm_gradient(p, c, v, d);
          d = of.factor * (of.dz - mine[2 * c] - of.n * mine[2 * c + 1]);
        },
        g, in);
  }

 private:
  // Scratch memory holds two numbers a feature for this replica, and behind them those of all replicas.
  float* mine_of(Tensor x) const { return t_.scratch(2 * size_of(x.features) * (size_of(replicas_) + 1)); }
  float* all_of(Tensor x) const { return mine_of(x) + 2 * size_of(x.features); }
  void gather(Tensor x) const {
    t_.gather(reinterpret_cast<const std::uint8_t*>(mine_of(x)), reinterpret_cast<std::uint8_t*>(all_of(x)),
              2 * size_of(x.features) * sizeof(float));
    t_.finish_reductions();
  }

  Timeline<Device>& t_;
  int replicas_;
};

template <class Device, class E>
void CudaOps<Device, E>::do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& p) {
  if (norm_communicator() != nullptr)
    return SynchronizedNorm<E, Device>(t_, norm_communicator()->shard().ranks).forward(y, x, p);
  const E* in = elements_of<E>(x);
  const float many = static_cast<float>(x.batch);
  E* out = elements_of<E>(y);
  const std::size_t width = size_of(x.features);
  t_.template columns<2>(
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

template <class Device, class E>
void CudaOps<Device, E>::do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& p) {
  const E* in = elements_of<E>(x);
  const Divisor width(size_of(x.features));
  each_element(
      t_, x.size(),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v, E from) {
        const std::size_t c = i % width;
        const float factor = p.scale[c] / sqrtf(p.running_variance[c] + p.epsilon);
        v = leaky(from * factor + (p.shift[c] - p.running_mean[c] * factor), p.slope);
      },
      Written<E>{elements_of<E>(y)}, in);
}

template <class Device, class E>
void CudaOps<Device, E>::do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& p, float* d_scale,
                                                      float* d_shift, bool accumulate) {
  if (norm_communicator() != nullptr)
    return SynchronizedNorm<E, Device>(t_, norm_communicator()->shard().ranks)
        .backward(dy, x, p, d_scale, d_shift, accumulate);
  const E* in = elements_of<E>(x);
  const float many = static_cast<float>(x.batch);
  E* g = elements_of<E>(dy);
  float* sums_of = t_.scratch(2 * size_of(x.features));
  const std::size_t width = size_of(x.features);
  t_.template columns<2>(
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

template <class Device, class E>
void CudaOps<Device, E>::do_pixel_norm_forward(Tensor x, float* factors, int channels) {
  E* v = elements_of<E>(x);
  const std::size_t width = size_of(channels);
  const float many = static_cast<float>(channels);
  t_.template rows<1>(
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

template <class Device, class E>
void CudaOps<Device, E>::do_pixel_norm_backward(Tensor dy, Tensor y, const float* factors, int channels) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const float many = static_cast<float>(channels);
  const std::size_t width = size_of(channels);
  t_.template rows<1>(
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

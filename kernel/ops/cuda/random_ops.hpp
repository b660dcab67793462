#pragma once
// Operations on a GPU that draw random numbers.

#include <cmath>
#include <vector>

#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

// Numbers are drawn for the whole batch, of which this process uses its shard's: by the GPU's threads, or one by one on
// the host, as the CPU backend does, so that both can be compared.

template <class Device>
void draw_mask_on_host(Timeline<Device>& timeline, const Shard& shard, Mask mask, float keep, RandomStream& random) {
  const auto threshold = static_cast<std::uint64_t>(std::lround(keep * 65536.0F));
  const auto batch = size_of(mask.batch), features = size_of(mask.features), ranks = size_of(shard.ranks);
  std::vector<std::uint8_t> kept(mask.size());
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < mask.size() * ranks; ++i) {
    bits = i % 4 == 0 ? random.next() : bits >> 16;
    const std::size_t image = i % (batch * ranks) - batch * size_of(shard.rank);
    if (image < batch) kept[image * features + i / (batch * ranks)] = (bits & 0xffffU) < threshold ? 1 : 0;
  }
  timeline.device().to_device(mask.data, kept.data(), kept.size());
}

/// Which units dropout keeps: 16 random bits for each, so that the share `keep` is met within 1 / 65536. Units are
/// numbered over the images of all processes; eight share a block of random bits.
struct KeptUnits {
  PhiloxKey key;
  std::uint32_t threshold;

  KeptUnits(const PhiloxKey& drawn, float keep)
      : key(drawn), threshold(static_cast<std::uint32_t>(std::lround(keep * 65536.0F))) {}
  GANYMEDE_DEVICE std::uint8_t of(const RandomWords& words, std::uint64_t unit) const {
    return ((words.of[unit / 2 % 4] >> (unit % 2 * 16)) & 0xffffU) < threshold ? 1 : 0;
  }
  GANYMEDE_DEVICE std::uint8_t operator()(std::uint64_t unit) const { return of(key.words(unit / 8), unit); }
};

template <class Device, class E>
void CudaOps<Device, E>::do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters p, RandomStream& random) {
  E* out = elements_of<E>(x);
  std::uint8_t* kept = mask.data;
  const float inverse = 1.0F / p.keep, slope = p.slope;
  if (host_random_) {
    draw_mask_on_host(t_, shard(), mask, p.keep, random);
    const std::uint8_t* drawn = kept;
    return each_element(
        t_, x.size(),
        [=] GANYMEDE_DEVICE(std::size_t, E & v, std::uint8_t keeps) {
          v = leaky(v, slope) * (static_cast<float>(keeps) * inverse);
        },
        out, drawn);
  }
  const KeptUnits units(t_.draw_key(random), p.keep);
  const std::uint64_t first = size_of(shard().rank) * x.size(), end = first + x.size();
  const bool aligned = first % 8 == 0 && is_aligned<8>(out) && is_aligned<8>(kept);
  t_.each(end / 8 - first / 8 + 1, [=] GANYMEDE_DEVICE(std::size_t block) {
    const std::uint64_t eighth = first / 8 + block;
    const RandomWords words = units.key.words(eighth);
    const auto drop = [&](std::uint64_t unit, std::uint8_t& keeps, E& v) {
      keeps = units.of(words, unit);
      v = leaky(v, slope) * (static_cast<float>(keeps) * inverse);
    };
    if (aligned && 8 * eighth + 8 <= end) {
      const std::size_t from = 8 * eighth - first;
      Held<8, E*> values(out, from);
      Held<8, Written<std::uint8_t>> keeps({kept}, from);
      for (std::size_t k = 0; k < 8; ++k) drop(8 * eighth + k, keeps.of[k], values.of[k]);
      values.store(out, from);
      keeps.store({kept}, from);
      return;
    }
    for (std::uint64_t unit = 8 * eighth; unit < 8 * eighth + 8; ++unit)
      if (unit >= first && unit < end) drop(unit, kept[unit - first], out[unit - first]);
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters p,
                                          DenseParameters dense, RandomStream& random) {
  if (host_random_) {
    do_leaky_dropout_forward(x, mask, p, random);
    return do_dense_forward(y, x, dense);
  }
  const KeptUnits units(t_.draw_key(random), p.keep);
  const std::size_t width = size_of(x.features);
  const std::uint64_t first = size_of(shard().rank) * x.size();
  const float inverse = 1.0F / p.keep, slope = p.slope, *weight = dense.weight, *bias = dense.bias;
  E *in = elements_of<E>(x), *out = elements_of<E>(y);
  std::uint8_t* kept = mask.data;
  t_.template rows<1>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        kept[i] = units(first + i);
        in[i] = leaky(in[i], slope) * (static_cast<float>(kept[i]) * inverse);
        return Sums<1>{{weight[c] * in[i]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c, const Sums<1>& sums) {
        if (c == 0) out[row] = sums.of[0] + *bias;
      });
}

template <class Device, class E>
void CudaOps<Device, E>::do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) {
  const E *a = elements_of<E>(real), *b = elements_of<E>(fake);
  E* to = elements_of<E>(between);
  const Divisor width(size_of(real.features));
  const std::uint64_t first = size_of(shard().rank * real.batch);
  if (host_random_) {
    std::vector<float> shares;
    for (int i = 0; i < real.batch * shard().ranks; ++i) shares.push_back(static_cast<float>(random.uniform()));
    float* share = t_.scratch(shares.size());
    t_.device().to_device(share, shares.data(), shares.size() * sizeof(float));
    return each_element(
        t_, real.size(),
        [=] GANYMEDE_DEVICE(std::size_t i, E & v, E x, E z) {
          const float u = share[first + i / width];
          v = u * x + (1 - u) * z;
        },
        Written<E>{to}, a, b);
  }
  const PhiloxKey key = t_.draw_key(random);
  each_element(
      t_, real.size(),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v, E x, E z) {
        const float u = uniform_of(key.words(first + i / width).of[0]);
        v = u * x + (1 - u) * z;
      },
      Written<E>{to}, a, b);
}

/// Returns them as the device has them, [batch x features].
inline std::vector<float> normals_on_host(const Shard& shard, Tensor x, RandomStream& random) {
  const auto batch = size_of(x.batch), features = size_of(x.features);
  const std::size_t all = batch * size_of(shard.ranks), first = batch * size_of(shard.rank);
  std::vector<float> drawn(all * features), values(x.size());
  random.fill_normal(drawn);
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t i = 0; i < batch; ++i) values[i * features + f] = drawn[all * f + first + i];
  return values;
}

template <class Device, class E>
void CudaOps<Device, E>::do_fill_normal(Tensor x, RandomStream& random) {
  E* out = elements_of<E>(x);
  const std::size_t count = x.size(), first = size_of(shard().rank) * count;
  if (host_random_) return do_write_elements(x, normals_on_host(shard(), x, random));
  const PhiloxKey key = t_.draw_key(random);
  t_.each((count + 1) / 2, [=] GANYMEDE_DEVICE(std::size_t pair) {
    for (std::size_t i = 2 * pair; i < 2 * pair + 2 && i < count; ++i) {
      const std::uint64_t unit = first + i;
      const RandomWords words = key.words(unit / 2);
      float normals[2];
      normals_of(words.of[0], words.of[1], normals);
      out[i] = normals[unit % 2];
    }
  });
}

}  // namespace ganymede::kernel::cuda

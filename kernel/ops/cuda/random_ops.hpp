#pragma once
// Operations on a GPU that draw random numbers. Arguments as in TensorOps.

#include <cmath>
#include <vector>

#include "kernel/ops/cuda/timeline.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel::cuda {

/// Where random numbers come from.
struct DrawOptions {
  Shard shard;   ///< numbers are drawn for the whole batch; this process uses its shard's
  bool on_host;  ///< drawn one by one on the host, as the CPU backend does, so that both can be compared
};

template <class Device>
void draw_mask_on_host(Timeline<Device>& timeline, const DrawOptions& draw, Mask mask, float keep,
                       RandomStream& random) {
  const auto threshold = static_cast<std::uint64_t>(std::lround(keep * 65536.0F));
  const auto batch = size_of(mask.batch), features = size_of(mask.features), ranks = size_of(draw.shard.ranks);
  std::vector<std::uint8_t> kept(mask.size());
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < mask.size() * ranks; ++i) {
    bits = i % 4 == 0 ? random.next() : bits >> 16;
    const std::size_t image = i % (batch * ranks) - batch * size_of(draw.shard.rank);
    if (image < batch) kept[image * features + i / (batch * ranks)] = (bits & 0xffffU) < threshold ? 1 : 0;
  }
  timeline.device().to_device(mask.data, kept.data(), kept.size());
}

template <class E, class Device>
void leaky_dropout_forward(Timeline<Device>& timeline, const DrawOptions& draw, Tensor x, Mask mask,
                           LeakyDropoutParameters p, RandomStream& random) {
  E* out = elements_of<E>(x);
  std::uint8_t* kept = mask.data;
  const float inverse = 1.0F / p.keep, slope = p.slope;
  if (draw.on_host) {
    draw_mask_on_host(timeline, draw, mask, p.keep, random);
  } else {
    // 16 random bits for each unit, so `keep` is met within 1 / 65536. Units are numbered over all processes' images.
    const auto threshold = static_cast<std::uint32_t>(std::lround(p.keep * 65536.0F));
    const PhiloxKey key = timeline.draw_key(random);
    const std::uint64_t first = size_of(draw.shard.rank) * x.size();
    timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::uint64_t unit = first + i;
      const RandomWords words = key.words(unit / 8);
      kept[i] = ((words.of[unit / 2 % 4] >> (unit % 2 * 16)) & 0xffffU) < threshold ? 1 : 0;
      out[i] = leaky(out[i], slope) * (static_cast<float>(kept[i]) * inverse);
    });
    return;
  }
  timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    out[i] = leaky(out[i], slope) * (static_cast<float>(kept[i]) * inverse);
  });
}

template <class E, class Device>
void interpolate(Timeline<Device>& timeline, const DrawOptions& draw, Tensor between, Tensor real, Tensor fake,
                 RandomStream& random) {
  const E *a = elements_of<E>(real), *b = elements_of<E>(fake);
  E* to = elements_of<E>(between);
  const std::size_t width = size_of(real.features);
  const std::uint64_t first = size_of(draw.shard.rank * real.batch);
  if (draw.on_host) {
    std::vector<float> shares;
    for (int i = 0; i < real.batch * draw.shard.ranks; ++i) shares.push_back(static_cast<float>(random.uniform()));
    float* share = timeline.scratch(shares.size());
    timeline.device().to_device(share, shares.data(), shares.size() * sizeof(float));
    return timeline.each(real.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const float u = share[first + i / width];
      to[i] = u * a[i] + (1 - u) * b[i];
    });
  }
  const PhiloxKey key = timeline.draw_key(random);
  timeline.each(real.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const float u = uniform_of(key.words(first + i / width).of[0]);
    to[i] = u * a[i] + (1 - u) * b[i];
  });
}

template <class E, class Device>
void fill_normal_on_host(Timeline<Device>& timeline, const DrawOptions& draw, Tensor x, RandomStream& random) {
  const auto batch = size_of(x.batch), features = size_of(x.features);
  const std::size_t all = batch * size_of(draw.shard.ranks), first = batch * size_of(draw.shard.rank);
  std::vector<float> drawn(all * features), values(x.size());
  random.fill_normal(drawn);
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t i = 0; i < batch; ++i) values[i * features + f] = drawn[all * f + first + i];
  timeline.device().to_device(x.data, values.data(), values.size() * sizeof(float));
}

template <class E, class Device>
void fill_normal(Timeline<Device>& timeline, const DrawOptions& draw, Tensor x, RandomStream& random) {
  E* out = elements_of<E>(x);
  const std::size_t count = x.size(), first = size_of(draw.shard.rank) * count;
  if (draw.on_host) return fill_normal_on_host<E>(timeline, draw, x, random);
  const PhiloxKey key = timeline.draw_key(random);
  timeline.each((count + 1) / 2, [=] GANYMEDE_DEVICE(std::size_t pair) {
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

#pragma once
// Operations on a GPU that work element by element: activations, noise, blocks of grids, optimizer, images, packing.

#include <cmath>
#include <vector>

#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/cuda_norms.hpp"

namespace ganymede::kernel::cuda {

/// Positions of a finer grid and of the coarser one of its blocks, channels last.
struct Grid {
  std::size_t channels, frames, height, width, block_frames, block;

  explicit Grid(const BlockShape& s)
      : channels(size_of(s.channels)),
        frames(size_of(s.frames)),
        height(size_of(s.height)),
        width(size_of(s.width)),
        block_frames(size_of(s.block_frames)),
        block(size_of(s.block)) {}
  GANYMEDE_DEVICE std::size_t elements() const { return block_frames * block * block; }
  /// Where element e of a coarse element's block is.
  GANYMEDE_DEVICE std::size_t fine(std::size_t coarse, std::size_t e) const {
    const std::size_t small_width = width / block, small_height = height / block, small_frames = frames / block_frames;
    const std::size_t c = coarse % channels, x = coarse / channels % small_width;
    const std::size_t row = coarse / channels / small_width, y = row % small_height;
    const std::size_t plane = row / small_height, f = plane % small_frames, image = plane / small_frames;
    const std::size_t fine_f = f * block_frames + e / (block * block), fine_y = y * block + e / block % block;
    return (((image * frames + fine_f) * height + fine_y) * width + x * block + e % block) * channels + c;
  }
  GANYMEDE_DEVICE std::size_t coarse(std::size_t fine) const {
    const std::size_t c = fine % channels, x = fine / channels % width, row = fine / channels / width;
    const std::size_t y = row % height, plane = row / height, f = plane % frames, image = plane / frames;
    const std::size_t small = ((image * (frames / block_frames) + f / block_frames) * (height / block) + y / block);
    return (small * (width / block) + x / block) * channels + c;
  }
};

template <class Machine>
class CudaElements : public CudaNorms<Machine> {
 public:
  using Base = CudaNorms<Machine>;
  using Base::Base;
  using Base::draw_key;
  using Base::dynamic;
  using Base::each;
  using Base::machine_;
  using Base::options_;
  using Base::scratch;
  using Base::shard;
  using Base::staged;

  void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters p, RandomStream& random) override {
    float* out = x.data;
    std::uint8_t* kept = mask.data;
    const float inverse = 1.0F / p.keep, slope = p.slope;
    if (options_.host_random) {
      draw_mask_on_host(mask, p.keep, random);
    } else {
      // 16 bits decide about a unit: `keep` is met within 1 / 65536. Of the images of all processes, this one's.
      const auto threshold = static_cast<std::uint32_t>(std::lround(p.keep * 65536.0F));
      const Key key = draw_key(random);
      const std::uint64_t first = size_of(shard().rank) * x.size();
      each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
        const std::uint64_t unit = first + i;
        const Words words = key.words(unit / 8);
        kept[i] = ((words.of[unit / 2 % 4] >> (unit % 2 * 16)) & 0xffffU) < threshold ? 1 : 0;
        out[i] = leaky(out[i], slope) * (static_cast<float>(kept[i]) * inverse);
      });
      return;
    }
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      out[i] = leaky(out[i], slope) * (static_cast<float>(kept[i]) * inverse);
    });
  }
  void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p) override {
    float* g = dy.data;
    const float *out = y.data, inverse = 1.0F / p.keep, slope = p.slope;
    const std::uint8_t* kept = mask.data;
    each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      g[i] *= (static_cast<float>(kept[i]) * inverse) * leaky_slope(out[i], slope);
    });
  }
  void do_leaky_forward(Tensor x, float slope) override {
    float* v = x.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = leaky(v[i], slope); });
  }
  void do_leaky_backward(Tensor dy, Tensor y, float slope) override {
    float* g = dy.data;
    const float* out = y.data;
    each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= leaky_slope(out[i], slope); });
  }
  void do_tanh_forward(Tensor x) override {
    float* v = x.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = tanhf(v[i]); });
  }
  void do_tanh_backward(Tensor dy, Tensor y) override {
    float* g = dy.data;
    const float* out = y.data;
    each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= 1 - out[i] * out[i]; });
  }
  void do_sigmoid_forward(Tensor x) override {
    float* v = x.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = 1 / (1 + expf(-v[i])); });
  }
  void do_sigmoid_backward(Tensor dy, Tensor y) override {
    float* g = dy.data;
    const float* out = y.data;
    each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= out[i] * (1 - out[i]); });
  }

  void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) override {
    float* v = x.data;
    const std::size_t width = size_of(channels);
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = leaky(v[i] * factor + bias[i % width], slope); });
  }
  void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                              bool accumulate) override {
    float* g = dy.data;
    const float* out = y.data;
    const std::size_t width = size_of(channels);
    if (d_bias == nullptr)
      return each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= factor * leaky_slope(out[i], slope); });
    this->template columns<1>(
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

  void do_pool(Tensor coarse, Tensor fine, const BlockShape& s, float factor) override {
    const float* from = fine.data;
    float* to = coarse.data;
    const Grid grid(s);
    each(coarse.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      float sum = 0;
      for (std::size_t e = 0; e < grid.elements(); ++e) sum += from[grid.fine(i, e)];
      to[i] = factor * sum;
    });
  }
  void do_spread(Tensor fine, Tensor coarse, const BlockShape& s, float factor) override {
    const float* from = coarse.data;
    float* to = fine.data;
    const Grid grid(s);
    each(fine.size(), [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = factor * from[grid.coarse(i)]; });
  }
  void do_combine(Tensor y, float a, Tensor x, float b) override {
    const float* from = x.data;
    float* to = y.data;
    const Dynamic first = dynamic(a), second = dynamic(b);
    each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const float scaled = first.number() * from[i], old = second.number();
      to[i] = old == 0 ? scaled : scaled + old * to[i];
    });
  }
  void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) override {
    const float *a = real.data, *b = fake.data;
    float* to = between.data;
    const std::size_t width = size_of(real.features);
    const std::uint64_t first = size_of(shard().rank * real.batch);
    if (options_.host_random) {
      std::vector<float> shares;
      for (int i = 0; i < real.batch * shard().ranks; ++i) shares.push_back(static_cast<float>(random.uniform()));
      float* share = scratch(shares.size());
      machine_->to_device(share, shares.data(), shares.size() * sizeof(float));
      return each(real.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
        const float u = share[first + i / width];
        to[i] = u * a[i] + (1 - u) * b[i];
      });
    }
    const Key key = draw_key(random);
    each(real.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const float u = uniform_of(key.words(first + i / width).of[0]);
      to[i] = u * a[i] + (1 - u) * b[i];
    });
  }
  void do_fill(Tensor x, float value) override {
    float* v = x.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = value; });
  }
  void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
               const AdamRule& by_value) override {
    const AdamRule rule = by_value;
    const Dynamic rate = dynamic(rule.rate), root = dynamic(rule.inverse_root);
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) {
      const float g = gradients[i];
      const float m = rule.beta1 * first[i] + (1 - rule.beta1) * g;
      const float v = rule.beta2 * second[i] + (1 - rule.beta2) * g * g;
      first[i] = m;
      second[i] = v;
      parameters[i] -= rate.number() * m / (sqrtf(v) * root.number() + rule.epsilon);
    });
  }
  void do_average(float* average, const float* values, std::size_t count, float decay) override {
    const Dynamic kept = dynamic(decay);
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) { average[i] += (1 - kept.number()) * (values[i] - average[i]); });
  }

  void do_fill_normal(Tensor x, RandomStream& random) override {
    float* out = x.data;
    const std::size_t count = x.size(), first = size_of(shard().rank) * count;
    if (options_.host_random) return fill_normal_on_host(x, random);
    const Key key = draw_key(random);
    each((count + 1) / 2, [=] GANYMEDE_DEVICE(std::size_t pair) {
      for (std::size_t i = 2 * pair; i < 2 * pair + 2 && i < count; ++i) {
        const std::uint64_t unit = first + i;
        const Words words = key.words(unit / 2);
        float normals[2];
        normals_of(words.of[0], words.of[1], normals);
        out[i] = normals[unit % 2];
      }
    });
  }
  void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) override {
    const Staged images = staged(host_pixels);
    const std::uint8_t* base = images.base;
    const Dynamic slot = dynamic(static_cast<std::uint32_t>(images.slot));
    const std::size_t stride = images.stride, width = size_of(x.features), depth = size_of(channels);
    const float factor = (1.0F - low) / 255.0F;
    float* out = x.data;
    each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
      const std::size_t image = i / width, position = i % width / depth, channel = i % depth;
      const std::uint8_t* from = base + slot.word() * stride;
      const std::size_t pixel = image * width + channel * (width / depth) + position;
      out[i] = static_cast<float>(from[pixel]) * factor + low;
    });
  }
  void do_copy(float* to, const float* from, std::size_t count) override {
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = from[i]; });
  }
  void do_pack(Compression bits, std::uint8_t* to, const float* from, std::size_t count) override {
    if (bits == Compression::none) return do_copy(reinterpret_cast<float*>(to), from, count);
    if (bits == Compression::int8) {
      each((count + kScaledTogether - 1) / kScaledTogether,
           [=] GANYMEDE_DEVICE(std::size_t block) { pack_bytes(to, from, count, block); });
      return;
    }
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
    const bool ieee = bits == Compression::fp16;
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) { halves[i] = ieee ? to_fp16(from[i]) : to_bf16(from[i]); });
  }
  void do_unpack(Compression bits, float* to, const std::uint8_t* from, std::size_t count) override {
    if (bits == Compression::none) return do_copy(to, reinterpret_cast<const float*>(from), count);
    if (bits == Compression::int8)
      return each(count, [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = unpack_byte(from, i); });
    const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
    const bool ieee = bits == Compression::fp16;
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = ieee ? from_fp16(halves[i]) : from_bf16(halves[i]); });
  }

  // As the CPU backend draws them, so that trainings of both can be compared.
  void draw_mask_on_host(Mask mask, float keep, RandomStream& random) {
    const auto threshold = static_cast<std::uint64_t>(std::lround(keep * 65536.0F));
    const auto batch = size_of(mask.batch), features = size_of(mask.features), ranks = size_of(shard().ranks);
    std::vector<std::uint8_t> kept(mask.size());
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < mask.size() * ranks; ++i) {
      bits = i % 4 == 0 ? random.next() : bits >> 16;
      const std::size_t image = i % (batch * ranks) - batch * size_of(shard().rank);
      if (image < batch) kept[image * features + i / (batch * ranks)] = (bits & 0xffffU) < threshold ? 1 : 0;
    }
    machine_->to_device(mask.data, kept.data(), kept.size());
  }
  void fill_normal_on_host(Tensor x, RandomStream& random) {
    const auto batch = size_of(x.batch), features = size_of(x.features);
    const std::size_t all = batch * size_of(shard().ranks), first = batch * size_of(shard().rank);
    std::vector<float> drawn(all * features), values(x.size());
    random.fill_normal(drawn);
    for (std::size_t f = 0; f < features; ++f)
      for (std::size_t i = 0; i < batch; ++i) values[i * features + f] = drawn[all * f + first + i];
    machine_->to_device(x.data, values.data(), values.size() * sizeof(float));
  }
};

}  // namespace ganymede::kernel::cuda

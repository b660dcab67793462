#pragma once
// Building blocks of GPU kernels. The same code runs as a thread of a GPU and, in tests, as an iteration of a loop
// on the CPU. A kernel is a function object; the Device (see timeline.hpp) decides how its calls are spread over
// threads.

#include "kernel/device_code.hpp"
#include "kernel/ops/op_parameters.hpp"

namespace ganymede::kernel::cuda {

/// N numbers that a kernel sums at the same time.
template <int N>
struct Sums {
  float of[N] = {};

  GANYMEDE_DEVICE Sums& operator+=(const Sums& other) {
    for (int i = 0; i < N; ++i) of[i] += other.of[i];
    return *this;
  }
};

/// A number by which all threads divide: i / d and i % d are a multiplication by a number made beforehand, as far as 32
/// bits reach (Granlund and Montgomery 1994); a GPU takes some hundred instructions for a division of 64 bits.
class Divisor {
 public:
  /// `value` is at least 1.
  explicit Divisor(std::size_t value) : value_(value) {
    while (shift_ < 32 && (std::uint64_t{1} << shift_) < value) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << shift_;
    if (value <= power) factor_ = static_cast<std::uint32_t>(((power - value) << 32) / value + 1);
  }
  GANYMEDE_DEVICE operator std::size_t() const { return value_; }
  GANYMEDE_DEVICE friend std::size_t operator/(std::size_t i, const Divisor& d) {
    if (((i | d.value_) >> 32) != 0) return i / d.value_;
    return ((std::uint64_t{d.factor_} * i >> 32) + i) >> d.shift_;
  }
  GANYMEDE_DEVICE friend std::size_t operator%(std::size_t i, const Divisor& d) { return i - i / d * d.value_; }

 private:
  std::size_t value_;
  std::uint32_t factor_ = 0, shift_ = 0;
};

/// A word of 32 bits that differs from step to step. A captured step is replayed unchanged, so there the word is read
/// from device memory, which is rewritten before each replay.
struct StepWord {
  const std::uint32_t* at;  ///< in device memory; null: the word is `bits`
  std::uint32_t bits;

  GANYMEDE_DEVICE std::uint32_t word() const { return at == nullptr ? bits : *at; }
  GANYMEDE_DEVICE float number() const { return float_of(word()); }
};

/// 128 random bits.
struct RandomWords {
  std::uint32_t of[4];
};

/// The i-th block of 128 random bits under a key: Philox4x32-10 (Salmon et al. 2011). A thread computes its own block
/// without the blocks before it.
GANYMEDE_DEVICE inline RandomWords philox(std::uint32_t key0, std::uint32_t key1, std::uint64_t i) {
  std::uint32_t c0 = static_cast<std::uint32_t>(i), c1 = static_cast<std::uint32_t>(i >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0, b = std::uint64_t{0xCD9E8D57U} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ key0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ key1;
    c1 = static_cast<std::uint32_t>(b);
    c3 = static_cast<std::uint32_t>(a);
    c0 = n0;
    c2 = n2;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

/// The key of one random draw, for example of one dropout mask.
struct PhiloxKey {
  StepWord low, high;

  GANYMEDE_DEVICE RandomWords words(std::uint64_t i) const { return philox(low.word(), high.word(), i); }
};

/// A uniform number in (0, 1] from a random word.
GANYMEDE_DEVICE inline float uniform_of(std::uint32_t word) {
  return (static_cast<float>(word >> 8) + 1.0F) * (1.0F / 16777216.0F);
}

/// Two independent standard normal numbers (Box and Muller 1958).
GANYMEDE_DEVICE inline void normals_of(std::uint32_t a, std::uint32_t b, float (&out)[2]) {
  const float radius = sqrtf(-2.0F * logf(uniform_of(a))), angle = 6.2831853F * uniform_of(b);
  out[0] = radius * cosf(angle);
  out[1] = radius * sinf(angle);
}

GANYMEDE_DEVICE inline float leaky(float x, float slope) { return x > 0 ? x : slope * x; }
/// Derivative of leaky at x, from its output y = leaky(x, slope), which has the sign of x.
GANYMEDE_DEVICE inline float leaky_slope(float y, float slope) { return y > 0 ? 1.0F : slope; }

/// The activation's value at x.
GANYMEDE_DEVICE inline float activated(float x, const Activation& activation) {
  switch (activation.kind) {
    case Activation::Kind::leaky_relu:
      return leaky(x, activation.slope);
    case Activation::Kind::tanh:
      return tanhf(x);
    case Activation::Kind::sigmoid:
      break;
  }
  return 1 / (1 + expf(-x));
}
/// Its derivative where its value is y.
GANYMEDE_DEVICE inline float activation_slope(float y, const Activation& activation) {
  switch (activation.kind) {
    case Activation::Kind::leaky_relu:
      return leaky_slope(y, activation.slope);
    case Activation::Kind::tanh:
      return 1 - y * y;
    case Activation::Kind::sigmoid:
      break;
  }
  return y * (1 - y);
}

}  // namespace ganymede::kernel::cuda

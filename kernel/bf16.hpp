#pragma once
// bf16: the upper half of a float, with 8 bits of mantissa, for host and device.

#include "kernel/device_code.hpp"

namespace ganymede::kernel {

/// Rounds to the nearest bf16 number, and ties to even. NaN stays NaN.
GANYMEDE_DEVICE inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  if (value != value) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

GANYMEDE_DEVICE inline float from_bf16(std::uint16_t half) { return float_of(std::uint32_t{half} << 16); }

/// A stored bf16 number. Arithmetic is that of float: a value is converted when it is read and rounded when it is
/// assigned.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  GANYMEDE_DEVICE explicit Bf16(float value) : bits(to_bf16(value)) {}
  GANYMEDE_DEVICE operator float() const { return from_bf16(bits); }
  GANYMEDE_DEVICE Bf16& operator=(float value) {
    bits = to_bf16(value);
    return *this;
  }
  GANYMEDE_DEVICE Bf16& operator+=(float value) { return *this = from_bf16(bits) + value; }
  GANYMEDE_DEVICE Bf16& operator*=(float value) { return *this = from_bf16(bits) * value; }
};
static_assert(sizeof(Bf16) == 2);

}  // namespace ganymede::kernel

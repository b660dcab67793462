#pragma once
// Marks functions that are compiled for the host and, by CUDA's compiler, for GPUs too.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define GANYMEDE_DEVICE __host__ __device__
#else
#define GANYMEDE_DEVICE
#endif

namespace ganymede::kernel {

/// The float with these bits, and the reverse.
GANYMEDE_DEVICE inline float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

GANYMEDE_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace ganymede::kernel

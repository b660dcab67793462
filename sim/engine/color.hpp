#pragma once
// Colours: hashes of 64 bits that tell classes apart. Two different things have the same colour with a probability of
// about 2^-64.

#include <bit>
#include <cstdint>

namespace ganymede::sim {

using Color = std::uint64_t;

/// A permutation of 64 bits in which each input bit affects all output bits (the finaliser of splitmix64).
inline Color mixed(Color x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}
/// The colour of something that had `color` and now also differs by `more`.
inline Color with(Color color, Color more) { return mixed(color ^ mixed(more)); }
inline Color with(Color color, double more) { return with(color, std::bit_cast<Color>(more)); }

}  // namespace ganymede::sim

#pragma once
// The numbers that ranks bring to an all-reduce, so that each can check the sum by itself.

#include <span>
#include <string>

namespace ganymede::rehearsal {

/// Fills a rank's buffer with whole numbers from 0 to 63 that differ by rank and place, whose sums over up to 65,536
/// ranks are exact in fp32 in any order.
void fill(std::span<float> buffer, int rank);

/// Adds as many floats from `theirs` on to `mine`.
void add(std::span<float> mine, const float* theirs);

/// Returns what is wrong with a buffer that should hold the sums over all ranks: "float 17 is 3, expected 5; 4 of 16
/// are wrong"; "": nothing.
std::string fault_in_sum(std::span<const float> buffer, int ranks);

}  // namespace ganymede::rehearsal

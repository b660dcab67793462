#include "rehearsal/contributions.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace ganymede::rehearsal {
namespace {

// 251 is prime, so that no chunk of a schedule has the period of the numbers.
constexpr std::size_t kPeriod = 251;

float contribution(std::size_t place, int rank) {
  return static_cast<float>((place % kPeriod * 7 + static_cast<std::size_t>(rank) * 13) % 64);
}

}  // namespace

void fill(std::span<float> buffer, int rank) {
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = contribution(i, rank);
}

void add(std::span<float> mine, const float* theirs) {
  // Known lengths, which GCC 12 vectorises at -O2; all ranks of a machine add at the same moments.
  constexpr std::size_t kBlock = 16;
  float* __restrict to = mine.data();
  const float* __restrict from = theirs;
  std::size_t i = 0;
  for (; i + kBlock <= mine.size(); i += kBlock)
    for (std::size_t j = 0; j < kBlock; ++j) to[i + j] += from[i + j];
  for (; i < mine.size(); ++i) to[i] += from[i];
}

std::string fault_in_sum(std::span<const float> buffer, int ranks) {
  std::array<float, kPeriod> sums{};
  for (std::size_t i = 0; i < kPeriod; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[i] += contribution(i, rank);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = buffer.size(); i-- > 0;)
    if (buffer[i] != sums[i % kPeriod]) ++wrong, first = i;
  if (wrong == 0) return "";
  return fmt::format("float {} is {}, expected {}; {} of {} are wrong", first, buffer[first], sums[first % kPeriod],
                     wrong, buffer.size());
}

}  // namespace ganymede::rehearsal
